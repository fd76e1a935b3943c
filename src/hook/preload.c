/* Communicators and groups; the collectives are in preload_collective.c. */
#include "hook/preload_scope.h"

#include "base/log.h"
#include "hook/profiler.h"
#include "hook/variant.h"

#include <dlfcn.h>
#include <stdlib.h>

#define CALLER          ATT_SCOPE_CALLER
#define REAL(name, ...) ATT_SCOPE_REAL(scope, name)(__VA_ARGS__)

__thread att_preload_thread_t att_preload_thread;
_Atomic bool att_preload_active;

static _Atomic uint32_t creations; /* threads that make communicators right now */

void att_preload_label(att_record_t *record)
{
    const att_preload_call_t *call = att_preload_thread.call;
    if (call != NULL && call->collective == record->collective && call->type >= 0 &&
        call->type < ATT_NCCL_DATATYPES)
        record->datatype = (uint8_t)call->type;
}

att_context_t *att_preload_identify(const att_hook_t *hook, uint64_t comm_id, uint32_t ranks)
{
    static int no_mask; /* there is no profiler whose events could be asked for */
    const att_preload_creation_t *creation = &att_preload_thread.creation;
    if (!creation->active || creation->rank < 0 || creation->ranks != (int)ranks)
        return NULL;
    att_context_create(hook, comm_id, ranks, (uint32_t)creation->rank, &no_mask, 0);
    return att_context_identify(comm_id, ranks);
}

/* In front of NCCL in the global scope, and yet nobody is making a communicator through it: NCCL is
 * linked in statically, or its functions were taken with dlsym. */
static bool bypassed(void)
{
    return getenv("LD_PRELOAD") != NULL && atomic_load(&creations) == 0 &&
           dlsym(RTLD_DEFAULT, "ncclCommInitRank") == (void *)(uintptr_t)ncclCommInitRank;
}

void att_preload_created(att_context_t *context, att_nccl_logger_fn logger)
{
    static _Atomic bool said;
    if (att_preload_thread.creation.active)
        att_preload_thread.creation.context = context;
    else if (bypassed() && !atomic_exchange(&said, true))
        att_hook_say(logger, "NCCL's calls do not pass through the preload (linked statically, or "
                             "taken with dlsym): the plugin works alone");
}

int att_scope_absent(const char *name)
{
    static att_log_site_t site;
    att_log_limited(&site, ATT_LOG_ERROR,
                    "%s was called through the preloaded hook, but no NCCL of this process has it",
                    name);
    return ATT_NCCL_INVALID_USAGE;
}

static att_scope_t enter(att_nccl_function_t number, void *comm, const void *caller)
{
    att_scope_t scope = {0};
    att_scope_enter(&scope, number, comm, caller);
    return scope;
}

static int leave(int result)
{
    att_preload_thread.inside--;
    return result;
}

/* ---- making communicators ---- */

static int policy_of(const att_nccl_config_t *config)
{
    return config != NULL && ATT_NCCL_CONFIG_HAS(config, cta_policy) && config->cta_policy > 0
               ? config->cta_policy
               : 0;
}

static att_scope_t begin_creation(att_nccl_function_t number, void *parent, int ranks, int rank,
                                  const att_nccl_config_t *config, const void *caller)
{
    att_scope_t scope = enter(number, parent, caller);
    atomic_fetch_add(&creations, 1);
    if (scope.outer && scope.copy != NULL)
        att_preload_thread.creation = (att_preload_creation_t){
            .active = true, .ranks = ranks, .rank = rank, .cta_policy = policy_of(config)};
    return scope;
}

/* Within a group the communicator is made later, by another thread: it is met at its first call. */
static int end_creation(const att_scope_t *scope, void **comm, const att_nccl_config_t *config,
                        int result)
{
    att_preload_thread_t *me = &att_preload_thread;
    atomic_fetch_sub(&creations, 1);
    if (scope->copy == NULL)
        return result;
    if (scope->outer) {
        att_context_t *context = me->creation.context;
        me->creation = (att_preload_creation_t){.rank = -1};
        bool made = result == ATT_NCCL_SUCCESS && me->depth == 0 && comm != NULL && *comm != NULL;
        if (made) /* the handle of one that was ended behind the preload's back, used again */
            att_preload_comm_remove(att_preload_comm_find(*comm));
        att_preload_comm_t *entry = made ? att_preload_comm_add(*comm, scope->copy, context) : NULL;
        if (entry != NULL)
            att_family_create(entry, config);
    }
    return leave(result);
}

