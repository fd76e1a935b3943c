/*
 * profiler_v4: NCCL's profiler ABI 4 (NCCL 2.27.3, the first with GPU time stamps and the rank;
 * src/include/plugin/profiler/profiler_v4.h). No events of API calls: nothing tells where a batch
 * ends but the next Coll event, and nothing tells whether a call is captured.
 */
#ifndef ATT_HOOK_ABI_PROFILER_V4_H
#define ATT_HOOK_ABI_PROFILER_V4_H

#include "hook/abi/nccl.h"

#include <stddef.h>

/* One event; `whole` gives the union NCCL's size. */
typedef struct att_event_v4 {
    uint8_t type; /* ATT_EVENT_* up to 128 */
    void *parent;
    int rank;
    union {
        struct {
            uint64_t sequence;
            const char *function;
            const void *send;
            void *receive;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels;
            uint8_t warps;
            const char *algorithm;
            const char *protocol;
        } coll;
        struct {
            uint8_t channel;
            uint64_t time_ns;
        } kernel_ch;
        uint64_t whole[10];
    };
} att_event_v4_t;
_Static_assert(offsetof(att_event_v4_t, parent) == 8, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, rank) == 16, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, coll.count) == 56, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, coll.datatype) == 72, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, coll.channels) == 80, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, coll.algorithm) == 88, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, coll.protocol) == 96, "ncclProfilerEventDescr_v4_t");
_Static_assert(offsetof(att_event_v4_t, kernel_ch.time_ns) == 32, "ncclProfilerEventDescr_v4_t");
_Static_assert(sizeof(att_event_v4_t) == 104, "ncclProfilerEventDescr_v4_t");

typedef union att_event_state_v4 {
    struct {
        uint64_t time_ns;
    } kernel_ch;
} att_event_state_v4_t;
_Static_assert(sizeof(att_event_state_v4_t) == 8, "ncclProfilerEventStateArgs_v4_t");

typedef struct att_profiler_v4 {
    const char *name;
    int (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_id, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger);
    int (*start_event)(void *context, void **handle, att_event_v4_t *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, att_event_state_v4_t *arguments);
    int (*finalize)(void *context);
} att_profiler_v4_t;
_Static_assert(offsetof(att_profiler_v4_t, start_event) == 16, "ncclProfiler_v4_t");
_Static_assert(offsetof(att_profiler_v4_t, stop_event) == 24, "ncclProfiler_v4_t");
_Static_assert(offsetof(att_profiler_v4_t, record_event_state) == 32, "ncclProfiler_v4_t");
_Static_assert(sizeof(att_profiler_v4_t) == 48, "ncclProfiler_v4_t");

extern const att_profiler_v4_t ncclProfiler_v4;

#endif
