/*
 * Threads: ranks that call, their proxy threads that bring the stamps, communicators that come and
 * go, and an agent that proposes, dies, recovers, switches stamps and reads records, all in one
 * image, so that ThreadSanitizer sees every access to the segment. Two ranks must never run one
 * call with different settings, and every time that is reported must be right.
 */
#include "base/clock.h"
#include "fake_nccl.h"
#include "isolated.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 3, TASKS = 2, CALLS = 4000, QUEUE = 64 };

/* Stamps that are to come: filled by the rank, emptied by its proxy. */
typedef struct proxy {
    pthread_mutex_t lock;
    fake_op_t ops[QUEUE];
    uint64_t starts[QUEUE];
    uint32_t head, tail;
    bool closed;
} proxy_t;

static fake_comm_t comms[RANKS];
static proxy_t proxies[RANKS];
static int seen[RANKS][TASKS][CALLS]; /* channels | algorithm << 8 | chunk << 16 */
static uint64_t durations[RANKS][TASKS][CALLS];
static _Atomic int running, turns;
static uint64_t timed, committed;

static size_t bytes_of(int task)
{
    return (size_t)4096 << task;
}

static void *proxy_main(void *argument)
{
    proxy_t *proxy = argument;
    fake_comm_t *comm = &comms[proxy - proxies];
    for (;;) {
        pthread_mutex_lock(&proxy->lock);
        bool empty = proxy->head == proxy->tail;
        bool closed = proxy->closed;
        fake_op_t op = proxy->ops[proxy->tail % QUEUE];
        uint64_t start = proxy->starts[proxy->tail % QUEUE];
        proxy->tail += !empty;
        pthread_mutex_unlock(&proxy->lock);
        if (empty && closed)
            return NULL;
        if (empty) {
            att_clock_sleep_ns(20000);
            continue;
        }
        void *kernels[FAKE_CHANNELS];
        for (int c = 0; c < op.channels; c++)
            kernels[c] = fake_kernel_start(comm, op.coll, c, start + (uint64_t)c);
        for (int c = 0; c < op.channels; c++)
            fake_kernel_stop(comm, kernels[c], start + op.chunk); /* its duration, see rank_main */
    }
}

/* Waits for room: a proxy that lags by thousands of calls would lose stamps. */
static void push(proxy_t *proxy, const fake_op_t *op, uint64_t start, uint64_t duration)
{
    for (bool done = false; !done;) {
        pthread_mutex_lock(&proxy->lock);
        done = proxy->head - proxy->tail < QUEUE;
        if (done) {
            proxy->ops[proxy->head % QUEUE] = *op;
            proxy->ops[proxy->head % QUEUE].chunk = duration;
            proxy->starts[proxy->head % QUEUE] = start;
            proxy->head++;
        }
        pthread_mutex_unlock(&proxy->lock);
        if (!done)
            att_clock_sleep_ns(20000);
    }
}

