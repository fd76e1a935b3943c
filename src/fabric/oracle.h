/*
 * oracle: checks what NCCL does not: that all ranks use one setting for one call.
 *
 * Before a batch moves any data each rank writes what it is going to do into the arena and compares
 * it with every rank that has written already; of two that differ the later one sees it, before it
 * has moved anything. The first to see a difference prints one line with both ranks, the call and
 * both settings, counts it, and ends the communicator: all ranks get ncclInternalError.
 *
 * ATTUNE_FABRIC_KEEP_GOING=1: all ranks wait for all, each one that differs from rank 0 reports
 * itself, and all go on with rank 0's setting.
 * ATTUNE_FABRIC_INJECT_MISMATCH=<rank>:<call>: that rank uses another channel count at that call of
 * each communicator, so that tests can see the oracle fail.
 */
#ifndef ATT_FABRIC_ORACLE_H
#define ATT_FABRIC_ORACLE_H

#include "fabric/arena.h"
#include "fabric/task.h"

typedef struct att_oracle {
    bool keep_going;
    int inject_rank; /* -1: none */
    uint64_t inject_call;
    _Atomic uint64_t mismatches; /* reported by this rank */
} att_oracle_t;

/* From the environment. A malformed variable is ncclInvalidUsage. */
ncclResult_t att_oracle_open(att_oracle_t *oracle);
/* Channel count that a decided task is to use: changed only where a mismatch is to be injected. */
void att_oracle_inject(const att_oracle_t *oracle, att_task_t *task, int rank, int most);
/* Write the batch (at most ATT_ARENA_BATCH tasks) and compare. Never blocks. */
void att_oracle_publish(att_oracle_t *oracle, att_arena_t *arena, const att_task_t *tasks,
                        size_t count);
/* Keep-going mode: wait for all, report, take over rank 0's settings. Else nothing. */
ncclResult_t att_oracle_agree(att_oracle_t *oracle, att_arena_t *arena, att_task_t *tasks,
                              size_t count);
/* After the batch: all ranks have been heard, and none differed. */
ncclResult_t att_oracle_confirm(att_arena_t *arena, const att_task_t *tasks, size_t count);

#endif
