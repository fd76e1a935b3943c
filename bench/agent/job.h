/*
 * job: processes that call a collective through the hook's exported tables as NCCL 2.30 does, at a
 * given rate, one rank of one communicator each. What they did is counted in shared memory.
 */
#ifndef ATT_BENCH_JOB_H
#define ATT_BENCH_JOB_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_RANKS 64

typedef struct bench_job_plan {
    const char *library; /* libattune-nccl.so */
    uint32_t ranks;      /* processes */
    uint32_t nodes;      /* rank r is on node n<r * nodes / ranks> */
    double calls_s;      /* of each rank */
    double warm_up_s;    /* calls before counting starts: the sidecar must switch stamps on */
    double seconds;
} bench_job_plan_t;

/* One rank, written by its process. */
typedef struct bench_rank {
    _Alignas(64) _Atomic uint32_t ready; /* 1: attached and in the group, 2: done */
    _Atomic uint64_t calls;              /* all calls since the start */
    uint64_t counted_calls;              /* after the warm-up */
    double counted_s;                    /* they took this long */
    uint64_t slowest_ns, spent_ns;       /* processor time: of the slowest call, of all */
} bench_rank_t;

typedef struct bench_job {
    bench_rank_t *ranks; /* shared */
    _Atomic uint32_t *go;
    pid_t pids[BENCH_RANKS];
    uint32_t count;
} bench_job_t;

/* Start the processes: they attach and wait for bench_job_go. 0 or -1. */
int bench_job_start(bench_job_t *job, const bench_job_plan_t *plan);
/* Let them call; with seconds 0 in the plan they stay without calling until they are stopped. */
void bench_job_go(bench_job_t *job);
/* Wait for their end. 0 when all ended well. */
int bench_job_wait(bench_job_t *job);
void bench_job_free(bench_job_t *job);

#endif
