/* Hot path (the collectives): no allocation, lock, system call or unbounded loop but at the first
 * call of a call site and of a communicator. */
#include "hook/preload.h"

#include "base/log.h"
#include "hook/event.h"
#include "hook/event_time.h"
#include "hook/preload_comm.h"
#include "hook/profiler.h"
#include "hook/stamps.h"
#include "hook/variant.h"

#include <dlfcn.h>
#include <stdlib.h>

#define CALLER  __builtin_return_address(0)
#define STREAMS 64

__thread att_preload_thread_t att_preload_thread;
_Atomic bool att_preload_active;

static _Atomic uint32_t creations; /* threads that make communicators right now */

/* One call of the application: from before NCCL's function to after it. */
typedef struct scope {
    att_preload_thread_t *me;       /* looked up once: that is a call in a library */
    const att_preload_copy_t *copy; /* NULL: there is no NCCL with this function */
    att_preload_comm_t *entry;      /* NULL: not known */
    att_context_t *context;         /* the entry's when the call began; NULL: not known */
    bool outer;                     /* the application's own, and to be looked at */
    bool paused;                    /* stamps, for this call */
    bool in_family;                 /* a lone call on a communicator with variants */
    uint32_t asked;
    void *comm; /* that the call goes to */
    att_preload_routed_t routed;
} scope_t;

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

static int absent(const char *name)
{
    static att_log_site_t site;
    att_log_limited(&site, ATT_LOG_ERROR,
                    "%s was called through the preloaded hook, but no NCCL of this process has it",
                    name);
    return ATT_NCCL_INVALID_USAGE;
}

/* The application calls NCCL's function `number` for `comm` (NULL: for none). Written in place, as
 * every collective passes here: a copy of it waits for the single bytes to arrive. */
static inline __attribute__((always_inline)) void
enter_into(scope_t *scope, att_nccl_function_t number, void *comm, const void *caller)
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

static scope_t enter(att_nccl_function_t number, void *comm, const void *caller)
{
    scope_t scope = {0};
    enter_into(&scope, number, comm, caller);
    return scope;
}

static int leave(int result)
{
    att_preload_thread.inside--;
    return result;
}

#define REAL(name, ...) ATT_PRELOAD_REAL(scope.copy, name)(__VA_ARGS__)

/* ---- making communicators ---- */

static int policy_of(const att_nccl_config_t *config)
{
    return config != NULL && ATT_NCCL_CONFIG_HAS(config, cta_policy) && config->cta_policy > 0
               ? config->cta_policy
               : 0;
}

static scope_t begin_creation(att_nccl_function_t number, void *parent, int ranks, int rank,
                              const att_nccl_config_t *config, const void *caller)
{
    scope_t scope = enter(number, parent, caller);
    atomic_fetch_add(&creations, 1);
    if (scope.outer && scope.copy != NULL)
        att_preload_thread.creation = (att_preload_creation_t){
            .active = true, .ranks = ranks, .rank = rank, .cta_policy = policy_of(config)};
    return scope;
}

/* Within a group the communicator is made later, by another thread: it is met at its first call. */
static int end_creation(const scope_t *scope, void **comm, const att_nccl_config_t *config,
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
    scope_t scope = begin_creation(ATT_NCCL_CommInitRank, NULL, ranks, rank, NULL, CALLER);
    return end_creation(&scope, comm, NULL,
                        scope.copy != NULL ? REAL(CommInitRank, comm, ranks, id, rank)
                                           : absent("ncclCommInitRank"));
}

int ncclCommInitRankConfig(void **comm, int ranks, att_nccl_id_t id, int rank,
                           att_nccl_config_t *config)
{
    scope_t scope = begin_creation(ATT_NCCL_CommInitRankConfig, NULL, ranks, rank, config, CALLER);
    return end_creation(&scope, comm, config,
                        scope.copy != NULL ? REAL(CommInitRankConfig, comm, ranks, id, rank, config)
                                           : absent("ncclCommInitRankConfig"));
}

int ncclCommInitRankScalable(void **comm, int ranks, int rank, int id_count, att_nccl_id_t *ids,
                             att_nccl_config_t *config)
{
    scope_t scope =
        begin_creation(ATT_NCCL_CommInitRankScalable, NULL, ranks, rank, config, CALLER);
    return end_creation(&scope, comm, config,
                        scope.copy != NULL
                            ? REAL(CommInitRankScalable, comm, ranks, rank, id_count, ids, config)
                            : absent("ncclCommInitRankScalable"));
}

int ncclCommInitAll(void **comms, int devices, const int *list)
{
    scope_t scope = begin_creation(ATT_NCCL_CommInitAll, NULL, devices, -1, NULL, CALLER);
    return end_creation(&scope, NULL, NULL,
                        scope.copy != NULL ? REAL(CommInitAll, comms, devices, list)
                                           : absent("ncclCommInitAll"));
}

