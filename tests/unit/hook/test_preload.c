/* The preload: which NCCL a call reaches, what is counted, re-entry, forks, threads, taking down.
 * The program exports the hook's functions, so that they stand in front of every NCCL it loads. */
#include "hook/preload.h"
#include "hook/preload_comm.h"
#include "hook/tuner.h"
#include "fabric_ranks.h"
#include "isolated.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define RANKS 2

/* Modules and copies as they are loaded: each with RTLD_LOCAL, each with its own NCCL. */
typedef struct module {
    void *handle;
    int (*init)(void **comm);
    int (*all_reduce)(void *comm);
    int (*group)(void);
    int *calls; /* of its NCCL */
    int *answer;
} module_t;

static module_t load(const char *module, const char *copy)
{
    module_t m = {.handle = dlopen(module, RTLD_NOW | RTLD_LOCAL)};
    void *nccl = dlopen(copy, RTLD_NOW | RTLD_NOLOAD);
    CHECK(m.handle != NULL);
    CHECK(nccl != NULL);
    m.init = (int (*)(void **))dlsym(m.handle, "use_init");
    m.all_reduce = (int (*)(void *))dlsym(m.handle, "use_all_reduce");
    m.group = (int (*)(void))dlsym(m.handle, "use_group");
    m.calls = dlsym(nccl, "copy_calls");
    m.answer = dlsym(nccl, "copy_answer");
    return m;
}

static module_t load_first(void)
{
    return load(FIRST_USER, FIRST_COPY);
}

static module_t load_second(void)
{
    return load(SECOND_USER, SECOND_COPY);
}

/* ---- which NCCL ---- */

ISOLATED(no_nccl)
{
    FILE *file = freopen("/dev/null", "w", stderr);
    CHECK(file != NULL);
    void *comm = NULL;
    att_nccl_id_t id = {{0}};
    CHECK_EQUAL(ncclCommInitRank(&comm, 2, id, 0), ATT_NCCL_INVALID_USAGE);
    CHECK_EQUAL(ncclAllReduce("", (void *)"", 1, 7, 0, (void *)64, NULL), ATT_NCCL_INVALID_USAGE);
    CHECK_EQUAL(ncclGroupStart(), ATT_NCCL_INVALID_USAGE);
    CHECK_EQUAL(att_preload_thread.inside, 0);
    CHECK_EQUAL(att_preload_thread.depth, 0);
}

/* Both loaded after the start: each module's calls reach the NCCL that it is linked with. */
ISOLATED(two_copies)
{
    module_t a = load_first(), b = load_second();
    CHECK(a.calls != b.calls);
    void *x = NULL, *y = NULL;
    CHECK_EQUAL(a.init(&x), 0);
    CHECK_EQUAL(b.init(&y), 0);
    CHECK(x != NULL && y != NULL && x != y);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(a.all_reduce(x), 0);
        CHECK_EQUAL(a.group(), 0);
    }
    CHECK_EQUAL(b.all_reduce(y), 0);
    CHECK_EQUAL(a.calls[ATT_NCCL_CommInitRank], 1);
    CHECK_EQUAL(b.calls[ATT_NCCL_CommInitRank], 1);
    CHECK_EQUAL(a.calls[ATT_NCCL_AllReduce], 3);
    CHECK_EQUAL(a.calls[ATT_NCCL_GroupEnd], 3);
    CHECK_EQUAL(b.calls[ATT_NCCL_AllReduce], 1);
    CHECK_EQUAL(b.calls[ATT_NCCL_GroupStart], 0);
    /* A communicator's own copy, also when somebody else calls. */
    CHECK_EQUAL(a.all_reduce(y), 0);
    CHECK_EQUAL(b.calls[ATT_NCCL_AllReduce], 2);
    CHECK_EQUAL(ncclCommDestroy(y), 0);
    CHECK_EQUAL(b.calls[ATT_NCCL_CommDestroy], 1);
    CHECK(att_preload_comm_find(y) == NULL);
    CHECK(att_preload_comm_find(x) != NULL);
    CHECK_EQUAL(att_preload_comm_find(x)->rank, 1);
}

