/*
 * profiler_v6: NCCL's profiler ABI 6 (NCCL 2.29.2; src/include/plugin/profiler/profiler_v6.h): 5
 * with copy-engine events, which the hook does not ask for. They fit into the same 112 bytes and
 * leave every other member where it was, so the descriptor is that of version 5.
 */
#ifndef ATT_HOOK_ABI_PROFILER_V6_H
#define ATT_HOOK_ABI_PROFILER_V6_H

#include "hook/abi/profiler_v5.h"

typedef att_event_v5_t att_event_v6_t;
typedef att_event_state_v5_t att_event_state_v6_t;

typedef struct att_profiler_v6 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger);
    int (*start_event)(void *context, void **handle, att_event_v6_t *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, att_event_state_v6_t *arguments);
    int (*finalize)(void *context);
} att_profiler_v6_t;
_Static_assert(offsetof(att_profiler_v6_t, init) == 8, "ncclProfiler_v6_t");
_Static_assert(offsetof(att_profiler_v6_t, start_event) == 16, "ncclProfiler_v6_t");
_Static_assert(offsetof(att_profiler_v6_t, stop_event) == 24, "ncclProfiler_v6_t");
_Static_assert(offsetof(att_profiler_v6_t, record_event_state) == 32, "ncclProfiler_v6_t");
_Static_assert(offsetof(att_profiler_v6_t, finalize) == 40, "ncclProfiler_v6_t");
_Static_assert(sizeof(att_profiler_v6_t) == 48, "ncclProfiler_v6_t");

extern const att_profiler_v6_t ncclProfiler_v6;

#endif