int ncclCommSplit(void *comm, int color, int key, void **child, att_nccl_config_t *config)
{
    scope_t scope = begin_creation(ATT_NCCL_CommSplit, comm, 0, -1, config, CALLER);
    return end_creation(&scope, child, config,
                        scope.copy != NULL ? REAL(CommSplit, comm, color, key, child, config)
                                           : absent("ncclCommSplit"));
}

int ncclCommShrink(void *comm, int *excluded, int excluded_count, void **child,
                   att_nccl_config_t *config, int flags)
{
    scope_t scope = begin_creation(ATT_NCCL_CommShrink, comm, 0, -1, config, CALLER);
    /* Its other calls end as by an abort, and it lives on. */
    bool aborts = scope.outer && scope.context != NULL && (flags & ATT_NCCL_SHRINK_ABORT) != 0;
    if (aborts)
        att_context_release(scope.context);
    int result = scope.copy != NULL
                     ? REAL(CommShrink, comm, excluded, excluded_count, child, config, flags)
                     : absent("ncclCommShrink");
    if (aborts)
        atomic_store(&scope.context->gate.released, 0);
    return end_creation(&scope, child, config, result);
}

int ncclCommGrow(void *comm, int ranks, const att_nccl_id_t *id, int rank, void **child,
                 att_nccl_config_t *config)
{
    scope_t scope = begin_creation(ATT_NCCL_CommGrow, comm, ranks, rank, config, CALLER);
    return end_creation(&scope, child, config,
                        scope.copy != NULL ? REAL(CommGrow, comm, ranks, id, rank, child, config)
                                           : absent("ncclCommGrow"));
}

/* ---- taking them down ---- */

/* A call of another thread that stands at a fence must not keep this from ending. */
static scope_t begin_end(att_nccl_function_t number, void *comm, bool forget, const void *caller)
{
    scope_t scope = enter(number, comm, caller);
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
    scope_t scope = begin_end(ATT_NCCL_CommFinalize, comm, false, CALLER);
    return scope.copy != NULL ? leave(REAL(CommFinalize, comm)) : absent("ncclCommFinalize");
}

int ncclCommDestroy(void *comm)
{
    scope_t scope = begin_end(ATT_NCCL_CommDestroy, comm, true, CALLER);
    return scope.copy != NULL ? leave(REAL(CommDestroy, comm)) : absent("ncclCommDestroy");
}

int ncclCommAbort(void *comm)
{
    scope_t scope = begin_end(ATT_NCCL_CommAbort, comm, true, CALLER);
    return scope.copy != NULL ? leave(REAL(CommAbort, comm)) : absent("ncclCommAbort");
}

int ncclCommRevoke(void *comm, int flags)
{
    scope_t scope = begin_end(ATT_NCCL_CommRevoke, comm, false, CALLER);
    if (scope.outer && scope.copy != NULL && scope.entry != NULL)
        att_family_revoke(scope.entry, flags);
    return scope.copy != NULL ? leave(REAL(CommRevoke, comm, flags)) : absent("ncclCommRevoke");
}

int ncclCommGetAsyncError(void *comm, int *error)
{
    scope_t scope = enter(ATT_NCCL_CommGetAsyncError, comm, CALLER);
    if (scope.copy == NULL)
        return absent("ncclCommGetAsyncError");
    int result = REAL(CommGetAsyncError, comm, error);
    if (scope.outer && scope.entry != NULL && result == ATT_NCCL_SUCCESS && error != NULL &&
        *error == ATT_NCCL_SUCCESS)
        *error = att_family_async_error(scope.entry);
    return leave(result);
}

int ncclCommWindowRegister(void *comm, void *buffer, size_t size, void **window, int flags)
{
    scope_t scope = enter(ATT_NCCL_CommWindowRegister, comm, CALLER);
    if (scope.outer)
        att_family_keep_home(scope.entry);
    return scope.copy != NULL ? leave(REAL(CommWindowRegister, comm, buffer, size, window, flags))
                              : absent("ncclCommWindowRegister");
}

/* ---- groups ---- */

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The stream of a call: is it another one? More than STREAMS are counted as STREAMS. */
static void count_stream(const att_hook_t *hook, void *stream)
{
    static _Atomic(void *) streams[STREAMS];
    void *key = stream != NULL ? stream : (void *)UINTPTR_MAX; /* NULL: the default stream */
    for (int i = 0; i < STREAMS; i++) {
        void *there = atomic_load_explicit(&streams[i], memory_order_relaxed);
        if (there == key)
            return;
        if (there == NULL && atomic_compare_exchange_strong(&streams[i], &there, key)) {
            count(&hook->process->streams, 1);
            return;
        }
        if (there == key) /* another thread was first with the same one */
            return;
    }
}

