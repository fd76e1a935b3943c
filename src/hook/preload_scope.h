/*
 * preload scope: one call of the application, from before NCCL's function to after it.
 */
#ifndef ATT_HOOK_PRELOAD_SCOPE_H
#define ATT_HOOK_PRELOAD_SCOPE_H

#include "hook/preload.h"
#include "hook/preload_comm.h"

typedef struct att_scope {
    att_preload_thread_t *me;       /* looked up once: that is a call in a library */
    const att_preload_copy_t *copy; /* NULL: there is no NCCL with this function */
    att_preload_comm_t *entry;      /* NULL: not known */
    att_context_t *context;         /* the entry's when the call began; NULL: not known */
    bool outer;                     /* the application's own, and to be looked at */
    bool paused;                    /* stamps, for this call */
    bool in_family;                 /* a lone call on a communicator with variants */
    uint32_t asked;                 /* of the thread, when the call began */
    void *comm;                     /* that the call goes to */
    att_preload_routed_t routed;
} att_scope_t;

#define ATT_SCOPE_CALLER            __builtin_return_address(0)
#define ATT_SCOPE_REAL(scope, name) ATT_PRELOAD_REAL((scope).copy, name)

/* The application calls NCCL's function `number` for `comm` (NULL: for none). Written in place, as
 * every collective passes here: a copy of it waits for the single bytes to arrive. */
static inline __attribute__((always_inline)) void
att_scope_enter(att_scope_t *scope, att_nccl_function_t number, void *comm, const void *caller)
{
    att_preload_thread_t *me = att_preload_me();
    att_preload_comm_t *entry = att_preload_comm_find(comm);
    const att_preload_copy_t *copy = entry != NULL ? entry->copy : att_preload_copy_of(caller);
    scope->me = me;
    scope->entry = entry;
    scope->context = entry != NULL ? entry->context : NULL;
    scope->copy = copy != NULL && copy->functions[number] != NULL ? copy : NULL;
    scope->outer = me->inside == 0 && !att_hook_is_stopped();
    scope->paused = false;
    scope->in_family = false;
    scope->asked = me->asked;
    scope->comm = comm;
    if (__builtin_expect(!att_preload_is_active(), 0))
        atomic_store_explicit(&att_preload_active, true, memory_order_relaxed);
    if (scope->copy != NULL)
        me->inside++;
}

/* There is no NCCL with the function `name`: says so. Returns ncclInvalidUsage. */
int att_scope_absent(const char *name);

/* `calls` collectives were launched; NCCL asked the tuner meanwhile, or not. */
void att_scope_count(uint32_t calls, bool asked);

#endif