int ncclCommInitRank(void **comm, int ranks, att_nccl_id_t id, int rank)
{
    att_scope_t scope = begin_creation(ATT_NCCL_CommInitRank, NULL, ranks, rank, NULL, CALLER);
    return end_creation(&scope, comm, NULL,
                        scope.copy != NULL ? REAL(CommInitRank, comm, ranks, id, rank)
                                           : att_scope_absent("ncclCommInitRank"));
}

int ncclCommInitRankConfig(void **comm, int ranks, att_nccl_id_t id, int rank,
                           att_nccl_config_t *config)
{
    att_scope_t scope =
        begin_creation(ATT_NCCL_CommInitRankConfig, NULL, ranks, rank, config, CALLER);
    return end_creation(&scope, comm, config,
                        scope.copy != NULL ? REAL(CommInitRankConfig, comm, ranks, id, rank, config)
                                           : att_scope_absent("ncclCommInitRankConfig"));
}

int ncclCommInitRankScalable(void **comm, int ranks, int rank, int id_count, att_nccl_id_t *ids,
                             att_nccl_config_t *config)
{
    att_scope_t scope =
        begin_creation(ATT_NCCL_CommInitRankScalable, NULL, ranks, rank, config, CALLER);
    return end_creation(&scope, comm, config,
                        scope.copy != NULL
                            ? REAL(CommInitRankScalable, comm, ranks, rank, id_count, ids, config)
                            : att_scope_absent("ncclCommInitRankScalable"));
}

int ncclCommInitAll(void **comms, int devices, const int *list)
{
    att_scope_t scope = begin_creation(ATT_NCCL_CommInitAll, NULL, devices, -1, NULL, CALLER);
    return end_creation(&scope, NULL, NULL,
                        scope.copy != NULL ? REAL(CommInitAll, comms, devices, list)
                                           : att_scope_absent("ncclCommInitAll"));
}

int ncclCommSplit(void *comm, int color, int key, void **child, att_nccl_config_t *config)
{
    att_scope_t scope = begin_creation(ATT_NCCL_CommSplit, comm, 0, -1, config, CALLER);
    return end_creation(&scope, child, config,
                        scope.copy != NULL ? REAL(CommSplit, comm, color, key, child, config)
                                           : att_scope_absent("ncclCommSplit"));
}

int ncclCommShrink(void *comm, int *excluded, int excluded_count, void **child,
                   att_nccl_config_t *config, int flags)
{
    att_scope_t scope = begin_creation(ATT_NCCL_CommShrink, comm, 0, -1, config, CALLER);
    /* Its other calls end as by an abort, and it lives on. */
    bool aborts = scope.outer && scope.context != NULL && (flags & ATT_NCCL_SHRINK_ABORT) != 0;
    if (aborts)
        att_context_release(scope.context);
    int result = scope.copy != NULL
                     ? REAL(CommShrink, comm, excluded, excluded_count, child, config, flags)
                     : att_scope_absent("ncclCommShrink");
    if (aborts)
        atomic_store(&scope.context->gate.released, 0);
    return end_creation(&scope, child, config, result);
}

int ncclCommGrow(void *comm, int ranks, const att_nccl_id_t *id, int rank, void **child,
                 att_nccl_config_t *config)
{
    att_scope_t scope = begin_creation(ATT_NCCL_CommGrow, comm, ranks, rank, config, CALLER);
    return end_creation(&scope, child, config,
                        scope.copy != NULL ? REAL(CommGrow, comm, ranks, id, rank, child, config)
                                           : att_scope_absent("ncclCommGrow"));
}

/* ---- taking them down ---- */

/* A call of another thread that stands at a fence must not keep this from ending. */
static att_scope_t begin_end(att_nccl_function_t number, void *comm, bool forget,
                             const void *caller)
{
    att_scope_t scope = enter(number, comm, caller);
    if (!scope.outer || scope.entry == NULL || scope.copy == NULL)
        return scope;
    if (scope.context != NULL)
        att_context_release(scope.context);
    else if (number == ATT_NCCL_CommAbort || number == ATT_NCCL_CommRevoke)
        att_context_release_like((uint32_t)scope.entry->ranks, (uint32_t)scope.entry->rank);
    if (number == ATT_NCCL_CommFinalize)
        att_family_finalize(scope.entry);
    else if (number == ATT_NCCL_CommDestroy)
        att_family_destroy(scope.entry);
    else if (number == ATT_NCCL_CommAbort)
        att_family_abort(scope.entry);
    if (forget) {
        att_preload_comm_remove(scope.entry);
        scope.entry = NULL;
    }
    return scope;
}

