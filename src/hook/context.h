/*
 * context: one rank of one communicator, as NCCL knows it: the object behind both the profiler's
 * and the tuner's context pointer.
 *
 * The profiler's init makes it and knows the rank; the tuner's init, next on the same thread, joins
 * it with the group. A tuner without its profiler has no rank and gets att_context_idle, which
 * changes nothing. A context's memory is never freed, only used again after both have finalized:
 * a late callback finds memory that is still there and a serial number that no longer fits.
 *
 * NCCL calls one communicator from one thread at a time; what only getCollInfo, getChunkSize and
 * CollApi events touch is plain. Coll and KernelCh events may come from other threads: they touch
 * `calls` and what is atomic.
 */
#ifndef ATT_HOOK_CONTEXT_H
#define ATT_HOOK_CONTEXT_H

#include "base/fence.h"
#include "hook/call.h"
#include "hook/handle.h"
#include "hook/hook.h"

#define ATT_CONTEXTS      (1u << ATT_CONTEXT_BITS)
#define ATT_CALLS         2048 /* calls in flight per context: twice what a CUDA stream queues */
#define ATT_TABLE         1024 /* entries of a context's task table, a power of two */
#define ATT_CONTEXT_TASKS 768  /* tasks that it takes before it refuses */
#define ATT_PROBES        16
#define ATT_BATCH         16 /* decisions of a batch whose chunks can be told apart */

/* First profiler ABI with events of API calls, which tell batches and capture. */
#define ATT_PROFILER_WITH_CALLS 5

/* Events that give a call its time: KernelCh events hang below Coll events. */
#define ATT_STAMPS (ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH)

/* One decision of the batch, as getChunkSize needs it. KEEP: whatever pair NCCL chose. */
typedef struct att_batch_entry {
    int8_t collective, algorithm, protocol;
    uint32_t chunk_bytes;
} att_batch_entry_t;

/* The callbacks of one outermost group (or lone call) on one communicator. */
typedef struct att_batch {
    _Atomic uint64_t serial; /* one per batch, from 1 */
    _Atomic uint32_t colls;  /* Coll events that could not name their batch */
    _Atomic uint64_t group;  /* that its CollApi events lay in: the thread's count of them */
    uint32_t apis;           /* CollApi events */
    uint32_t decisions;
    uint32_t chunks; /* decisions that ask for a chunk */
    bool captured;   /* into a CUDA graph */
    bool stamped;    /* KernelCh events were on when its calls were enqueued */
    bool launched;   /* getChunkSize or Coll events came: no more decisions belong to it */
    att_batch_entry_t entries[ATT_BATCH];
} att_batch_t;

/* key: bit 31 used, bits 21-23 collective, bits 0-20 legal pairs. lane NULL: no room, not tuned. */
typedef struct att_task_entry {
    uint64_t bytes;
    uint32_t key;
    att_lane_t *lane;
} att_task_entry_t;

/* Counts kept here and added to the segment in lots, so that ranks of one process do not fight for
 * its cache line. */
typedef struct att_counts {
    uint64_t decisions, noted, simulated, unseen; /* decisions that are not noted are OFF */
    uint64_t called, answered;                    /* as the preload sees them */
} att_counts_t;

#define ATT_COUNTS_KEPT 64 /* at most: then they are added to the segment */

typedef struct att_context {
    _Atomic bool deciding; /* identified, in a group and not finalized: getCollInfo may decide */
    uint32_t index;
    uint32_t tuner_abi;
    uint32_t member_index;
    _Atomic int *mask;            /* NCCL's event mask; shared by all communicators of one NCCL */
    att_segment_memory_t *memory; /* NULL: idle */
    att_segment_member_t *member;
    att_task_entry_t *tasks;
    att_call_t *calls;
    att_sink_t sink;
    att_counts_t counts;
    att_batch_t batch;
    att_lane_gate_t gate;
    struct att_event_timer *timer; /* no profiler, but CUDA events; NULL: stamps, or no times */
    int8_t chosen_algorithm, chosen_protocol; /* with a timer: NCCL's own for the call in hand */
    uint64_t comm_id;
    uint32_t task_count;
    uint32_t ranks, rank;
    uint32_t profiler_abi;
    uint32_t process_index;
    bool has_profiler, has_tuner;
    int broadcast_root; /* of the latest Broadcast since the tuner was asked */
    bool has_root;
    bool gathers;               /* broadcasts may become an AllGatherV: hook/stamps.h */
    bool gathering;             /* those of the group in hand do, which asks as an AllGather */
    bool variant;               /* another's: counts for its member, decides when told to */
    bool owned;                 /* the preload knows its communicator */
    _Atomic uint64_t simulated; /* the group that is only simulated, as in `batch`; 0 none */
    _Atomic bool names_calls;   /* NCCL tells of CollApi events: a Coll event names its own */
    struct att_context *next_free;
} att_context_t;

