/*
 * bench_fence: what a switch costs over several agents, against MPI.
 *
 * Each MPI process is an agent with the sidecar's own parts (bench/scale/member.h) and MPI
 * messenger, and one rank of one group over all of them (two ranks when alone). The ranks call all
 * the time, a search runs and switches. In turns with it, on the same processes, the same bytes go
 * by MPI_Bcast (the list) and MPI_Allreduce (the votes).
 *
 *   commit  proposed -> the home word is committed (every vote is in)
 *   switch  proposed -> every node has recorded the outcome: longer than until it is active
 *   pair    MPI_Bcast + MPI_Allreduce
 *
 * calls_waited counts calls that stood at an undecided fence, while searching and, once the search
 * is over, in steady state. Prints one JSON object. Usage: mpirun -np N bench_fence PLUGIN-PATH
 */
#include "../scale/member.h"

#include "base/clock.h"
#include "base/step.h"
#include "search/strategy_host.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 20, PAIRS = 200, MOST = 100000 };
#define BLOCK_NS  250000000ull
#define PERIOD_NS 40000ull /* a call every 40 us */

typedef struct series {
    double us[MOST];
    uint32_t count;
} series_t;

static series_t commits, switches, pairs;
static uint64_t planned_ns;

static void note(series_t *series, uint64_t from_ns)
{
    if (series->count < MOST)
        series->us[series->count++] = (double)(att_clock_ns() - from_ns) * 1e-3;
}

/* In the place of base/step.c: when each step is reached at the leader. */
void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call)
{
    static bool committed;
    if (step == ATT_STEP_PLANNED) {
        planned_ns = att_clock_ns();
    } else if (step == ATT_STEP_COMMITTED) {
        committed = true;
        note(&commits, planned_ns);
    } else if (step == ATT_STEP_ABORTED) {
        committed = false;
    } else if (step == ATT_STEP_CLEARED && committed) {
        note(&switches, planned_ns);
    }
}

/* --- the ranks here --- */

typedef struct pump {
    bench_member_t *member;
    uint64_t begin_ns; /* of call 0; moves on while nobody calls */
    uint64_t calls;    /* of every seat */
    uint32_t entered;  /* seats that are in the present call */
} pump_t;

static void pump(pump_t *p, uint64_t now_ns)
{
    bench_member_t *m = p->member;
    if (now_ns < p->begin_ns + p->calls * PERIOD_NS)
        return;
    for (uint32_t s = 0; s < m->seat_count; s++) {
        bench_seat_t *seat = &m->seats[s];
        bool entered = (p->entered & 1u << s) != 0;
        if (seat->waiting ? !bench_member_wait(m, s, now_ns)
                          : !entered && !bench_member_enter(m, s, now_ns)) {
            p->entered |= 1u << s;
            return;
        }
        p->entered |= 1u << s;
    }
    for (uint32_t s = 0; s < m->seat_count; s++) {
        uint64_t start = p->begin_ns + p->calls * PERIOD_NS;
        uint64_t took = 20000 + 500 * (uint64_t)(m->seats[s].decision.setting.channels % 7);
        bench_member_record(m, s, start, start + took);
    }
    p->entered = 0;
    p->calls++;
}

/* --- the MPI pair --- */

static double pair(MPI_Comm comm, char *list, int list_bytes, char *votes, char *all,
                   int vote_bytes)
{
    double begin = MPI_Wtime();
    MPI_Bcast(list, list_bytes, MPI_BYTE, 0, comm);
    MPI_Allreduce(votes, all, vote_bytes, MPI_BYTE, MPI_BOR, comm);
    return (MPI_Wtime() - begin) * 1e6;
}

static void measure_pairs(MPI_Comm comm)
{
    char list[4096] = {0}, votes[256] = {0}, all[256];
    att_message_t prepare = {.type = ATT_MESSAGE_PREPARE};
    int list_bytes = (int)att_message_bytes(&prepare);
    MPI_Barrier(comm);
    for (int i = 0; i < PAIRS + 20; i++) {
        double us = pair(comm, list, list_bytes, votes, all, (int)sizeof(att_ballot_t));
        if (i >= 20 && pairs.count < MOST)
            pairs.us[pairs.count++] = us;
    }
    MPI_Barrier(comm);
}