/* A program that closes its NCCL, and calls it again or loads it anew: loaded for everybody, and as
 * what one of its modules is linked with. */
ISOLATED(closed_copy)
{
    att_nccl_id_t id = {{0}};
    for (int round = 0; round < 3; round++) {
        void *comm = NULL, *nccl = dlopen(FIRST_COPY, RTLD_NOW | RTLD_GLOBAL);
        CHECK(nccl != NULL);
        CHECK_EQUAL(ncclCommInitRank(&comm, 2, id, 0), 0);
        CHECK_EQUAL(ncclAllReduce("", (void *)"", 1, 7, 0, comm, NULL), 0);
        CHECK_EQUAL(ncclCommDestroy(comm), 0);
        CHECK_EQUAL(dlclose(nccl), 0);
        CHECK_EQUAL(ncclGroupStart(), 0);
        CHECK_EQUAL(ncclGroupEnd(), 0);
    }
}

ISOLATED(closed_module)
{
    for (int round = 0; round < 3; round++) {
        void *comm = NULL;
        module_t m = load_second();
        CHECK_EQUAL(m.init(&comm), 0);
        CHECK_EQUAL(m.all_reduce(comm), 0);
        CHECK_EQUAL(ncclCommDestroy(comm), 0);
        CHECK_EQUAL(dlclose(m.handle), 0);
    }
}

/* What a version lacks is refused; an error of NCCL comes back as it is. */
ISOLATED(results)
{
    module_t a = load_first();
    void *comm = NULL;
    CHECK_EQUAL(a.init(&comm), 0);
    FILE *file = freopen("/dev/null", "w", stderr);
    CHECK(file != NULL);
    CHECK_EQUAL(ncclGroupSimulateEnd(NULL), ATT_NCCL_INVALID_USAGE);
    CHECK_EQUAL(ncclCommRevoke(comm, 0), ATT_NCCL_INVALID_USAGE);
    *a.answer = 6;
    CHECK_EQUAL(a.all_reduce(comm), 6);
    CHECK_EQUAL(ncclGroupStart(), 6);
    CHECK_EQUAL(att_preload_thread.depth, 0);
    CHECK_EQUAL(ncclCommAbort(comm), 6);
    CHECK_EQUAL(att_preload_thread.inside, 0);
    void *other = NULL;
    att_nccl_id_t bad = {{5}};
    CHECK_EQUAL(ncclCommInitRank(&other, 2, bad, 0), 5);
    CHECK(att_preload_comm_find(other) == NULL);
}

/* ncclBcast calls ncclBroadcast by its exported name, which is the preload's: one call. */
ISOLATED(reentry)
{
    module_t a = load_first();
    void *comm = NULL;
    CHECK_EQUAL(a.init(&comm), 0);
    CHECK(att_hook_attach(NULL) != NULL);
    const att_segment_process_t *process = att_hook_attached()->process;
    CHECK_EQUAL(ncclBcast((void *)"", 8, 7, 0, comm, NULL), 0);
    CHECK_EQUAL(a.calls[ATT_NCCL_Bcast], 1);
    CHECK_EQUAL(a.calls[ATT_NCCL_Broadcast], 1);
    CHECK_EQUAL(atomic_load(&process->called), 1);
    CHECK_EQUAL(att_preload_thread.inside, 0);
}

/* ---- what is counted ---- */

