/* When calls may be stamped: no call that is captured, whoever makes it and whenever the hook
 * learns of it, and none after an AllGatherV. */
#include "fake_nccl.h"
#include "hook/stamps.h"
#include "hook/preload_comm.h"
#include "fabric_ranks.h"
#include "isolated.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define RANKS  2
#define STAMPS (ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH)

static int *capturing, *answer; /* of the stand-in for the driver */

static void load_driver(void)
{
    void *cuda = dlopen(STUB_CUDA, RTLD_NOW | RTLD_LOCAL);
    CHECK(cuda != NULL);
    capturing = dlsym(cuda, "stub_capturing");
    answer = dlsym(cuda, "stub_capturing_answer");
    CHECK(capturing != NULL && answer != NULL);
}

static att_segment_process_t *process(void)
{
    return att_hook_attached()->process;
}

/* ---- NCCL's calls do not pass through the preload ---- */

static void calls_alone(int stamps)
{
    for (int abi = 5; abi <= 6; abi++) {
        fake_comm_t comm;
        fake_init(&comm, &fake_linked, abi, 0xabc + (uint64_t)abi, 2, 0);
        atomic_store(&process()->timing, 1);
        for (int i = 0; i < 4; i++)
            fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
        CHECK_EQUAL(fake_mask & STAMPS, stamps);
        fake_destroy(&comm);
        atomic_store(&process()->timing, 0);
    }
}

ISOLATED(nothing_is_stamped_where_nobody_tells)
{
    load_driver();
    calls_alone(0);
    CHECK(strstr(fake_log_text, "no call is timed from here on: it is not known before a call") !=
          NULL);
    CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_UNTOLD);
}

ISOLATED(stamped_on_the_users_word)
{
    load_driver();
    setenv("ATTUNE_GRAPHS", "no", 1);
    calls_alone(STAMPS);
}

ISOLATED(stamped_without_a_driver)
{
    calls_alone(STAMPS);
}

/* Settings are applied all the same. */
ISOLATED(applied_where_nobody_tells)
{
    load_driver();
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    agent_memory();
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.channels = 3;
    agent_commit(agent_task(ATT_COLLECTIVE_ALL_REDUCE, 4096), 1, &setting, 1, 1);
    fake_op_t op = fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(op.channels, 3);
    fake_destroy(&comm);
}

/* Point-to-point calls alone in a graph: their replays, too, set NCCL's two counts apart. */
ISOLATED(a_captured_group_without_collectives)
{
    for (int abi = 5; abi <= 6; abi++) {
        fake_comm_t comm;
        fake_init(&comm, &fake_linked, abi, 0xabc + (uint64_t)abi, 2, 0);
        atomic_store(&process()->timing, 1);
        atomic_store(&process()->unstamped, 0);
        fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
        CHECK_EQUAL(fake_mask & STAMPS, STAMPS);
        comm.captured = true;
        fake_begin(&comm);
        fake_end(&comm);
        comm.captured = false;
        CHECK_EQUAL(fake_mask & STAMPS, 0);
        fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
        CHECK_EQUAL(fake_mask & STAMPS, 0);
        CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_GRAPH);
        fake_destroy(&comm);
        atomic_store(&process()->timing, 0);
    }
}

/* ---- AllGatherV ---- */

static void broadcasts(fake_comm_t *comm, int calls, const int *roots)
{
    fake_begin(comm);
    for (int i = 0; i < calls; i++) {
        comm->root = roots[i];
        fake_enqueue(comm, ATT_COLLECTIVE_BROADCAST, 1024, false);
    }
    CHECK_EQUAL(fake_prepare(comm), 0);
    fake_end(comm);
}

static void stamps_after(int abi, const char *enabled, int calls, const int *roots, int stamps)
{
    fake_comm_t comm;
    if (enabled != NULL)
        setenv("NCCL_ALLGATHERV_ENABLE", enabled, 1);
    else
        unsetenv("NCCL_ALLGATHERV_ENABLE");
    fake_init(&comm, &fake_linked, abi, 0xabc, 2, 0);
    atomic_store(&process()->timing, 1);
    atomic_store(&process()->unstamped, 0);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(fake_mask & STAMPS, STAMPS);
    broadcasts(&comm, calls, roots);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(fake_mask & STAMPS, stamps);
    atomic_store(&process()->timing, 0);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    fake_destroy(&comm);
}

