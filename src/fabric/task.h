/*
 * task: one collective between the call and its end: what was asked, what was decided, how it is
 * laid out over channels.
 *
 * Channels [channel_low, channel_low + channels) share the elements as NCCL's scheduler does: the
 * first takes count_low, the last count_high (0 when there is one channel), those between
 * count_middle each.
 */
#ifndef ATT_FABRIC_TASK_H
#define ATT_FABRIC_TASK_H

#include "fabric/nccl_abi.h"

#include <stdbool.h>

typedef struct att_task {
    /* asked; AllGather and Broadcast count bytes, as NCCL converts them */
    int function; /* att_collective_t = ncclFunc_t */
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    /* decided */
    int algorithm;
    int protocol;
    int max_channels;
    int warps;
    int threads;   /* asked for by NCCL_NTHREADS where it counts, 0: the fabric's own */
    int transport; /* att_transport_t, KEEP: the surface's own */
    /* laid out */
    int channel_low;
    int channels;
    size_t count_low, count_middle, count_high;
    size_t chunk_low, chunk_middle, chunk_high; /* bytes */
    uint64_t call;                              /* number of this task on its communicator */
    uint64_t sequence;                          /* per function, as the profiler gets it */
    /* profiler */
    int event_mask;
    void *group_api_event;
    void *coll_api_event;
    void *event;
} att_task_t;

/* Part of a task that one channel handles, in elements. */
typedef struct att_part {
    size_t offset;
    size_t count;
    size_t chunk; /* bytes */
} att_part_t;

/* Bytes that the tuner sees: of the larger of the two buffers. */
size_t att_task_bytes(const att_task_t *task, int ranks);
/* Bytes on the wires for each byte of `count`: NCCL's ncclFuncTrafficPerByte. */
int att_task_traffic(int function, int ranks);
/* False when the channel has no part. */
bool att_task_part(const att_task_t *task, int channel, att_part_t *part);
/* NCCL's words: "AllReduce", "RING", "SIMPLE". */
const char *att_task_function_name(int function);
const char *att_task_algorithm_name(int algorithm);
const char *att_task_protocol_name(int protocol);

#endif