ISOLATED(counts)
{
    module_t a = load_first();
    void *comm = NULL;
    CHECK_EQUAL(a.init(&comm), 0);
    CHECK_EQUAL(a.all_reduce(comm), 0); /* before there is anything to count in */
    CHECK(att_hook_attach(NULL) != NULL);
    const att_segment_process_t *process = att_hook_attached()->process;
    CHECK_EQUAL(a.all_reduce(comm), 0);
    CHECK_EQUAL(ncclAllReduce("", (void *)"", 0, 7, 0, comm, NULL), 0); /* empty: no collective */
    CHECK_EQUAL(ncclSend("", 8, 7, 0, comm, (void *)16), 0);
    CHECK_EQUAL(ncclAlltoAll("", (void *)"", 8, 7, comm, (void *)32), 0);
    CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(a.all_reduce(comm), 0);
    CHECK_EQUAL(a.all_reduce(comm), 0);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    CHECK_EQUAL(atomic_load(&process->called), 1);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    CHECK_EQUAL(atomic_load(&process->called), 3);
    CHECK_EQUAL(atomic_load(&process->answered), 0); /* this NCCL asks nobody */
    CHECK_EQUAL(atomic_load(&process->bypassed), 2);
    CHECK_EQUAL(atomic_load(&process->streams), 3);
    *a.answer = 4;
    CHECK_EQUAL(a.all_reduce(comm), 4);
    CHECK_EQUAL(atomic_load(&process->called), 3);
}

/* ---- ranks on the host fabric ---- */

static float buffers[RANKS][4096];

static void *run_rank(void *argument)
{
    rank_t *rank = argument;
    CHECK_EQUAL(ncclCommInitRank(&rank->comm, RANKS, rank->id, rank->rank), 0);
    rank->body(rank);
    return NULL;
}

static void on_ranks(void (*body)(rank_t *))
{
    if (getenv("NCCL_PROFILER_PLUGIN") == NULL)
        setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    fabric_ranks(FABRIC, RANKS, run_rank, body);
}

static void call_all_kinds(rank_t *r)
{
    float *mine = buffers[r->rank];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
        CHECK_EQUAL(ncclAllGather(mine, mine, 512, 8, r->comm, NULL), 0);
        CHECK_EQUAL(ncclReduceScatter(mine, mine, 256, 7, 0, r->comm, NULL), 0);
        CHECK_EQUAL(ncclBcast(mine, 128, 7, 0, r->comm, NULL), 0);
        CHECK_EQUAL(ncclReduce(mine, mine, 64, 7, 0, 1, r->comm, NULL), 0);
    }
    CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    CHECK_EQUAL(ncclReduce(mine + 2048, mine + 2048, 64, 7, 0, 1, r->comm, NULL), 0);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

ISOLATED(every_collective_is_answered)
{
    on_ranks(call_all_kinds);
    const att_segment_process_t *process = att_hook_attached()->process;
    CHECK_EQUAL(atomic_load(&process->called), RANKS * 22);
    CHECK_EQUAL(atomic_load(&process->answered), RANKS * 22);
    CHECK_EQUAL(atomic_load(&process->bypassed), 0);
    CHECK_EQUAL(atomic_load(&process->streams), 1);
}

static void gather_timed(rank_t *r)
{
    float *mine = buffers[r->rank];
    atomic_store(&att_hook_attached()->process->timing, 1);
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(ncclAllGather(mine, mine, 512, 8, r->comm, NULL), 0);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

/* NCCL turns an AllGather into bytes before any plugin sees it. */
ISOLATED(data_type_of_an_all_gather)
{
    on_ranks(gather_timed);
    att_record_t record;
    int timed = 0;
    while (agent_record(&record)) {
        CHECK_EQUAL(record.datatype, 8);
        timed += record.untimed == ATT_UNTIMED_NO;
    }
    CHECK(timed > 0);
}

/* The preload knows the rank: the tuner alone is enough to be a member. */
ISOLATED(rank_without_profiler)
{
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    on_ranks(call_all_kinds);
    att_segment_memory_t *memory = agent_memory();
    CHECK_EQUAL(atomic_load(&memory->header.member_count), RANKS);
    CHECK_EQUAL(memory->members[0].rank + memory->members[1].rank, 1);
    CHECK_EQUAL(memory->members[0].profiler_abi, 0);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->answered), RANKS * 22);
}

/* ---- what a tuner takes away ---- */