int ncclCommFinalize(void *comm)
{
    att_scope_t scope = begin_end(ATT_NCCL_CommFinalize, comm, false, CALLER);
    return scope.copy != NULL ? leave(REAL(CommFinalize, comm))
                              : att_scope_absent("ncclCommFinalize");
}

int ncclCommDestroy(void *comm)
{
    att_scope_t scope = begin_end(ATT_NCCL_CommDestroy, comm, true, CALLER);
    return scope.copy != NULL ? leave(REAL(CommDestroy, comm))
                              : att_scope_absent("ncclCommDestroy");
}

int ncclCommAbort(void *comm)
{
    att_scope_t scope = begin_end(ATT_NCCL_CommAbort, comm, true, CALLER);
    return scope.copy != NULL ? leave(REAL(CommAbort, comm)) : att_scope_absent("ncclCommAbort");
}

int ncclCommRevoke(void *comm, int flags)
{
    att_scope_t scope = begin_end(ATT_NCCL_CommRevoke, comm, false, CALLER);
    if (scope.outer && scope.copy != NULL && scope.entry != NULL)
        att_family_revoke(scope.entry, flags);
    return scope.copy != NULL ? leave(REAL(CommRevoke, comm, flags))
                              : att_scope_absent("ncclCommRevoke");
}

int ncclCommGetAsyncError(void *comm, int *error)
{
    att_scope_t scope = enter(ATT_NCCL_CommGetAsyncError, comm, CALLER);
    if (scope.copy == NULL)
        return att_scope_absent("ncclCommGetAsyncError");
    int result = REAL(CommGetAsyncError, comm, error);
    if (scope.outer && scope.entry != NULL && result == ATT_NCCL_SUCCESS && error != NULL &&
        *error == ATT_NCCL_SUCCESS)
        *error = att_family_async_error(scope.entry);
    return leave(result);
}

int ncclCommWindowRegister(void *comm, void *buffer, size_t size, void **window, int flags)
{
    att_scope_t scope = enter(ATT_NCCL_CommWindowRegister, comm, CALLER);
    if (scope.outer)
        att_family_keep_home(scope.entry);
    return scope.copy != NULL ? leave(REAL(CommWindowRegister, comm, buffer, size, window, flags))
                              : att_scope_absent("ncclCommWindowRegister");
}

/* ---- groups ---- */

int ncclGroupStart(void)
{
    att_scope_t scope = enter(ATT_NCCL_GroupStart, NULL, CALLER);
    if (scope.copy == NULL)
        return att_scope_absent("ncclGroupStart");
    int result = leave(REAL(GroupStart));
    if (scope.outer && result == ATT_NCCL_SUCCESS)
        att_preload_thread.depth++;
    return result;
}

/* The application's outermost group ended, whatever its result: the calls in it are over. */
static uint32_t end_group(att_preload_thread_t *me)
{
    if (me->depth > 0)
        me->depth--;
    if (me->depth > 0)
        return 0;
    uint32_t calls = me->grouped;
    me->grouped = 0;
    me->captured = false;
    return calls;
}

/* Communicators with variants that the group used: their next call may be another's. */
static void end_touched(att_preload_thread_t *me)
{
    for (att_preload_comm_t *entry = me->touched, *next; entry != NULL; entry = next) {
        next = entry->next_touched;
        entry->touched = false;
        att_family_ended(entry, entry->touched_stream);
    }
    me->touched = NULL;
}

int ncclGroupEnd(void)
{
    att_scope_t scope = enter(ATT_NCCL_GroupEnd, NULL, CALLER);
    if (scope.copy == NULL)
        return att_scope_absent("ncclGroupEnd");
    int result = leave(REAL(GroupEnd));
    if (!scope.outer)
        return result;
    uint32_t calls = end_group(&att_preload_thread);
    if (att_preload_thread.depth == 0)
        end_touched(&att_preload_thread);
    if (result == ATT_NCCL_SUCCESS)
        att_scope_count(calls, att_preload_thread.asked != scope.asked);
    return result;
}

int ncclGroupSimulateEnd(void *info)
{
    att_scope_t scope = enter(ATT_NCCL_GroupSimulateEnd, NULL, CALLER);
    if (scope.copy == NULL)
        return att_scope_absent("ncclGroupSimulateEnd");
    att_preload_thread_t *me = scope.me;
    bool simulates = scope.outer && me->depth <= 1; /* within a group it only ends the inner one */
    if (simulates)
        att_profiler_simulate();
    me->simulating = simulates;
    int result = leave(REAL(GroupSimulateEnd, info));
    me->simulating = false;
    if (!scope.outer)
        return result;
    end_group(me);
    if (me->depth == 0)
        end_touched(me);
    return result;
}