/* --- results --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(series_t *s, double q)
{
    if (s->count == 0)
        return 0;
    qsort(s->us, s->count, sizeof *s->us, by_value);
    return s->us[(uint32_t)(q * (s->count - 1))];
}

/* Sums over all agents: [0] calls, [1] of them waited, [2] and [3] the same once settled. */
static void print(int agents, const uint64_t sum[4])
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    double commit = quantile(&commits, 0.5), whole = quantile(&switches, 0.5);
    double mpi = quantile(&pairs, 0.5);
    att_message_t prepare = {.type = ATT_MESSAGE_PREPARE};
    printf("{\"agents\": %d, \"cores\": %d, \"agents_per_core\": %.2f, \"switches\": %u, "
           "\"commit_us\": %.2f, \"commit_us_p95\": %.2f, \"switch_us\": %.2f, "
           "\"switch_us_p95\": %.2f, \"pair_us\": %.2f, \"pair_us_p95\": %.2f, \"pairs\": %u, "
           "\"bound_us\": %.2f, \"list_bytes\": %u, \"vote_bytes\": %zu, \"calls\": %llu, "
           "\"calls_waited\": %llu, \"steady_calls\": %llu, \"steady_waited\": %llu}\n",
           agents, cores, (double)agents / cores, switches.count, commit, quantile(&commits, 0.95),
           whole, quantile(&switches, 0.95), mpi, quantile(&pairs, 0.95), pairs.count, 2 * mpi + 20,
           att_message_bytes(&prepare), sizeof(att_ballot_t), (unsigned long long)sum[0],
           (unsigned long long)sum[1], (unsigned long long)sum[2], (unsigned long long)sum[3]);
}

/* One block of calls and switches, the same time on all agents. */
static void run_block(bench_member_t *member, pump_t *p, bool oversubscribed)
{
    uint64_t end = att_clock_ns() + BLOCK_NS;
    for (uint64_t now = att_clock_ns(); now < end; now = att_clock_ns()) {
        pump(p, now);
        bench_member_round(member, now);
        if (oversubscribed)
            sched_yield();
    }
}

int main(int argc, char **argv)
{
    att_config_t config = {0};
    att_error_t error = {""};
    struct att_strategy_host *host;
    struct att_messenger *messenger;
    bench_member_t member;
    setenv("ATTUNE_STRATEGY", "random:trials=10000", 1);
    setenv("ATTUNE_SAMPLES", "3", 1);
    setenv("ATTUNE_MAX_TRIALS", "100000", 1);
    setenv("ATTUNE_MAX_COST", "0", 1);
    setenv("ATTUNE_MIN_BYTES", "0", 1);
    if (att_config_init(&config, &error) != ATT_OK ||
        att_strategy_host_create(argc > 1 ? argv[1] : NULL, ATT_HOST_INPROCESS, 10, &host,
                                 &error) != ATT_OK) {
        fprintf(stderr, "bench_fence: %s\n", error.text);
        return ATT_EFAIL;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    uint64_t begin_ns = att_clock_ns();
    if (att_messenger_create(&messenger, &error) != ATT_OK ||
        bench_member_create(&member, &config, host, messenger, begin_ns) != ATT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    uint32_t self = att_messenger_self(messenger), agents = att_messenger_count(messenger);
    uint32_t ranks = agents > 1 ? agents : 2;
    bench_member_join(&member, 0xfe9ce, ranks, agents, self);
    if (agents == 1)
        bench_member_join(&member, 0xfe9ce, ranks, agents, 1);
    bool oversubscribed = (long)agents > sysconf(_SC_NPROCESSORS_ONLN);
    pump_t p = {.member = &member, .begin_ns = att_clock_ns() + 50000000};
    MPI_Bcast(&p.begin_ns, 1, MPI_UINT64_T, 0, comm);
    uint64_t warm[2] = {0}, steady[2] = {0};
    int settled = 0;
    for (int b = 0; b < BLOCKS; b++) {
        run_block(&member, &p, oversubscribed);
        if (b == 1) { /* registration and first votes are over */
            commits.count = switches.count = 0;
            warm[0] = member.calls;
            warm[1] = member.waited;
        }
        uint64_t stopped = att_clock_ns();
        measure_pairs(comm);
        p.begin_ns += att_clock_ns() - stopped;
        MPI_Bcast(&p.begin_ns, 1, MPI_UINT64_T, 0, comm);
        int now = bench_member_settled(&member, 0) == 1;
        MPI_Bcast(&now, 1, MPI_INT, 0, comm);
        if (now && !settled) {
            steady[0] = member.calls;
            steady[1] = member.waited;
        }
        settled = now;
    }
    uint64_t sum[4],
        mine[4] = {member.calls - warm[0], member.waited - warm[1],
                   settled ? member.calls - steady[0] : 0, settled ? member.waited - steady[1] : 0};
    MPI_Reduce(mine, sum, 4, MPI_UINT64_T, MPI_SUM, 0, comm);
    if (self == 0)
        print((int)agents, sum);
    MPI_Barrier(comm);
    bench_member_destroy(&member);
    att_messenger_destroy(messenger);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    att_strategy_host_destroy(host);
    att_config_free(&config);
    return 0;
}
