/*
 * preload: the hook in front of NCCL's own functions (LD_PRELOAD), for what a plugin is not told:
 * data types, streams, which calls bypass the tuner, and when a communicator is taken down.
 *
 * Every function calls NCCL's own (pncclX of the copy that the caller would be bound to) exactly
 * once and returns what it returned. Calls that NCCL makes of its own exported functions, calls of
 * a forked child and of a thread that is already inside pass straight through. As a plugin only,
 * nothing here is ever called.
 */
#ifndef ATT_HOOK_PRELOAD_H
#define ATT_HOOK_PRELOAD_H

#include "hook/context.h"

#include <stdbool.h>
#include <stdint.h>

/* The lone call (outside of a group) that this thread is in. */
typedef struct att_preload_call {
    int collective; /* att_collective_t, or one that NCCL does not ask a tuner about: -1 */
    int type;       /* ncclDataType_t */
    int op;         /* ncclRedOp_t */
    size_t count;
    void *stream;
} att_preload_call_t;

/* A communicator that this thread makes. */
typedef struct att_preload_creation {
    bool active;
    int ranks, rank;             /* 0 and -1: not told (ncclCommSplit) */
    att_context_t *context;      /* set by the tuner's init */
    const att_context_t *parent; /* it is a variant of this one; NULL: it is none */
    int cta_policy;              /* of its configuration; 0: none */
} att_preload_creation_t;

/* A decision that was taken before NCCL was called, for the communicator that the call went to
 * (hook/variant.h). */
typedef struct att_preload_routed {
    att_lane_t *lane; /* NULL: none was taken */
    const att_context_t *context;
    att_decision_t decision;
    bool impossible; /* its variant is not there: the call must fail */
    bool captured;
    void *comm;
    struct att_route *route;
} att_preload_routed_t;

struct att_preload_comm;

typedef struct att_preload_thread {
    uint32_t inside;  /* in a function of NCCL that was called here */
    uint32_t depth;   /* groups that the application has open */
    uint32_t grouped; /* collectives since the outermost one began */
    uint32_t asked;   /* questions to the tuner on this thread */
    const att_preload_call_t *call;
    const att_preload_routed_t *routed; /* for the next question to the tuner */
    att_lane_t *lane;                   /* of the last question */
    uint64_t told_groups; /* GroupApi events of the profiler, above the thread's number */
    bool simulating;      /* in ncclGroupSimulateEnd: what NCCL asks about is no call */
    bool captured;        /* the call in hand, or one of the open group, goes into a CUDA graph */
    bool timed;           /* an event was recorded before the call in hand */
    bool recorded;        /* `record` is what it gives */
    att_preload_creation_t creation;
    att_record_t record;
    uint32_t variants;                /* that a task which this call begins can be sent to */
    struct att_preload_comm *touched; /* with variants, by the open group: a list */
} att_preload_thread_t;

extern __thread att_preload_thread_t att_preload_thread __attribute__((visibility("hidden")));

/* For hot paths: where a thread's data are is asked of the loader, by a call. The compiler would
 * ask again at each use, as it knows the answer for a constant; behind the barrier it keeps it. */
static inline att_preload_thread_t *att_preload_me(void)
{
    att_preload_thread_t *me = &att_preload_thread;
    __asm__("" : "+r"(me));
    return me;
}

/* True from the first call on that passed through here. */
extern _Atomic bool att_preload_active __attribute__((visibility("hidden")));

static inline bool att_preload_is_active(void)
{
    return __builtin_expect(atomic_load_explicit(&att_preload_active, memory_order_relaxed), 0);
}

/* The tuner is asked about a communicator: the decision that was taken for it, or NULL. */
static inline const att_preload_routed_t *att_preload_take(att_preload_thread_t *me,
                                                           const att_context_t *context)
{
    const att_preload_routed_t *routed = me->routed;
    me->asked++;
    if (routed == NULL || routed->context != context)
        return NULL;
    me->routed = NULL;
    return routed;
}

/* Put what the preload knows about this thread's call into its record. */
void att_preload_label(att_record_t *record);

/* Tuner init without the profiler's half: the rank as the preload knows it. NULL when it does not.
 */
att_context_t *att_preload_identify(const att_hook_t *hook, uint64_t comm_id, uint32_t ranks);
/* Tuner init: this context is the communicator that this thread makes. Says so once when
 * communicators are made that the preload does not see. */
void att_preload_created(att_context_t *context, att_nccl_logger_fn logger);

#endif