ISOLATED(none_after_an_all_gather_v)
{
    static const int same[] = {1, 1, 1}, several[] = {0, 0, 1};
    stamps_after(6, NULL, 3, same, STAMPS);
    stamps_after(6, NULL, 3, several, 0);
    stamps_after(6, "1", 3, several, 0);
    stamps_after(6, "", 3, several, 0); /* for NCCL the default */
    stamps_after(6, "on", 3, several, 0);
    stamps_after(6, "0", 3, several, STAMPS);
    stamps_after(5, NULL, 3, several, STAMPS); /* NCCL 2.28 has none */
}

/* NCCL tells of groups within a group two by two: what counts is that nobody asked the tuner. */
ISOLATED(roots_of_groups_within_a_group)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    atomic_store(&process()->timing, 1);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    for (int i = 0; i < 4; i++) {
        if (i % 2 == 0)
            fake_begin(&comm);
        comm.root = i / 2; /* 0 0, 1 1 */
        fake_enqueue(&comm, ATT_COLLECTIVE_BROADCAST, 1024, false);
        CHECK_EQUAL(atomic_load(&process()->unstamped), i < 2 ? 0 : ATT_UNSTAMPED_GATHERS);
    }
    fake_end(&comm);
    fake_destroy(&comm);
}

/* What an AllGatherV asks is no AllGather's call: NCCL would take its channels as they are. */
ISOLATED(an_all_gather_v_is_not_decided)
{
    fake_comm_t comm;
    int channels = 0;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_call(&comm, ATT_COLLECTIVE_ALL_GATHER, 1024, 100);
    agent_memory();
    uint32_t task = agent_task(ATT_COLLECTIVE_ALL_GATHER, 2048);
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.channels = 20;
    agent_commit(task, 1, &setting, 1, 1);
    fake_begin(&comm);
    for (int i = 0; i < 6; i++) { /* groups within a group: NCCL tells of each */
        if (i % 2 == 0)
            fake_begin(&comm);
        comm.root = i / 2 > 0; /* 0 0, 1 1, 1 1 */
        fake_enqueue(&comm, ATT_COLLECTIVE_BROADCAST, 256, false);
    }
    for (int i = 0; i < 2; i++) { /* once a plan */
        CHECK_EQUAL(fake_ask(&comm, ATT_COLLECTIVE_ALL_GATHER, 2048, comm.costs, comm.algorithms,
                             &channels),
                    0);
        CHECK_EQUAL(channels, 0);
    }
    fake_end(&comm);
    comm.op_count = 0;
    CHECK_EQUAL(fake_call(&comm, ATT_COLLECTIVE_ALL_GATHER, 1024, 100).channels, 20);
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[0].word) >> 1, 2);
    fake_destroy(&comm);
}

ISOLATED(roots_of_one_group_only)
{
    static const int first[] = {0}, second[] = {1};
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    atomic_store(&process()->timing, 1);
    broadcasts(&comm, 1, first);
    broadcasts(&comm, 1, second);
    CHECK_EQUAL(atomic_load(&process()->unstamped), 0);
    fake_destroy(&comm);
}

/* ---- through the preload, on the host fabric ---- */

static float buffers[RANKS][2048];
static pthread_barrier_t meet;

static void *run_rank(void *argument)
{
    rank_t *r = argument;
    CHECK_EQUAL(ncclCommInitRank(&r->comm, RANKS, r->id, r->rank), 0);
    r->body(r);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
    return NULL;
}

static void on_ranks(void (*body)(rank_t *))
{
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    pthread_barrier_init(&meet, NULL, RANKS);
    fabric_ranks(FABRIC, RANKS, run_rank, body);
}

static void reduce_half(rank_t *r, int half)
{
    float *mine = buffers[r->rank] + 1024 * half;
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
}

static void reduce(rank_t *r)
{
    reduce_half(r, 0);
}

static int stamps(const rank_t *r)
{
    _Atomic int *mask = att_preload_comm_find(r->comm)->copy->mask;
    CHECK(mask != NULL);
    return atomic_load(mask) & STAMPS;
}

/* One rank's stream captures; the other rank's may see it at its next call. */
static void set(const rank_t *r, int *what, int value)
{
    pthread_barrier_wait(&meet);
    if (r->rank == 0)
        *what = value;
    pthread_barrier_wait(&meet);
}

static void stamped_calls(rank_t *r)
{
    if (r->rank == 0)
        atomic_store(&process()->timing, 1);
    pthread_barrier_wait(&meet);
    for (int i = 0; i < 3; i++)
        reduce(r);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), STAMPS);
    pthread_barrier_wait(&meet);
}

/* The very first captured call is looked at before NCCL reads its mask. */
static void captured_calls(rank_t *r)
{
    stamped_calls(r);
    set(r, capturing, 1);
    for (int i = 0; i < 3; i++)
        reduce(r);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_GRAPH);
    set(r, capturing, 0);
    for (int i = 0; i < 3; i++)
        reduce(r);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), 0); /* for good */
}

