/*
 * chain profiler: the profiler that NCCL would have loaded without attune (ATTUNE_CHAIN_PROFILER,
 * to which attune run moves the user's NCCL_PROFILER_PLUGIN; unset: libnccl-profiler.so; where
 * there is no such file, since NCCL 2.28.3 the net plugin's library). It gets every event that it
 * asked for, with its own handles as parents, beside attune's half.
 *
 * Its ABI is the newest that both it and NCCL know, from 4 on: an older one gets the events that
 * its ABI has, as NCCL wraps it. Each half has an event mask of its own; NCCL's is both. NCCL gets
 * a ticket for an event that both may have a handle for: a value that names an entry of a ring,
 * recognised by its number, so that a late or repeated callback finds nothing instead of another
 * event. What hangs below an event whose entry is another one's by then is left out.
 *
 * The ABI files call these. Without another profiler they add one branch.
 */
#ifndef ATT_HOOK_CHAIN_PROFILER_H
#define ATT_HOOK_CHAIN_PROFILER_H

#include "hook/profiler.h"

#include <stdatomic.h>
#include <stdbool.h>

/* One startEvent. The fields of the event that hold handles are changed for each half and put back.
 */
typedef struct att_chain_event {
    void *context;
    void **handle;
    uint64_t type;
    void *event; /* NCCL's descriptor, of the ABI's shape */
    void **parent;
    void **group; /* NULL: it has none */
    int (*own)(void *context, void **handle, void *event);
} att_chain_event_t;

typedef struct att_chain_pair {
    void *ours, *theirs;
} att_chain_pair_t;

/* Another profiler is there: contexts are links to both, handles are tickets. */
extern _Atomic bool att_chain_profiles __attribute__((visibility("hidden")));
static inline bool att_chain_profiler_on(void)
{
    return __builtin_expect(atomic_load_explicit(&att_chain_profiles, memory_order_relaxed), 0);
}

int att_chain_profiler_init(void **context, const att_profiler_start_t *start);
int att_chain_profiler_begin(const att_chain_event_t *event);
/* Their half of stopEvent and recordEventState; returns our handle. */
void *att_chain_profiler_stop(void *handle);
void *att_chain_profiler_record(void *handle, int state, void *arguments);
int att_chain_profiler_finalize(void *context);

/* NCCL's mask again from both halves' masks: after each decision, which may have changed ours. */
void att_chain_profiler_sync(void);

#endif
