/* Communicator variants on the host fabric: made or refused by all ranks alike, which calls are
 * sent where, what is counted for whom, ending them. */
#include "hook/variant.h"
#include "fabric_ranks.h"
#include "isolated.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define RANKS 2
#define COUNT 65536

static float buffers[RANKS][COUNT];
static pthread_barrier_t meet;
static bool one_shares; /* rank 1 asks for shared resources */

static void *run_rank(void *argument)
{
    rank_t *r = argument;
    att_nccl_config_t config[2] = {{.size = sizeof config[0],
                                    .magic = ATT_NCCL_CONFIG_MAGIC,
                                    .version = 23007,
                                    .blocking = ATT_NCCL_UNDEFINED_INT,
                                    .cga_cluster_size = ATT_NCCL_UNDEFINED_INT,
                                    .min_ctas = ATT_NCCL_UNDEFINED_INT,
                                    .max_ctas = ATT_NCCL_UNDEFINED_INT,
                                    .split_share = one_shares && r->rank == 1,
                                    .traffic_class = ATT_NCCL_UNDEFINED_INT,
                                    .collnet_enable = ATT_NCCL_UNDEFINED_INT,
                                    .cta_policy = ATT_NCCL_UNDEFINED_INT}};
    CHECK_EQUAL(ncclCommInitRankConfig(&r->comm, RANKS, r->id, r->rank, config), 0);
    r->body(r);
    return NULL;
}

static void on_ranks(const char *variants, void (*body)(rank_t *))
{
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_ENV_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_NO_CACHE", "NCCL_NTHREADS", 1);
    setenv("NCCL_ALGO", "Ring", 1);
    setenv("NCCL_PROTO", "Simple", 1);
    setenv("ATTUNE_VARIANTS", variants, 1);
    pthread_barrier_init(&meet, NULL, RANKS);
    fabric_ranks(FABRIC, RANKS, run_rank, body);
}

/* All ranks' buffers hold rank + 1; the sum comes out. */
static void reduce(rank_t *r)
{
    float *mine = buffers[r->rank];
    for (int i = 0; i < COUNT; i++)
        mine[i] = (float)(r->rank + 1);
    CHECK_EQUAL(ncclAllReduce(mine, mine, COUNT, 7, 0, r->comm, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(mine[i] == 3.0f);
}

static att_setting_t with_threads(uint16_t threads)
{
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.algorithm = ATT_ALGORITHM_RING;
    setting.protocol = ATT_PROTOCOL_SIMPLE;
    setting.threads = threads;
    return setting;
}

/* ---- sent where the setting says ---- */

static void play_settings(rank_t *r)
{
    struct att_family *family = att_preload_comm_find(r->comm)->family;
    CHECK(family != NULL);
    CHECK_EQUAL(family->usable, 7);
    atomic_store(&att_hook_attached()->process->timing, 1);
    for (int i = 0; i < 4; i++) /* the first is at home, and makes the task and the route */
        reduce(r);
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        att_setting_t list[] = {with_threads(128), with_threads(256), with_threads(0),
                                with_threads(512), ATT_SETTING_KEEP};
        agent_memory();
        agent_commit(agent_task(ATT_COLLECTIVE_ALL_REDUCE, COUNT * 4), 6, list, 5, 2);
    }
    pthread_barrier_wait(&meet);
    for (int i = 4; i < 20; i++)
        reduce(r);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

/* Ranks that add the same one at once leave a retired entry behind. */
static uint32_t live_groups(att_segment_memory_t *memory)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < atomic_load(&memory->header.group_count); i++)
        live += atomic_load(&memory->groups[i].state) == ATT_ENTRY_LIVE;
    return live;
}

static uint32_t live_tasks(att_segment_memory_t *memory)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < atomic_load(&memory->header.task_count); i++)
        live += atomic_load(&memory->tasks[i].state) == ATT_ENTRY_LIVE;
    return live;
}

ISOLATED(threads_of_every_call)
{
    on_ranks("nt=128,256,512", play_settings);
    att_segment_memory_t *memory = agent_memory();
    /* One group, a member a rank, a lane each: the variants count for their parent. */
    CHECK_EQUAL(live_groups(memory), 1);
    CHECK_EQUAL(atomic_load(&memory->header.member_count), RANKS);
    CHECK_EQUAL(live_tasks(memory), 1);
    CHECK_EQUAL(atomic_load(&memory->header.lane_count), RANKS);
    CHECK_EQUAL(atomic_load(&memory->lanes[0].variants), 7);
    CHECK_EQUAL(atomic_load(&memory->lanes[0].word) >> 1, 20);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->called), RANKS * 20);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->answered), RANKS * 20);
    /* Ring/Simple runs one warp more than the threads asked for (NCCL's rule, fabric/decision.c).
     */
    static const int expected[] = {128 + 32, 128 + 32, 256 + 32, 256 + 32,
                                   0,        0,        512 + 32, 512 + 32};
    att_record_t record;
    int seen = 0;
    while (agent_record(&record)) {
        CHECK(record.call < 20);
        if (record.untimed != ATT_UNTIMED_NO || record.call < 6 || record.call >= 14)
            continue;
        CHECK_EQUAL(record.task, 0);
        CHECK(record.member < RANKS);
        if (expected[record.call - 6] != 0)
            CHECK_EQUAL(record.threads, expected[record.call - 6]);
        seen++;
    }
    CHECK_EQUAL(seen, RANKS * 8);
}

/* ---- stays at home ---- */