static uint32_t timed_of(void (*body)(rank_t *), uint32_t *calls)
{
    load_driver();
    on_ranks(body);
    agent_memory();
    att_record_t record;
    uint32_t timed = 0;
    *calls = 0;
    while (agent_record(&record)) {
        if (record.untimed == ATT_UNTIMED_NO && record.call > *calls)
            *calls = (uint32_t)record.call;
        timed += record.untimed == ATT_UNTIMED_NO;
    }
    return timed;
}

ISOLATED(the_first_captured_call_carries_none)
{
    uint32_t last;
    CHECK(timed_of(captured_calls, &last) > 0);
    CHECK(last < 3);
}

static void captured_group(rank_t *r)
{
    stamped_calls(r);
    set(r, capturing, 1);
    CHECK_EQUAL(ncclGroupStart(), 0);
    reduce(r);
    CHECK_EQUAL(stamps(r), 0);
    reduce_half(r, 1); /* may run beside it */
    CHECK_EQUAL(ncclGroupEnd(), 0);
    pthread_barrier_wait(&meet);
    set(r, capturing, 0);
}

ISOLATED(in_a_group_too)
{
    uint32_t last;
    timed_of(captured_group, &last);
    CHECK(last < 3);
}

/* The driver cannot say: this call goes without, the next one may have stamps again. */
static void unknown_calls(rank_t *r)
{
    stamped_calls(r);
    set(r, answer, 201);
    reduce(r);
    set(r, answer, 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), 0);
    reduce(r);
    reduce(r);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), STAMPS);
}

ISOLATED(where_the_driver_cannot_say)
{
    uint32_t last;
    timed_of(unknown_calls, &last);
    CHECK(last > 3);
}

/* Another stream captures, and this one is the legacy stream. */
static void other_captures(rank_t *r)
{
    stamped_calls(r);
    set(r, answer, 906);
    reduce(r);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_GRAPH);
    set(r, answer, 0);
}

ISOLATED(where_another_stream_captures)
{
    uint32_t last;
    timed_of(other_captures, &last);
}

/* One communicator's calls come through the preload, another's by functions that were taken with
 * dlsym from the same NCCL: its captured calls would be told of too late. */
static void taken_calls(rank_t *r)
{
    void *nccl = dlopen(FABRIC, RTLD_NOW | RTLD_NOLOAD);
    __typeof__(&ncclAllReduce) taken = (__typeof__(&ncclAllReduce))dlsym(nccl, "pncclAllReduce");
    CHECK(taken != NULL);
    stamped_calls(r);
    CHECK_EQUAL(taken(buffers[r->rank], buffers[r->rank], 1024, 7, 0, r->comm, NULL), 0);
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(stamps(r), 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_UNTOLD);
    pthread_barrier_wait(&meet);
}

ISOLATED(not_beside_calls_that_pass_by)
{
    uint32_t last;
    timed_of(taken_calls, &last);
}

/* ---- on an NCCL that only looks at its mask ---- */

typedef struct copy {
    void *comm;
    int *seen;
    _Atomic int mask;
} copy_t;

static void open_copy(copy_t *copy)
{
    att_nccl_id_t id = {{0}};
    void *nccl = dlopen(COPY, RTLD_NOW | RTLD_GLOBAL);
    CHECK(nccl != NULL);
    CHECK(att_hook_attach(NULL) != NULL);
    int **mask = dlsym(nccl, "copy_mask");
    copy->seen = dlsym(nccl, "copy_seen");
    CHECK(mask != NULL && copy->seen != NULL);
    *mask = (int *)&copy->mask;
    CHECK_EQUAL(ncclCommInitRank(&copy->comm, 2, id, 0), 0);
    CHECK(att_preload_copy_watch(mask, &copy->mask));
    CHECK(!att_preload_copy_watch(&fake_mask, &copy->mask)); /* in another object */
    copy->mask = STAMPS;
    att_stamps_by_preload = true;
}

/* Whether stamps are on or not: another thread may put them on at any moment. */
ISOLATED(every_call_is_looked_at)
{
    copy_t copy;
    load_driver();
    open_copy(&copy);
    CHECK_EQUAL(ncclAllReduce("", (void *)"", 1, 7, 0, copy.comm, NULL), 0);
    CHECK_EQUAL(*copy.seen, STAMPS);
    for (int i = 0; i < 3; i++) {
        copy.mask = i == 0 ? 0 : STAMPS;
        atomic_store(&process()->unstamped, 0);
        ((att_preload_copy_t *)att_preload_comm_find(copy.comm)->copy)->bare = false;
        *capturing = 1;
        CHECK_EQUAL(i < 2 ? ncclAllReduce("", (void *)"", 1, 7, 0, copy.comm, NULL)
                          : ncclSend("", 1, 7, 1, copy.comm, NULL),
                    0);
        *capturing = 0;
        CHECK_EQUAL(*copy.seen, 0);
        CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_GRAPH);
        att_stamps_on(process(), &copy.mask);
        CHECK_EQUAL(copy.mask, 0);
    }
}