/* Decides nothing, counts nothing. */
extern att_context_t att_context_idle;

/* Profiler init: a context that the next tuner init of this thread for the same communicator finds.
 * NULL when there is no more room. */
att_context_t *att_context_create(const att_hook_t *hook, uint64_t comm_id, uint32_t ranks,
                                  uint32_t rank, int *mask, uint32_t profiler_abi);
/* Tuner init: the context that the profiler init before on this thread made; NULL when there is
 * none, or for another communicator (comm_id 0: not told, the number of ranks decides). */
att_context_t *att_context_identify(uint64_t comm_id, uint64_t ranks);
/* Join the node's group: from now on the context decides. False when a table is full. */
bool att_context_join(att_context_t *context, uint32_t nodes, uint32_t tuner_abi,
                      att_nccl_logger_fn logger);
/* Join as a variant of `parent`. */
void att_context_join_variant(att_context_t *context, const att_context_t *parent,
                              uint32_t tuner_abi);
void att_context_leave_tuner(att_context_t *context);
void att_context_leave_profiler(att_context_t *context);

/* The communicator is being taken down by another thread: calls that stand at a fence end, and have
 * left (or a second is over) when this returns. */
void att_context_release(att_context_t *context);
/* The same for those at a fence that no known communicator has: made in a group or not blocking,
 * only their shape is known. */
void att_context_release_like(uint32_t ranks, uint32_t rank);

/* NULL when there is none with this index. */
att_context_t *att_context_at(uint32_t index);

/* Add the counts to the segment. */
void att_context_flush(att_context_t *context);
void att_context_flush_all(void);

/* First call of a task: make its lane. NULL when there is no room. variants: that its calls can be
 * sent to. */
att_lane_t *att_context_add_task(att_context_t *context, uint32_t key, uint64_t bytes,
                                 const float cost_us[ATT_PAIR_COUNT], uint32_t variants);

static inline uint32_t att_task_key(uint32_t collective, uint32_t legal_pairs)
{
    return 1u << 31 | collective << 21 | legal_pairs;
}

static inline uint32_t att_task_hash(uint32_t key, uint64_t bytes)
{
    return (uint32_t)(((bytes ^ (uint64_t)key << 32) * 0x9e3779b97f4a7c15u) >> 40);
}

/* The entry of (key, bytes), an unused one where it would go, or NULL: all probes are taken. */
static inline att_task_entry_t *att_task_find(att_context_t *context, uint32_t key, uint64_t bytes)
{
    uint32_t at = att_task_hash(key, bytes);
    for (uint32_t i = 0; i < ATT_PROBES; i++, at++) {
        att_task_entry_t *entry = &context->tasks[at % ATT_TABLE];
        if ((entry->key == key && entry->bytes == bytes) || entry->key == 0)
            return entry;
    }
    return NULL;
}

static inline att_call_t *att_context_call(att_context_t *context, uint64_t serial)
{
    return &context->calls[serial % ATT_CALLS];
}

static inline bool att_context_decides(const att_context_t *context)
{
    return context != NULL && atomic_load_explicit(&context->deciding, memory_order_relaxed) &&
           !att_hook_is_stopped();
}

/* The batch before had no Coll event that could be timed, or no decision at all. */
void att_context_close_batch(att_context_t *context);

/* Close the batch and begin the next one. */
static inline void att_context_begin_batch(att_context_t *context, uint64_t group, bool stamped)
{
    att_batch_t *batch = &context->batch;
    if (__builtin_expect(batch->decisions == 0 || batch->stamped, 0))
        att_context_close_batch(context);
    uint64_t serial = atomic_load_explicit(&batch->serial, memory_order_relaxed);
    atomic_store_explicit(&batch->serial, serial + 1, memory_order_relaxed);
    atomic_store_explicit(&batch->colls, 0, memory_order_relaxed);
    atomic_store_explicit(&batch->group, group, memory_order_relaxed);
    batch->apis = 0;
    batch->decisions = 0;
    batch->chunks = 0;
    batch->captured = false;
    batch->stamped = stamped;
    batch->launched = false;
}

static inline int att_context_mask(const att_context_t *context)
{
    return atomic_load_explicit(context->mask, memory_order_relaxed);
}

#endif
