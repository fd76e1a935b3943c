/*
 * ranks: run a test's body on several ranks, as threads of this process or as processes.
 */
#ifndef ATT_TEST_FABRIC_RANKS_H
#define ATT_TEST_FABRIC_RANKS_H

#include "fabric/nccl_abi.h"

typedef struct rank {
    int rank;
    int count;
    ncclComm_t comm;
    void *argument;
    int failed; /* set by the body: the number of things that were wrong */
} rank_t;

typedef void (*body_fn)(rank_t *rank);

/* Threads: creates the communicator, runs the body, destroys. Returns the sum of `failed`. */
int run_threads(int count, body_fn body, void *argument);
/* Processes: the same. A rank that dies or exits with another status than 0 counts as failed; the
 * body may _exit(0). */
int run_processes(int count, body_fn body, void *argument);

#endif