static size_t config_bytes;

static void *run_with_policy(void *argument)
{
    rank_t *rank = argument;
    att_nccl_config_t config = {
        .size = config_bytes, .magic = ATT_NCCL_CONFIG_MAGIC, .version = 23007, .cta_policy = 1};
    CHECK_EQUAL(ncclCommInitRankConfig(&rank->comm, RANKS, rank->id, rank->rank, &config), 0);
    CHECK_EQUAL(ncclCommDestroy(rank->comm), 0);
    return NULL;
}

/* How often it is said. */
static int warnings_of_policy(size_t bytes)
{
    char line[400];
    int count = 0;
    FILE *file = freopen("policy.txt", "w", stderr);
    CHECK(file != NULL);
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    config_bytes = bytes;
    fabric_ranks(FABRIC, RANKS, run_with_policy, NULL);
    fflush(stderr);
    file = fopen("policy.txt", "r");
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, "asks for EFFICIENCY") != NULL;
    fclose(file);
    unlink("policy.txt");
    return count;
}

ISOLATED(efficiency_in_a_configuration_is_told)
{
    CHECK_EQUAL(warnings_of_policy(sizeof(att_nccl_config_t)), 1);
}

/* That of an older NCCL ends before its policy. */
ISOLATED(a_short_configuration_has_no_policy)
{
    CHECK_EQUAL(warnings_of_policy(offsetof(att_nccl_config_t, cta_policy)), 0);
}

/* ---- taking down ---- */

static _Atomic int standing;
static void *abort_of[RANKS];
static bool plugin_alone; /* the abort is seen as the plugin's finalize, as NCCL makes it at once */
static bool shrinks;      /* no abort, but a shrink that aborts what runs */

/* Once the rank's own thread stands at the fence. */
static void *abort_rank(void *argument)
{
    const rank_t *r = argument;
    int (*real)(void *) = (int (*)(void *))dlsym(r->nccl, "pncclCommAbort");
    att_context_t *context = att_context_at(0);
    for (uint32_t i = 0; context->rank != (uint32_t)r->rank; i++)
        context = att_context_at(i);
    while (atomic_load(&context->gate.waiting) == 0)
        usleep(1000);
    if (plugin_alone)
        CHECK_EQUAL(att_tuner_finalize(context), 0);
    if (shrinks) { /* this NCCL has none */
        void *child;
        CHECK(ncclCommShrink(r->comm, NULL, 0, &child, NULL, ATT_NCCL_SHRINK_ABORT) != 0);
        CHECK_EQUAL(atomic_load(&context->gate.waiting), 0);
        CHECK_EQUAL(atomic_load(&context->gate.released), 0); /* it lives on */
        return NULL;
    }
    CHECK_EQUAL((plugin_alone ? real : ncclCommAbort)(r->comm), 0);
    return NULL;
}

static void stand_at_fence(rank_t *r)
{
    float *mine = buffers[r->rank];
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    abort_of[r->rank] = r->comm;
    atomic_fetch_add(&standing, 1);
    while (atomic_load(&standing) < RANKS)
        usleep(1000);
    if (r->rank == 0) { /* a list that is never decided, from the next call on */
        att_segment_memory_t *memory = agent_memory();
        memory->header.wait_ns = 600000000000u;
        memory->header.in_doubt_ns = 600000000000u;
        uint32_t task = agent_task(ATT_COLLECTIVE_ALL_REDUCE, 4096), lanes[64];
        uint32_t count = agent_lanes(task, lanes);
        att_schedule_t list = {.txn = 1, .count = 1};
        list.entries[0] = (att_schedule_entry_t){1, ATT_SETTING_KEEP};
        CHECK_EQUAL(att_home_open(&memory->tasks[task], 1), ATT_OK);
        CHECK_EQUAL(att_vote_prepare(memory, &memory->tasks[task], lanes, count, &list),
                    ATT_VOTE_YES);
        atomic_fetch_add(&standing, 1);
    }
    while (atomic_load(&standing) < RANKS + 1)
        usleep(1000);
    pthread_t watchdog;
    CHECK_EQUAL(pthread_create(&watchdog, NULL, abort_rank, r), 0);
    r->result = ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL);
    CHECK(r->result != 0);
    CHECK_EQUAL(pthread_join(watchdog, NULL), 0);
}