static void stay_home(rank_t *r)
{
    att_preload_comm_t *entry = att_preload_comm_find(r->comm);
    float *mine = buffers[r->rank];
    for (int i = 0; i < 4; i++)
        reduce(r);
    pthread_barrier_wait(&meet);
    if (r->rank == 0) {
        att_setting_t setting = with_threads(128);
        agent_memory();
        agent_commit(agent_task(ATT_COLLECTIVE_ALL_REDUCE, COUNT * 4), 4, &setting, 1, 1);
    }
    pthread_barrier_wait(&meet);
    reduce(r);
    CHECK(entry->family != NULL);
    void *variant = ((struct att_family *)entry->family)->comms[0];
    CHECK(((struct att_family *)entry->family)->last_comm == variant);
    /* In a group, also when it is alone in it. */
    CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(ncclAllReduce(mine, mine, COUNT, 7, 0, r->comm, NULL), 0);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    CHECK(((struct att_family *)entry->family)->last_comm == r->comm);
    /* Another size has a task of its own, without this setting. */
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    CHECK(((struct att_family *)entry->family)->last_comm == r->comm);
    reduce(r);
    CHECK(((struct att_family *)entry->family)->last_comm == variant);
    /* For good, once a window was seen. */
    att_family_keep_home(entry);
    reduce(r);
    CHECK(((struct att_family *)entry->family)->last_comm == r->comm);
    int error = 1;
    CHECK_EQUAL(ncclCommGetAsyncError(r->comm, &error), 0);
    CHECK_EQUAL(error, 0);
    CHECK_EQUAL(ncclCommFinalize(r->comm), 0);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
    CHECK(att_preload_comm_find(r->comm) == NULL);
}

ISOLATED(calls_that_are_not_sent)
{
    on_ranks("nt=128", stay_home);
}

/* A call that NCCL refuses before it asks leaves its number to the next one. */
static void refuse_one(rank_t *r)
{
    for (int i = 0; i < 3; i++)
        reduce(r);
    CHECK(ncclAllReduce(NULL, NULL, COUNT, 7, 0, r->comm, NULL) != 0);
    reduce(r);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

ISOLATED(refused_call)
{
    FILE *file = freopen("/dev/null", "w", stderr);
    CHECK(file != NULL);
    on_ranks("nt=128", refuse_one);
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[0].word) >> 1, 4);
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[1].word) >> 1, 4);
}

/* ---- none are made ---- */

static void without(rank_t *r)
{
    CHECK(att_preload_comm_find(r->comm)->family == NULL);
    for (int i = 0; i < 4; i++)
        reduce(r);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

/* One rank must not make them: the other learns it, and neither has any. */
ISOLATED(one_rank_cannot)
{
    FILE *file = freopen("/dev/null", "w", stderr);
    CHECK(file != NULL);
    one_shares = true;
    CHECK(att_hook_attach(NULL) != NULL);
    att_hook_attached()->memory->header.wait_ns = 20000000;
    on_ranks("nt=128", without);
    CHECK_EQUAL(atomic_load(&agent_memory()->groups[0].variants_state), ATT_VARIANTS_REFUSE);
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[0].variants), 0);
}

/* The real fabric has no transports: all ranks fail alike, and go on without. */
ISOLATED(cannot_be_made)
{
    FILE *file = freopen("/dev/null", "w", stderr);
    CHECK(file != NULL);
    on_ranks("t=shm", without);
    CHECK_EQUAL(atomic_load(&agent_memory()->groups[0].variants_state), ATT_VARIANTS_USE);
    CHECK_EQUAL(atomic_load(&agent_memory()->groups[0].variants_failed), 1);
}

/* ---- ending ---- */

static void *abort_rank(void *argument)
{
    const att_context_t *context = att_preload_comm_find(argument)->context;
    while (atomic_load(&context->gate.waiting) == 0)
        usleep(1000);
    CHECK_EQUAL(ncclCommAbort(argument), 0);
    return NULL;
}

static void abort_at_fence(rank_t *r)
{
    float *mine = buffers[r->rank];
    pthread_t watchdog;
    for (int i = 0; i < 3; i++)
        reduce(r);
    pthread_barrier_wait(&meet);
    if (r->rank == 0) { /* a list that is never decided */
        att_segment_memory_t *memory = agent_memory();
        memory->header.wait_ns = 600000000000u;
        memory->header.in_doubt_ns = 600000000000u;
        uint32_t task = agent_task(ATT_COLLECTIVE_ALL_REDUCE, COUNT * 4), lanes[64];
        uint32_t count = agent_lanes(task, lanes);
        att_schedule_t list = {.txn = 1, .count = 1};
        list.entries[0] = (att_schedule_entry_t){3, with_threads(128)};
        CHECK_EQUAL(att_home_open(&memory->tasks[task], 1), ATT_OK);
        CHECK_EQUAL(att_vote_prepare(memory, &memory->tasks[task], lanes, count, &list),
                    ATT_VOTE_YES);
    }
    pthread_barrier_wait(&meet);
    CHECK_EQUAL(pthread_create(&watchdog, NULL, abort_rank, r->comm), 0);
    CHECK(ncclAllReduce(mine, mine, COUNT, 7, 0, r->comm, NULL) != 0);
    CHECK_EQUAL(pthread_join(watchdog, NULL), 0);
}

ISOLATED(abort_with_variants)
{
    on_ranks("nt=128,256", abort_at_fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_every_call), cmocka_unit_test(calls_that_are_not_sent),
        cmocka_unit_test(refused_call),          cmocka_unit_test(one_rank_cannot),
        cmocka_unit_test(cannot_be_made),        cmocka_unit_test(abort_with_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
