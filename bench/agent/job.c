#include "job.h"

#include "base/clock.h"
#include "hook/abi/profiler_v6.h"
#include "hook/abi/tuner_v6.h"

#include "attune/setting.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4 << 20, COUNT = BYTES / 4, BATCH_NS = 200000, AHEAD = 512 };

/* NCCL's side of one rank. */
typedef struct caller {
    const att_tuner_v6_t *tuner;
    const att_profiler_v6_t *profiler;
    void *tuner_context, *profiler_context;
    int mask;
    float table[ATT_PAIR_COUNT];
    uint64_t sequence;
} caller_t;

static void quiet(int level, unsigned long subsystems, const char *file, int line,
                  const char *format, ...)
{
}

static int load(caller_t *c, const bench_job_plan_t *plan, uint32_t rank)
{
    void *library = dlopen(plan->library, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "bench_agent: %s\n", dlerror());
        return -1;
    }
    c->tuner = dlsym(library, "ncclTunerPlugin_v6");
    c->profiler = dlsym(library, "ncclProfiler_v6");
    if (c->tuner == NULL || c->profiler == NULL)
        return -1;
    c->profiler->init(&c->profiler_context, 0xbe9c4, &c->mask, "bench", (int)plan->nodes,
                      (int)plan->ranks, (int)rank, quiet);
    c->tuner->init(&c->tuner_context, 0xbe9c4, plan->ranks, plan->nodes, quiet, NULL, NULL);
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        c->table[i] = i < 6 ? 50.0f + (float)i : -1.0f;
    return 0;
}

static void *start(const caller_t *c, att_event_v6_t *event)
{
    void *handle = NULL;
    if (((uint64_t)(unsigned)c->mask & event->type) != 0)
        c->profiler->start_event(c->profiler_context, &handle, event);
    return handle;
}

static void stop(const caller_t *c, void *handle)
{
    if (handle != NULL)
        c->profiler->stop_event(handle);
}

/* One AllReduce of one channel, with every event that the hook asks for. */
static void call(caller_t *c)
{
    att_event_v6_t api = {.type = ATT_EVENT_COLL_API};
    api.coll_api.function = "AllReduce";
    api.coll_api.count = COUNT;
    api.coll_api.datatype = "ncclFloat32";
    void *parent = start(c, &api);
    stop(c, parent);
    int channels = 0;
    size_t chunk = 524288;
    c->tuner->get_coll_info(c->tuner_context, ATT_COLLECTIVE_ALL_REDUCE, BYTES, 1,
                            (float **)c->table, 7, 3, 0, &channels);
    c->tuner->get_chunk_size(c->tuner_context, ATT_COLLECTIVE_ALL_REDUCE, BYTES, ATT_ALGORITHM_RING,
                             ATT_PROTOCOL_SIMPLE, 1, &chunk);
    att_event_v6_t coll = {.type = ATT_EVENT_COLL, .parent = parent};
    coll.coll.sequence = c->sequence++;
    coll.coll.function = "AllReduce";
    coll.coll.count = COUNT;
    coll.coll.datatype = "ncclFloat32";
    coll.coll.channels = 1;
    coll.coll.warps = 17;
    coll.coll.algorithm = "RING";
    coll.coll.protocol = "SIMPLE";
    void *handle = start(c, &coll);
    if (handle != NULL) {
        att_event_v6_t kernel = {.type = ATT_EVENT_KERNEL_CH, .parent = handle};
        kernel.kernel_ch.time_ns = 1 + c->sequence * 1000;
        void *stamp = start(c, &kernel);
        if (stamp != NULL) {
            att_event_state_v6_t state = {.kernel_ch = {kernel.kernel_ch.time_ns + 800}};
            c->profiler->record_event_state(stamp, 22, &state);
            stop(c, stamp);
        }
    }
    stop(c, handle);
}

static uint64_t spent_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t slowest(bench_rank_t *ranks, uint32_t count)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t r = 0; r < count; r++) {
        uint64_t calls = atomic_load(&ranks[r].calls);
        if (atomic_load(&ranks[r].ready) == 1 && calls < least)
            least = calls;
    }
    return least;
}

/* Calls at the rate for some time; a rank that falls behind does not catch up in a burst of more
 * than a tenth of a second. Returns the calls. */
