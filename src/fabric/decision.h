/*
 * decision: how a task's setting comes about: cost table, tuner, clamps, layout, chunk.
 *
 * Follows NCCL 2.30.7's enqueue.cc: ncclGetAlgoInfo and topoGetAlgoInfo (att_decision_choose),
 * scheduleCollTasksToPlan (att_decision_lay_out), calcCollChunking (chunks). Where NCCL would crash
 * or run a wrong kernel (chunk below the grain, negative channels, an IGNORE entry overwritten) the
 * fabric fails the call with ncclInternalError and says which.
 */
#ifndef ATT_FABRIC_DECISION_H
#define ATT_FABRIC_DECISION_H

#include "fabric/cost.h"
#include "fabric/plugin_abi.h"
#include "fabric/task.h"

struct att_surface;

/* What decisions of one communicator depend on. */
typedef struct att_decider {
    int ranks;
    int algorithms;       /* rows of the cost table: 6 before 2.23, which has no PAT, else 7 */
    int channels;         /* comm->nChannels */
    int default_channels; /* real mode: what the fabric uses by itself */
    size_t default_chunk; /* real mode, Ring and Tree with Simple, bytes */
    uint32_t buffer;      /* NCCL_BUFFSIZE: bytes of a connection's Simple buffer */
    int threads;          /* NCCL_NTHREADS: most threads of a block, Ring with LL and Simple; 0 */
    int transport;        /* ATTUNE_FABRIC_TRANSPORT, model; ATT_TRANSPORT_KEEP: the surface's */
    att_pairs_t pairs;
    const struct att_surface *surface; /* model mode, else NULL */
    const ncclTuner_v6_t *tuner;       /* NULL: none */
    bool tuner_chunks;                 /* the tuner has v6's getChunkSize */
    void *tuner_context;
} att_decider_t;

/* Fill algorithm, protocol, max_channels and warps of a task (its count may be a sum of several).
 * `estimate_us`, if not NULL, gets the cost of the choice. */
ncclResult_t att_decision_choose(const att_decider_t *decider, att_task_t *task, int pipe_ops,
                                 float *estimate_us);
/* Share the tasks of a batch, all decided, over channels, in order; then their chunks. */
ncclResult_t att_decision_lay_out(const att_decider_t *decider, att_task_t *tasks, size_t count);

#endif