static void *rank_main(void *argument)
{
    int rank = (int)(intptr_t)argument;
    fake_comm_t *comm = &comms[rank];
    unsigned seed = (unsigned)rank + 1;
    for (int i = 0; i < CALLS; i++) {
        while (atomic_load(&turns) < i / 10) /* whatever the scheduler does, the agent gets turns */
            att_clock_sleep_ns(20000);
        for (int task = 0; task < TASKS; task++) {
            fake_begin(comm);
            fake_op_t *op =
                fake_enqueue(comm, ATT_COLLECTIVE_ALL_REDUCE, bytes_of(task) / 4, false);
            CHECK_EQUAL(fake_prepare(comm), 0);
            fake_launch(comm);
            fake_end(comm);
            seen[rank][task][i] = op->channels | op->algorithm << 8 | (int)(op->chunk >> 9) << 16;
            durations[rank][task][i] = 100 + (uint64_t)(rand_r(&seed) % 1000);
            if ((op->mask & ATT_EVENT_KERNEL_CH) != 0)
                push(&proxies[rank], op, 1000 + (uint64_t)(i + 1) * 5000, durations[rank][task][i]);
        }
        if (rand_r(&seed) % 64 == 0)
            att_clock_sleep_ns(1000 * (uint64_t)(rand_r(&seed) % 20));
    }
    pthread_mutex_lock(&proxies[rank].lock);
    proxies[rank].closed = true;
    pthread_mutex_unlock(&proxies[rank].lock);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Communicators that come and go beside. */
static void *churn_main(void *argument)
{
    (void)argument;
    for (uint64_t id = 1000; id < 1100; id++) {
        fake_comm_t comm;
        fake_init(&comm, &fake_linked, id % 2 == 0 ? 5 : 6, id, 2, 0);
        for (int i = 0; i < 20; i++)
            fake_call(&comm, ATT_COLLECTIVE_ALL_GATHER, 512, 100);
        fake_destroy(&comm);
    }
    return NULL;
}

static void drain(void)
{
    att_record_t r;
    while (agent_record(&r)) {
        int task = r.bytes == bytes_of(0) ? 0 : 1;
        if (r.collective != ATT_COLLECTIVE_ALL_REDUCE || r.untimed != ATT_UNTIMED_NO)
            continue;
        uint32_t rank = agent_memory()->members[r.member].rank;
        CHECK(rank < RANKS && r.call >= 1 && r.call <= CALLS);
        CHECK_EQUAL(r.start_ns, 1000 + r.call * 5000);
        CHECK_EQUAL(r.stop_ns - r.start_ns, durations[rank][task][r.call - 1]);
        timed++;
    }
}

/* One attempt; `quit` is the step after which this agent dies. */
static int propose(att_segment_task_t *task, const uint32_t *lanes, uint32_t count, uint32_t txn,
                   unsigned *seed, int quit)
{
    att_segment_memory_t *memory = agent_memory();
    if (!att_vote_ready(memory, lanes, count, task) || att_home_open(task, txn) != ATT_OK)
        return 0;
    if (quit == 1)
        return -1;
    att_schedule_t schedule = {.txn = txn, .count = 3};
    uint64_t fence = att_vote_horizon(memory, lanes, count) + (uint64_t)(rand_r(seed) % 20);
    for (uint32_t e = 0; e < 3; e++) {
        schedule.entries[e] = (att_schedule_entry_t){fence + 5u * e, ATT_SETTING_KEEP};
        att_setting_t *setting = &schedule.entries[e].setting;
        setting->algorithm = (int8_t)(txn % 2);
        setting->protocol = ATT_PROTOCOL_SIMPLE;
        setting->channels = (uint16_t)(1 + (txn * 3 + e) % 16);
        setting->chunk_bytes = 512 * (1 + (txn + e) % 32);
    }
    att_vote_t vote = att_vote_prepare(memory, task, lanes, count, &schedule);
    if (quit == 2)
        return -1;
    att_home_state_t state =
        att_home_decide(task, txn, vote == ATT_VOTE_YES ? ATT_HOME_COMMITTED : ATT_HOME_ABORTED);
    committed += state == ATT_HOME_COMMITTED;
    return quit == 3 ? -1 : 1;
}

static void *agent_main(void *argument)
{
    (void)argument;
    att_segment_memory_t *memory = agent_memory();
    uint32_t tasks[TASKS];
    uint32_t lanes[TASKS][64];
    uint32_t txns[TASKS] = {1, 1};
    unsigned seed = 7;
    for (int t = 0; t < TASKS; t++) {
        tasks[t] = agent_task(ATT_COLLECTIVE_ALL_REDUCE, bytes_of(t));
        CHECK_EQUAL(agent_lanes(tasks[t], lanes[t]), RANKS);
    }
    while (atomic_load(&running) > 0) {
        uint64_t horizon = att_vote_horizon(memory, lanes[0], RANKS);
        if ((uint64_t)atomic_load(&turns) > horizon / 10 + 20) { /* nor does it run away */
            drain();
            att_clock_sleep_ns(20000);
            continue;
        }
        int t = (int)((unsigned)rand_r(&seed) % TASKS);
        att_segment_task_t *task = &memory->tasks[tasks[t]];
        int quit = rand_r(&seed) % 8 == 0 ? 1 + rand_r(&seed) % 3 : 0;
        int result = propose(task, lanes[t], RANKS, txns[t], &seed, quit);
        if (result < 0)
            txns[t] = att_vote_recover(memory, task, lanes[t], RANKS) + 1;
        else if (result > 0)
            txns[t]++;
        else
            att_clock_sleep_ns(2000);
        if (rand_r(&seed) % 16 == 0)
            atomic_store(&memory->processes[0].timing, (uint32_t)(rand_r(&seed) % 4 != 0));
        drain();
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

ISOLATED(ranks_never_differ)
{
    pthread_t ranks[RANKS], stampers[RANKS], agent, churn;
    for (int r = 0; r < RANKS; r++) {
        fake_init(&comms[r], &fake_linked, 6, 0xabc, RANKS, r);
        pthread_mutex_init(&proxies[r].lock, NULL);
    }
    agent_memory()->header.wait_ns = 50000000;
    /* Call 0, alone: the agent needs every rank's lane. */
    for (int r = 0; r < RANKS; r++)
        for (int t = 0; t < TASKS; t++)
            fake_call(&comms[r], ATT_COLLECTIVE_ALL_REDUCE, bytes_of(t), 100);
    atomic_store(&running, RANKS);
    pthread_create(&agent, NULL, agent_main, NULL);
    pthread_create(&churn, NULL, churn_main, NULL);
    for (int r = 0; r < RANKS; r++) {
        pthread_create(&stampers[r], NULL, proxy_main, &proxies[r]);
        pthread_create(&ranks[r], NULL, rank_main, (void *)(intptr_t)r);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(ranks[r], NULL);
        pthread_join(stampers[r], NULL);
    }
    pthread_join(agent, NULL);
    pthread_join(churn, NULL);
    for (int r = 0; r < RANKS; r++)
        fake_destroy(&comms[r]);
    drain();
    for (int t = 0; t < TASKS; t++)
        for (int i = 0; i < CALLS; i++)
            for (int r = 1; r < RANKS; r++)
                CHECK_EQUAL(seen[r][t][i], seen[0][t][i]);
    CHECK(committed > 5);
    CHECK(timed > 100);
    CHECK_EQUAL(atomic_load(&agent_memory()->processes[0].anomalies), 0);
    CHECK_EQUAL(atomic_load(&agent_memory()->processes[0].decisions),
                (CALLS + 1) * RANKS * TASKS + 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_never_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