static uint64_t make_calls(caller_t *c, const bench_job_plan_t *plan, uint32_t number,
                           bench_rank_t *ranks, double seconds, double *took_s)
{
    bench_rank_t *rank = &ranks[number];
    double calls_s = plan->calls_s;
    uint64_t begin = att_clock_ns(), calls = 0, skipped = 0;
    uint64_t end = begin + (uint64_t)(seconds * 1e9);
    for (uint64_t now = begin; now < end; now = att_clock_ns()) {
        uint64_t due = (uint64_t)((double)(now - begin) * 1e-9 * calls_s) - skipped;
        uint64_t most = (uint64_t)(calls_s / 10) + 1;
        if (due - calls > most) {
            skipped += due - calls - most;
            due = calls + most;
        }
        /* A collective ends when all ranks have come: nobody is far ahead of the slowest. */
        uint64_t ahead = atomic_load(&rank->calls) - slowest(ranks, plan->ranks);
        if (due - calls > AHEAD - ahead)
            due = calls + AHEAD - ahead;
        uint64_t before = spent_ns(), first = calls;
        for (; calls < due; calls++)
            call(c);
        uint64_t spent = spent_ns() - before;
        rank->spent_ns += spent;
        if (calls > first && spent / (calls - first) > rank->slowest_ns)
            rank->slowest_ns = spent / (calls - first);
        atomic_fetch_add(&rank->calls, calls - first);
        att_clock_sleep_ns(BATCH_NS);
    }
    *took_s = (double)(att_clock_ns() - begin) * 1e-9;
    return calls;
}

static int be_rank(const bench_job_plan_t *plan, uint32_t number, bench_rank_t *ranks,
                   _Atomic uint32_t *go)
{
    bench_rank_t *rank = &ranks[number];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    char node[16];
    snprintf(node, sizeof node, "n%u", number * plan->nodes / plan->ranks);
    setenv("ATTUNE_NODE", node, 1);
    caller_t caller = {0};
    if (load(&caller, plan, number) != 0)
        return 1;
    call(&caller); /* so that the task is there */
    atomic_fetch_add(&rank->calls, 1);
    atomic_store(&rank->ready, 1);
    while (atomic_load(go) == 0)
        att_clock_sleep_ns(1000000);
    if (plan->seconds <= 0)
        for (;;)
            pause();
    double ignored;
    make_calls(&caller, plan, number, ranks, plan->warm_up_s, &ignored);
    rank->slowest_ns = rank->spent_ns = 0;
    rank->counted_calls = make_calls(&caller, plan, number, ranks, plan->seconds, &rank->counted_s);
    atomic_store(&rank->ready, 2); /* nobody waits for it any more */
    caller.tuner->finalize(caller.tuner_context);
    caller.profiler->finalize(caller.profiler_context);
    return 0;
}

int bench_job_start(bench_job_t *job, const bench_job_plan_t *plan)
{
    memset(job, 0, sizeof *job);
    size_t bytes = (BENCH_RANKS + 1) * sizeof *job->ranks;
    job->ranks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job->ranks == MAP_FAILED || plan->ranks > BENCH_RANKS)
        return -1;
    job->go = &job->ranks[BENCH_RANKS].ready;
    for (uint32_t r = 0; r < plan->ranks; r++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(be_rank(plan, r, job->ranks, job->go)); /* with the hook's destructor */
        if (pid < 0)
            return -1;
        job->pids[job->count++] = pid;
    }
    for (uint32_t r = 0; r < plan->ranks; r++)
        for (int i = 0; atomic_load(&job->ranks[r].ready) == 0; i++) {
            if (i > 20000 || waitpid(job->pids[r], NULL, WNOHANG) != 0)
                return -1;
            att_clock_sleep_ns(1000000);
        }
    return 0;
}

void bench_job_go(bench_job_t *job)
{
    atomic_store(job->go, 1);
}

int bench_job_wait(bench_job_t *job)
{
    int failed = 0, status;
    for (uint32_t r = 0; r < job->count; r++)
        failed |= waitpid(job->pids[r], &status, 0) != job->pids[r] || status != 0;
    job->count = 0;
    return failed;
}

void bench_job_free(bench_job_t *job)
{
    for (uint32_t r = 0; r < job->count; r++)
        kill(job->pids[r], SIGKILL);
    bench_job_wait(job);
    if (job->ranks != NULL && job->ranks != MAP_FAILED)
        munmap(job->ranks, (BENCH_RANKS + 1) * sizeof *job->ranks);
    job->ranks = NULL;
}
