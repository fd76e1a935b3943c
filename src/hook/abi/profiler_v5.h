/* profiler_v5: NCCL's profiler ABI 5 (NCCL 2.28.3; src/include/plugin/profiler/profiler_v5.h). */
#ifndef ATT_HOOK_ABI_PROFILER_V5_H
#define ATT_HOOK_ABI_PROFILER_V5_H

#include "hook/abi/nccl.h"

#include <stdbool.h>
#include <stddef.h>

/* One event. Only the members that the hook reads are spelled out; `whole` gives the union NCCL's
 * size, which matters only to whoever makes events (tests, the host fabric). */
typedef struct att_event_v5 {
    uint64_t type; /* ATT_EVENT_* */
    void *parent;
    int rank;
    union {
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *function;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } coll_api;
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
            void *group;
        } coll;
        struct {
            const char *function;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *group;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t time_ns;
        } kernel_ch;
        uint64_t whole[11];
    };
} att_event_v5_t;
_Static_assert(offsetof(att_event_v5_t, parent) == 8, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, rank) == 16, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, group_api.captured) == 24, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll_api.datatype) == 40, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll_api.captured) == 64, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.count) == 56, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.datatype) == 72, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.channels) == 80, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.warps) == 81, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.algorithm) == 88, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, coll.group) == 104, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, p2p.group) == 64, "ncclProfilerEventDescr_v5_t");
_Static_assert(offsetof(att_event_v5_t, kernel_ch.time_ns) == 32, "ncclProfilerEventDescr_v5_t");
_Static_assert(sizeof(att_event_v5_t) == 112, "ncclProfilerEventDescr_v5_t");

typedef union att_event_state_v5 {
    struct {
        uint64_t time_ns;
    } kernel_ch;
} att_event_state_v5_t;
_Static_assert(sizeof(att_event_state_v5_t) == 8, "ncclProfilerEventStateArgs_v5_t");

typedef struct att_profiler_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger);
    int (*start_event)(void *context, void **handle, att_event_v5_t *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, att_event_state_v5_t *arguments);
    int (*finalize)(void *context);
} att_profiler_v5_t;
_Static_assert(offsetof(att_profiler_v5_t, start_event) == 16, "ncclProfiler_v5_t");
_Static_assert(offsetof(att_profiler_v5_t, stop_event) == 24, "ncclProfiler_v5_t");
_Static_assert(offsetof(att_profiler_v5_t, record_event_state) == 32, "ncclProfiler_v5_t");
_Static_assert(sizeof(att_profiler_v5_t) == 48, "ncclProfiler_v5_t");

extern const att_profiler_v5_t ncclProfiler_v5;

#endif