/* The end was seen through another copy's mask, or its thread has not come to this one's yet. */
ISOLATED(an_end_elsewhere_is_one_here)
{
    copy_t copy;
    load_driver();
    open_copy(&copy);
    atomic_store(&process()->unstamped, ATT_UNSTAMPED_GATHERS);
    CHECK_EQUAL(ncclAllReduce("", (void *)"", 1, 7, 0, copy.comm, NULL), 0);
    CHECK_EQUAL(*copy.seen, 0);
    CHECK_EQUAL(copy.mask, 0);
}

/* What a driver says that cannot tell. */
ISOLATED(a_driver_that_fails_ends_stamps)
{
    copy_t copy;
    load_driver();
    open_copy(&copy);
    *answer = 700;
    CHECK_EQUAL(ncclAllReduce("", (void *)"", 1, 7, 0, copy.comm, NULL), 0);
    CHECK_EQUAL(*copy.seen, 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_UNTOLD);
}

ISOLATED(point_to_point_goes_without)
{
    copy_t copy;
    load_driver();
    open_copy(&copy);
    CHECK_EQUAL(ncclSend("", 1, 7, 1, copy.comm, NULL), 0);
    CHECK_EQUAL(*copy.seen, 0);
    CHECK_EQUAL(copy.mask, STAMPS);
    copy.mask = 0;
    CHECK_EQUAL(ncclSend("", 1, 7, 1, copy.comm, NULL), 0);
    CHECK_EQUAL(copy.mask, 0);
}

/* ---- threads ---- */

static _Atomic int contested, over;

static void *put_on(void *argument)
{
    while (!atomic_load(&over))
        att_stamps_on(argument, &contested);
    return NULL;
}

ISOLATED(an_end_is_an_end)
{
    pthread_t thread;
    CHECK(att_hook_attach(NULL) != NULL);
    CHECK_EQUAL(pthread_create(&thread, NULL, put_on, process()), 0);
    for (int i = 0; i < 20000; i++) {
        atomic_store(&process()->unstamped, 0);
        for (int wait = 0; wait < 1000 && atomic_load(&contested) == 0; wait++)
            continue;
        att_stamps_end(process(), &contested, ATT_UNSTAMPED_GRAPH);
        CHECK_EQUAL(atomic_load(&contested), 0);
    }
    atomic_store(&over, 1);
    pthread_join(thread, NULL);
}

/* ---- what NCCL is spared ---- */

ISOLATED(handles_only_where_they_are_of_use)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_op_t op = fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    CHECK(op.api == NULL);
    atomic_store(&process()->timing, 1);
    fake_call(&comm, ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    fake_begin(&comm);
    CHECK(comm.group == NULL);
    fake_op_t *second = fake_enqueue(&comm, ATT_COLLECTIVE_ALL_REDUCE, 1024, false);
    CHECK(second->api != NULL);
    fake_end(&comm);
    fake_destroy(&comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_stamped_where_nobody_tells),
        cmocka_unit_test(stamped_on_the_users_word),
        cmocka_unit_test(stamped_without_a_driver),
        cmocka_unit_test(applied_where_nobody_tells),
        cmocka_unit_test(a_captured_group_without_collectives),
        cmocka_unit_test(none_after_an_all_gather_v),
        cmocka_unit_test(an_all_gather_v_is_not_decided),
        cmocka_unit_test(roots_of_groups_within_a_group),
        cmocka_unit_test(roots_of_one_group_only),
        cmocka_unit_test(the_first_captured_call_carries_none),
        cmocka_unit_test(in_a_group_too),
        cmocka_unit_test(where_the_driver_cannot_say),
        cmocka_unit_test(where_another_stream_captures),
        cmocka_unit_test(not_beside_calls_that_pass_by),
        cmocka_unit_test(every_call_is_looked_at),
        cmocka_unit_test(an_end_elsewhere_is_one_here),
        cmocka_unit_test(a_driver_that_fails_ends_stamps),
        cmocka_unit_test(point_to_point_goes_without),
        cmocka_unit_test(an_end_is_an_end),
        cmocka_unit_test(handles_only_where_they_are_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