/* An abort by another thread ends a call that waits for a decision that never comes. */
ISOLATED(abort_releases_a_fence)
{
    on_ranks(stand_at_fence);
    for (int r = 0; r < RANKS; r++)
        CHECK(att_preload_comm_find(abort_of[r]) == NULL);
}

/* A call must not be left in what goes. */
ISOLATED(abort_without_preload)
{
    plugin_alone = true;
    on_ranks(stand_at_fence);
    for (uint32_t i = 0; i < RANKS; i++)
        CHECK_EQUAL(atomic_load(&att_context_at(i)->gate.waiting), 0);
}

/* A shrink may end the calls of its parent, which goes on. */
ISOLATED(shrink_releases_a_fence)
{
    shrinks = true;
    on_ranks(stand_at_fence);
    for (int r = 0; r < RANKS; r++)
        CHECK(att_preload_comm_find(abort_of[r]) != NULL);
}

static void *run_grouped(void *argument)
{
    rank_t *rank = argument;
    CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(ncclCommInitRank(&rank->comm, RANKS, rank->id, rank->rank), 0);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    rank->body(rank);
    return NULL;
}

/* Made in a group: which of the hook's communicators it is was never told. */
ISOLATED(abort_of_one_made_in_a_group)
{
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    fabric_ranks(FABRIC, RANKS, run_grouped, stand_at_fence);
    for (int r = 0; r < RANKS; r++)
        CHECK(att_preload_comm_find(abort_of[r]) == NULL);
}

/* ncclSimInfo_t, as the fabric checks it. */
typedef struct simulation {
    size_t size;
    unsigned magic, version;
    float us;
} simulation_t;

/* Only one rank asks how long its group would take: calls keep their numbers on all of them. */
static void simulate(rank_t *r)
{
    float *mine = buffers[r->rank];
    simulation_t info = {sizeof info, 0x74685283, 23007, -1};
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    if (r->rank == 0) {
        CHECK_EQUAL(ncclGroupStart(), 0);
        CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
        CHECK_EQUAL(ncclAllReduce(mine, mine, 512, 7, 0, r->comm, NULL), 0);
        CHECK_EQUAL(ncclGroupSimulateEnd(&info), 0);
        CHECK(info.us > 0);
    }
    /* Within a group it ends the inner one, and the outer one is launched. */
    CHECK_EQUAL(ncclGroupStart(), 0);
    if (r->rank == 0)
        CHECK_EQUAL(ncclGroupStart(), 0);
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    if (r->rank == 0)
        CHECK_EQUAL(ncclGroupSimulateEnd(&info), 0);
    CHECK_EQUAL(ncclGroupEnd(), 0);
    CHECK_EQUAL(ncclAllReduce(mine, mine, 1024, 7, 0, r->comm, NULL), 0);
    CHECK_EQUAL(ncclCommDestroy(r->comm), 0);
}

ISOLATED(simulated_groups_take_no_number)
{
    on_ranks(simulate);
    att_segment_memory_t *memory = agent_memory();
    const att_segment_process_t *process = att_hook_attached()->process;
    CHECK_EQUAL(atomic_load(&memory->header.lane_count), RANKS);
    for (int i = 0; i < RANKS; i++)
        CHECK_EQUAL(atomic_load(&memory->lanes[i].word) >> 1, 4);
    CHECK(atomic_load(&process->simulated) > 0);
    CHECK_EQUAL(atomic_load(&process->unseen), 0);
    CHECK_EQUAL(atomic_load(&process->called), RANKS * 4);
}

/* ---- processes and threads ---- */

