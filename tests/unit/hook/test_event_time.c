/* Times by CUDA events where there is no profiler, and the order of streams between variants,
 * against a driver that only writes down. One rank at a time makes calls, so that its counts are
 * exact. */
#include "hook/event.h"
#include "hook/event_time.h"
#include "hook/variant.h"
#include "fabric_ranks.h"
#include "isolated.h"

#include "base/ring.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static int *records, *created, *waits, *capturing, *not_ready, *broken;

static void load_driver(void)
{
    void *cuda = dlopen(STUB_CUDA, RTLD_NOW | RTLD_LOCAL);
    CHECK(cuda != NULL);
    records = dlsym(cuda, "stub_records");
    created = dlsym(cuda, "stub_created");
    waits = dlsym(cuda, "stub_waits");
    capturing = dlsym(cuda, "stub_capturing");
    not_ready = dlsym(cuda, "stub_not_ready");
    broken = dlsym(cuda, "stub_broken");
    CHECK(records != NULL && not_ready != NULL);
}

ISOLATED(no_driver)
{
    CHECK(att_event_driver() == NULL);
    CHECK(att_event_timer_create() == NULL);
    load_driver(); /* loaded after the start: found then */
    CHECK(att_event_driver() != NULL);
    *capturing = 1;
    CHECK(att_event_capturing(att_event_driver(), NULL));
}

/* ---- the timer ---- */

static att_sink_t sink(void)
{
    const att_hook_t *hook = att_hook_attach(NULL);
    CHECK(hook != NULL);
    return (att_sink_t){hook->process, hook->ring};
}

ISOLATED(durations_and_starts)
{
    load_driver();
    att_sink_t out = sink();
    struct att_event_timer *timer = att_event_timer_create();
    CHECK(timer != NULL);
    att_record_t record = {.decided_ns = 1000000, .datatype = 7}, got;
    for (uint64_t i = 0; i < 5; i++) {
        record.call = i;
        CHECK(att_event_timer_begin(timer, NULL));
        att_event_timer_end(timer, NULL, &record);
    }
    CHECK(att_event_timer_begin(timer, NULL)); /* a call that gives no record */
    att_event_timer_end(timer, NULL, NULL);
    att_event_timer_collect(timer, &out, false);
    for (uint64_t i = 0; i < 5; i++) {
        CHECK(agent_record(&got));
        CHECK_EQUAL(got.call, i);
        CHECK_EQUAL(got.source, ATT_TIME_EVENT);
        CHECK_EQUAL(got.untimed, ATT_UNTIMED_NO);
        CHECK_EQUAL(got.stop_ns - got.start_ns, 250000);
        CHECK_EQUAL(got.start_ns, 1000000 + i * 500000); /* one chain from the first */
        CHECK(got.seen_ns != 0);
    }
    CHECK(!agent_record(&got));
    CHECK_EQUAL(*records, 11);
    att_event_timer_destroy(timer);
    att_event_timer_destroy(NULL);
}

/* Nothing waits: what is not over stays, a full timer times no more, the end gives all back. */
ISOLATED(not_over)
{
    load_driver();
    att_sink_t out = sink();
    struct att_event_timer *timer = att_event_timer_create();
    att_record_t record = {.decided_ns = 1}, got;
    *not_ready = 1;
    int begun = 0;
    while (begun < 1000 && att_event_timer_begin(timer, NULL)) {
        att_event_timer_end(timer, NULL, &record);
        att_event_timer_collect(timer, &out, false);
        begun++;
    }
    CHECK_EQUAL(begun, 63);
    CHECK(!agent_record(&got));
    att_event_timer_collect(timer, &out, true);
    for (int i = 0; i < begun; i++) {
        CHECK(agent_record(&got));
        CHECK_EQUAL(got.untimed, ATT_UNTIMED_LOST);
        CHECK_EQUAL(got.start_ns, 0);
    }
    *not_ready = 0;
    CHECK(att_event_timer_begin(timer, NULL));
    att_event_timer_end(timer, NULL, &record);
    att_event_timer_collect(timer, &out, false);
    CHECK(agent_record(&got));
    CHECK_EQUAL(got.untimed, ATT_UNTIMED_NO);
    att_event_timer_destroy(timer);
}

/* Another thread captures meanwhile, in the default mode. */
ISOLATED(a_capture_elsewhere)
{
    load_driver();
    att_sink_t out = sink();
    struct att_event_timer *timer = att_event_timer_create();
    att_record_t record = {.decided_ns = 1}, got;
    CHECK(att_event_timer_begin(timer, NULL));
    att_event_timer_end(timer, NULL, &record);
    *capturing = 1;
    att_event_timer_collect(timer, &out, false);
    CHECK(agent_record(&got));
    CHECK_EQUAL(*broken, 0);
    /* The thread's own mode is as before. */
    int mode = 0;
    CHECK_EQUAL(att_event_driver()->capture_mode(&mode), 0);
    CHECK_EQUAL(mode, 0);
    att_event_timer_destroy(timer);
}

/* ---- through the preload, on the host fabric ---- */

#define RANKS 2

static float buffers[RANKS][1024];
static pthread_barrier_t meet;

static void *run_rank(void *argument)
{
    rank_t *r = argument;
    CHECK_EQUAL(ncclCommInitRank(&r->comm, RANKS, r->id, r->rank), 0);
    r->body(r);
    return NULL;
}