/* The same of a lone call on a communicator that has somewhere to keep it for a while: as
 * decisions, and with them. */
static void count_call(att_context_t *context, bool asked)
{
    context->counts.called++;
    context->counts.answered += asked;
    if (__builtin_expect(context->counts.called >= ATT_COUNTS_KEPT, 0))
        att_context_flush(context);
}

/* `calls` collectives were launched; NCCL asked the tuner meanwhile, or not. */
static void count_calls(uint32_t calls, bool asked)
{
    const att_hook_t *hook = att_hook_attached();
    if (hook == NULL || calls == 0)
        return;
    count(&hook->process->called, calls);
    if (asked)
        count(&hook->process->answered, calls);
}

int ncclGroupStart(void)
{
    scope_t scope = enter(ATT_NCCL_GroupStart, NULL, CALLER);
    if (scope.copy == NULL)
        return absent("ncclGroupStart");
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

/* NCCL makes all streams of a communicator's group wait for its end: any one of them will do. */
static void touch(att_preload_thread_t *me, att_preload_comm_t *entry,
                  const att_preload_call_t *call)
{
    att_family_touch(entry, call);
    entry->touched_stream = call->stream;
    if (entry->touched)
        return;
    entry->touched = true;
    entry->next_touched = me->touched;
    me->touched = entry;
}

int ncclGroupEnd(void)
{
    scope_t scope = enter(ATT_NCCL_GroupEnd, NULL, CALLER);
    if (scope.copy == NULL)
        return absent("ncclGroupEnd");
    int result = leave(REAL(GroupEnd));
    if (!scope.outer)
        return result;
    uint32_t calls = end_group(&att_preload_thread);
    if (att_preload_thread.depth == 0)
        end_touched(&att_preload_thread);
    if (result == ATT_NCCL_SUCCESS)
        count_calls(calls, att_preload_thread.asked != scope.asked);
    return result;
}

int ncclGroupSimulateEnd(void *info)
{
    scope_t scope = enter(ATT_NCCL_GroupSimulateEnd, NULL, CALLER);
    if (scope.copy == NULL)
        return absent("ncclGroupSimulateEnd");
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

/* ---- collectives ---- */

/* No profiler tells about this communicator: is the call captured, and is a time of it wanted? */
static void begin_time(att_context_t *context, void *stream)
{
    att_preload_thread_t *me = &att_preload_thread;
    const att_event_driver_t *driver = att_event_driver();
    if (driver == NULL || att_event_capturing(driver, stream)) {
        me->captured = true;
        return;
    }
    att_event_timer_collect(context->timer, &context->sink, false);
    if (me->depth == 0 &&
        atomic_load_explicit(&context->sink.process->timing, memory_order_relaxed) != 0)
        me->timed = att_event_timer_begin(context->timer, stream);
}

static void end_time(att_context_t *context, void *stream, bool launched)
{
    att_preload_thread_t *me = &att_preload_thread;
    if (me->recorded && !launched) { /* decided and not launched: no time */
        me->record.untimed = ATT_UNTIMED_LOST;
        att_sink_put(&context->sink, &me->record);
        me->recorded = false;
    }
    att_event_timer_end(context->timer, stream, me->recorded ? &me->record : NULL);
    me->timed = false;
    me->recorded = false;
}

static void begin_call(scope_t *scope, att_nccl_function_t number, void *comm,
                       const att_preload_call_t *call, const void *caller)
{
    enter_into(scope, number, comm, caller);
    att_preload_thread_t *me = scope->me;
    if (!scope->outer || scope->copy == NULL)
        return;
    if (scope->entry == NULL)
        scope->entry = att_preload_comm_add(comm, scope->copy, NULL);
    att_stamps_before(scope->copy, call->stream);
    if (call->collective < 0)
        scope->paused = att_stamps_pause(scope->copy);
    if (me->depth == 0)
        me->call = call;
    if (scope->context != NULL && scope->context->timer != NULL && call->collective >= 0)
        begin_time(scope->context, call->stream);
    if (scope->entry != NULL && scope->entry->family != NULL) {
        scope->in_family = me->depth == 0;
        if (scope->in_family)
            scope->comm = att_family_begin(scope->entry, call, &scope->routed);
        else
            touch(me, scope->entry, call);
    }
}

static int end_call(scope_t *scope, const att_preload_call_t *call, int result)
{
    att_preload_thread_t *me = scope->me;
    me->inside--;
    if (!scope->outer)
        return result;
    if (scope->paused)
        att_stamps_resume(scope->copy);
    me->call = NULL;
    if (me->timed)
        end_time(scope->context, call->stream, result == ATT_NCCL_SUCCESS);
    if (me->depth == 0)
        me->captured = false;
    if (scope->in_family)
        att_family_end(scope->entry, call, &scope->routed, result == ATT_NCCL_SUCCESS);
    if (result != ATT_NCCL_SUCCESS || scope->entry == NULL || scope->entry->ranks < 2 ||
        call->count == 0)
        return result;
    const att_hook_t *hook = att_hook_attached();
    if (hook == NULL)
        return result;
    count_stream(hook, call->stream);
    if (call->collective < 0) {
        count(&hook->process->bypassed, 1);
    } else if (me->depth > 0) {
        me->grouped++;
    } else if (scope->context != NULL) {
        count_call(scope->context, me->asked != scope->asked);
    } else {
        count_calls(1, me->asked != scope->asked);
    }
    return result;
}

#define COLLECTIVE(name, which, type, op, count, ...)                                              \
    {                                                                                              \
        const att_preload_call_t call = {which, type, op, count, stream};                          \
        scope_t scope;                                                                             \
        begin_call(&scope, ATT_NCCL_##name, comm, &call, CALLER);                                  \
        comm = scope.comm;                                                                         \
        return scope.copy != NULL ? end_call(&scope, &call, REAL(name, __VA_ARGS__))               \
                                  : absent("nccl" #name);                                          \
    }

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm,
                  void *stream) COLLECTIVE(AllReduce, ATT_COLLECTIVE_ALL_REDUCE, type, op, count,
                                           send, receive, count, type, op, comm, stream)

    int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op,
                          void *comm, void *stream)
        COLLECTIVE(ReduceScatter, ATT_COLLECTIVE_REDUCE_SCATTER, type, op, count, send, receive,
                   count, type, op, comm, stream)

            int ncclAllGather(const void *send, void *receive, size_t count, int type, void *comm,
                              void *stream) COLLECTIVE(AllGather, ATT_COLLECTIVE_ALL_GATHER, type,
                                                       0, count, send, receive, count, type, comm,
                                                       stream)

                int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                                  void *comm, void *stream)
                    COLLECTIVE(Broadcast, ATT_COLLECTIVE_BROADCAST, type, 0, count, send, receive,
                               count, type, root, comm, stream)

                        int ncclBcast(void *buffer, size_t count, int type, int root, void *comm,
                                      void *stream)
                            COLLECTIVE(Bcast, ATT_COLLECTIVE_BROADCAST, type, 0, count, buffer,
                                       count, type, root, comm, stream)

                                int ncclReduce(const void *send, void *receive, size_t count,
                                               int type, int op, int root, void *comm, void *stream)
                                    COLLECTIVE(Reduce, ATT_COLLECTIVE_REDUCE, type, op, count, send,
                                               receive, count, type, op, root, comm, stream)

    /* NCCL asks no tuner about these: they are only counted. */

    int ncclAlltoAll(const void *send, void *receive, size_t count, int type, void *comm,
                     void *stream) COLLECTIVE(AlltoAll, -1, type, 0, count, send, receive, count,
                                              type, comm, stream)

        int ncclGather(const void *send, void *receive, size_t count, int type, int root,
                       void *comm, void *stream)
            COLLECTIVE(Gather, -1, type, 0, count, send, receive, count, type, root, comm, stream)

                int ncclScatter(const void *send, void *receive, size_t count, int type, int root,
                                void *comm,
                                void *stream) COLLECTIVE(Scatter, -1, type, 0, count, send, receive,
                                                         count, type, root, comm, stream)

                    int ncclSend(const void *send, size_t count, int type, int peer, void *comm,
                                 void *stream) COLLECTIVE(Send, -1, type, 0, count, send, count,
                                                          type, peer, comm, stream)

                        int ncclRecv(void *receive, size_t count, int type, int peer, void *comm,
                                     void *stream) COLLECTIVE(Recv, -1, type, 0, count,
                                                              receive, count, type, peer, comm,
                                                              stream)

                            int ncclPutSignal(const void *local, size_t count, int type, int peer,
                                              void *window, size_t offset, int signal, int context,
                                              unsigned flags, void *comm, void *stream)
                                COLLECTIVE(PutSignal, -1, type, 0, count, local, count, type, peer,
                                           window, offset, signal, context, flags, comm, stream)

                                    int ncclSignal(int peer, int signal, int context,
                                                   unsigned flags, void *comm, void *stream)
                                        COLLECTIVE(Signal, -1, 0, 0, 1, peer, signal, context,
                                                   flags, comm, stream)

                                            int ncclWaitSignal(int count, void *signals, void *comm,
                                                               void *stream)
                                                COLLECTIVE(WaitSignal, -1, 0, 0, 1, count, signals,
                                                           comm, stream)
