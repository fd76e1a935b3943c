/*
 * profiler: what NCCL's profiler plugin does, independent of the ABI version: recognise batches and
 * capture (CollApi events), what really ran (Coll) and when (KernelCh). Handles are values
 * (hook/handle.h); NULL means "no event of ours".
 */
#ifndef ATT_HOOK_PROFILER_H
#define ATT_HOOK_PROFILER_H

#include "hook/abi/nccl.h"

#include <stdbool.h>
#include <stddef.h>

/* What NCCL tells a profiler's init. */
typedef struct att_profiler_start {
    uint32_t abi;
    uint64_t comm_id;
    int *mask; /* NCCL's own */
    const char *comm_name;
    int nodes, ranks, rank;
    att_nccl_logger_fn logger;
} att_profiler_start_t;

/* One Coll event in NCCL's words. count: AllGather and Broadcast in bytes (a rank's), ReduceScatter
 * the received elements. */
typedef struct att_coll_event {
    uint64_t sequence;
    const char *function;
    size_t count;
    const char *datatype;
    const char *algorithm;
    const char *protocol;
    uint32_t channels;
    uint32_t warps;
} att_coll_event_t;

/* *mask is set by the tuner's half and must stay valid until finalize: NCCL's own, or the part of
 * it that is the hook's where another profiler is chained. */
void *att_profiler_init(const att_profiler_start_t *start, int *mask);
void att_profiler_finalize(void *context);

/* A GroupApi event has no handle: NCCL then spares itself the three calls that go on with it. A
 * CollApi event has one while stamps are on. */
void att_profiler_group(void *context, bool captured);
void *att_profiler_coll_api(void *context, bool captured);
/* The group that this thread has open is only going to be simulated. */
void att_profiler_simulate(void);
/* The CollApi event before was of a Broadcast. */
void att_profiler_broadcast(void *context, int root);
/* The call that a Coll event is about (parent: handle of its CollApi event), now owned by the
 * caller, or NULL: nothing is to be timed. Then att_profiler_coll, which gives it up and returns
 * the handle. */
struct att_call *att_profiler_take(void *context, void *parent);
void *att_profiler_coll(void *context, struct att_call *call, const att_coll_event_t *event);
void *att_profiler_kernel_start(void *coll, uint32_t channel, uint64_t time_ns);
void att_profiler_kernel_stop(void *kernel, uint64_t time_ns);

#endif