static void on_ranks(void (*body)(rank_t *))
{
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    setenv("NCCL_ENV_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_NO_CACHE", "NCCL_NTHREADS", 1);
    pthread_barrier_init(&meet, NULL, RANKS);
    fabric_ranks(FABRIC, RANKS, run_rank, body);
}

static void reduce(rank_t *r, void *stream)
{
    float *mine = buffers[r->rank];
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, stream), 0);
}

static void timed_calls(rank_t *r)
{
    att_segment_process_t *process = att_hook_attached()->process;
    if (r->rank == 0)
        CHECK_EQUAL(*created, 0);
    pthread_barrier_wait(&meet);
    reduce(r, NULL); /* nobody wants times: no event */
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        CHECK_EQUAL(*records, 0);
        atomic_store(&process->timing, 1);
    }
    pthread_barrier_wait(&meet);
    for (int i = 0; i < 5; i++)
        reduce(r, NULL);
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        *capturing = 1;
        *records = 0;
    }
    pthread_barrier_wait(&meet);
    for (int i = 0; i < 3; i++)
        reduce(r, NULL);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(*records, 0); /* none may go into a graph */
    CHECK_EQUAL(*broken, 0);
    pthread_barrier_wait(&meet);
    if (r->rank == 0)
        *capturing = 0;
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

ISOLATED(calls_without_profiler)
{
    load_driver();
    on_ranks(timed_calls);
    att_segment_memory_t *memory = agent_memory();
    CHECK_EQUAL(memory->members[0].profiler_abi, 0);
    CHECK_EQUAL(memory->members[0].event_timing, 1);
    CHECK_EQUAL(memory->members[0].clock_id, 0);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->frozen), RANKS * 3);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->unstamped), ATT_UNSTAMPED_GRAPH);
    att_record_t record;
    int timed[RANKS] = {0}, captured = 0;
    while (agent_record(&record)) {
        if (record.untimed == ATT_UNTIMED_CAPTURED)
            captured++;
        if (record.untimed != ATT_UNTIMED_NO)
            continue;
        CHECK_EQUAL(record.source, ATT_TIME_EVENT);
        CHECK(record.stop_ns > record.start_ns);
        CHECK(record.algorithm >= 0 && record.protocol >= 0); /* NCCL's own choice, by its table */
        CHECK(record.call >= 1 && record.call <= 5);
        CHECK_EQUAL(record.datatype, 7);
        timed[memory->members[record.member].rank]++;
    }
    CHECK_EQUAL(timed[0], 5);
    CHECK_EQUAL(timed[1], 5);
}

/* ---- the order of streams ---- */

#define STREAM(n) ((void *)(uintptr_t)(16 * (n)))

static void two_streams(rank_t *r)
{
    att_preload_comm_t *entry = att_preload_comm_find(r->comm);
    CHECK(entry->family != NULL);
    for (int i = 0; i < 3; i++)
        reduce(r, STREAM(1));
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        CHECK_EQUAL(*waits, 0);
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.algorithm = ATT_ALGORITHM_RING;
        setting.protocol = ATT_PROTOCOL_SIMPLE;
        setting.threads = 128;
        agent_memory();
        agent_commit(agent_task(ATT_COLLECTIVE_ALL_REDUCE, 4096), 4, &setting, 1, 1);
    }
    pthread_barrier_wait(&meet);
    reduce(r, STREAM(1)); /* at home, as before */
    reduce(r, STREAM(1)); /* another communicator, the same stream: in order anyway */
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(*waits, 0);
    pthread_barrier_wait(&meet);
    reduce(r, STREAM(2)); /* the same one, another stream: NCCL's matter */
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(*waits, 0);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(ncclGroupStart(), 0); /* home again, on a third stream: waits for the second */
    reduce(r, STREAM(3));
    CHECK_EQUAL(ncclGroupEnd(), 0);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(*waits, RANKS);
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        *capturing = 1;
        *records = 0;
        *waits = 0;
    }
    pthread_barrier_wait(&meet);
    /* Two ranks' own matter: they alone would stay at home from now on. */
    ncclSend(buffers[r->rank], 1, 7, 1 - r->rank, r->comm, STREAM(1)); /* the fabric has none */
    ncclRecv(buffers[r->rank], 1, 7, 1 - r->rank, r->comm, STREAM(1));
    CHECK(((struct att_family *)entry->family)->routing);
    pthread_barrier_wait(&meet);
    reduce(r, STREAM(1)); /* captured: at home, untouched, and from now on always */
    CHECK(!((struct att_family *)entry->family)->routing);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(*records + *waits, 0);
    pthread_barrier_wait(&meet);
    if (r->rank == 0)
        *capturing = 0;
    pthread_barrier_wait(&meet);
    reduce(r, STREAM(1));
    CHECK(((struct att_family *)entry->family)->last_comm == r->comm);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

ISOLATED(order_of_streams)
{
    setenv("ATTUNE_VARIANTS", "nt=128", 1);
    load_driver();
    on_ranks(two_streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_driver),
        cmocka_unit_test(durations_and_starts),
        cmocka_unit_test(not_over),
        cmocka_unit_test(a_capture_elsewhere),
        cmocka_unit_test(calls_without_profiler),
        cmocka_unit_test(order_of_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
