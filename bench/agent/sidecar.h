/*
 * sidecar: real attuned processes, one a node n0, n1, ..., under mpirun when there are several, and
 * what the kernel knows about them. The caller holds every node's segment open, so that the counts
 * in it can be read after the end.
 */
#ifndef ATT_BENCH_SIDECAR_H
#define ATT_BENCH_SIDECAR_H

#include "base/segment.h"

#include <sys/types.h>

#define BENCH_NODES 16

typedef struct bench_sidecar {
    pid_t pid; /* attuned or mpirun */
    uint32_t agents;
    struct att_segment *segments[BENCH_NODES];
} bench_sidecar_t;

/* A process's use of the machine. */
typedef struct bench_use {
    double cpu_s;
    uint64_t switches; /* context switches, both kinds */
    uint64_t resident_kib;
} bench_use_t;

/* Start `agents` agents that write to `run_dir` with `--observe`; 0 when every one serves its
 * segment (in the folder ATTUNE_SHM_DIR, run ATTUNE_RUN_ID), else -1 with a line. */
int bench_sidecar_start(bench_sidecar_t *sidecar, const char *attuned, uint32_t agents,
                        const char *run_dir);
att_segment_memory_t *bench_sidecar_memory(const bench_sidecar_t *sidecar, uint32_t node);
pid_t bench_sidecar_agent(const bench_sidecar_t *sidecar, uint32_t node);
/* SIGTERM and wait. 0 when it ended well. */
int bench_sidecar_stop(bench_sidecar_t *sidecar);
void bench_sidecar_free(bench_sidecar_t *sidecar); /* closes the segments; kills what is left */

int bench_use_of(pid_t pid, bench_use_t *use);

#endif