ISOLATED(forked_child)
{
    module_t a = load_first();
    void *comm = NULL;
    CHECK_EQUAL(a.init(&comm), 0);
    CHECK(att_hook_attach(NULL) != NULL);
    CHECK_EQUAL(a.all_reduce(comm), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool good = a.all_reduce(comm) == 0 && a.group() == 0 && ncclCommDestroy(comm) == 0;
        _exit(good && a.calls[ATT_NCCL_AllReduce] == 2 ? 0 : 1);
    }
    int status = 1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->called), 1);
    CHECK_EQUAL(a.all_reduce(comm), 0);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->called), 2);
}

#define THREADS 4
#define ROUNDS  4000

static const att_preload_copy_t *some_copy;

static void *churn(void *argument)
{
    uintptr_t base = 4096 + (uintptr_t)argument * 65536;
    for (uintptr_t i = 0; i < ROUNDS; i++) {
        void *comm = (void *)(base + i % 128 * 64);
        att_preload_comm_t *entry = att_preload_comm_add(comm, some_copy, NULL);
        CHECK(entry != NULL);
        CHECK(att_preload_comm_find(comm) == entry);
        CHECK_EQUAL(entry->ranks, 2);
        if (i % 3 != 0)
            att_preload_comm_remove(entry);
        CHECK_EQUAL((att_preload_comm_find(comm) == NULL), (i % 3 != 0));
    }
    return NULL;
}

/* Makes and ends far more than the table holds, on four threads. */
ISOLATED(many_communicators)
{
    void *comm = NULL;
    CHECK_EQUAL(load_first().init(&comm), 0);
    some_copy = att_preload_copy_of((void *)(uintptr_t)many_communicators_body);
    CHECK(some_copy != NULL);
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++)
        CHECK_EQUAL(pthread_create(&threads[t], NULL, churn, (void *)t), 0);
    for (int t = 0; t < THREADS; t++)
        CHECK_EQUAL(pthread_join(threads[t], NULL), 0);
}

static module_t shared;

static void *call_often(void *comm)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQUAL(shared.all_reduce(comm), 0);
        CHECK_EQUAL(shared.group(), 0);
    }
    return NULL;
}

ISOLATED(threads_call)
{
    shared = load_first();
    void *comms[THREADS];
    pthread_t threads[THREADS];
    CHECK(att_hook_attach(NULL) != NULL);
    for (int t = 0; t < THREADS; t++)
        CHECK_EQUAL(shared.init(&comms[t]), 0);
    for (int t = 0; t < THREADS; t++)
        CHECK_EQUAL(pthread_create(&threads[t], NULL, call_often, comms[t]), 0);
    for (int t = 0; t < THREADS; t++)
        CHECK_EQUAL(pthread_join(threads[t], NULL), 0);
    CHECK_EQUAL(atomic_load(&att_hook_attached()->process->called), THREADS * ROUNDS);
    CHECK_EQUAL(shared.calls[ATT_NCCL_AllReduce], THREADS * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_nccl),
        cmocka_unit_test(two_copies),
        cmocka_unit_test(closed_copy),
        cmocka_unit_test(closed_module),
        cmocka_unit_test(results),
        cmocka_unit_test(reentry),
        cmocka_unit_test(counts),
        cmocka_unit_test(every_collective_is_answered),
        cmocka_unit_test(data_type_of_an_all_gather),
        cmocka_unit_test(rank_without_profiler),
        cmocka_unit_test(efficiency_in_a_configuration_is_told),
        cmocka_unit_test(a_short_configuration_has_no_policy),
        cmocka_unit_test(abort_releases_a_fence),
        cmocka_unit_test(abort_without_preload),
        cmocka_unit_test(shrink_releases_a_fence),
        cmocka_unit_test(abort_of_one_made_in_a_group),
        cmocka_unit_test(simulated_groups_take_no_number),
        cmocka_unit_test(forked_child),
        cmocka_unit_test(many_communicators),
        cmocka_unit_test(threads_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
