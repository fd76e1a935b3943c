/* The collectives. Hot path: no allocation, lock, system call or unbounded loop but at the first
 * call of a call site and of a communicator. */
#include "hook/preload_scope.h"

#include "hook/event.h"
#include "hook/event_time.h"
#include "hook/stamps.h"
#include "hook/variant.h"

#define STREAMS 64

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

void att_scope_count(uint32_t calls, bool asked)
{
    const att_hook_t *hook = att_hook_attached();
    if (hook == NULL || calls == 0)
        return;
    count(&hook->process->called, calls);
    if (asked)
        count(&hook->process->answered, calls);
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

static void begin_call(att_scope_t *scope, att_nccl_function_t number, void *comm,
                       const att_preload_call_t *call, const void *caller)
{
    att_scope_enter(scope, number, comm, caller);
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

static int end_call(att_scope_t *scope, const att_preload_call_t *call, int result)
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
        att_scope_count(1, me->asked != scope->asked);
    }
    return result;
}

/* The whole body of NCCL's function `name`: what comes after `count` are its arguments. */
#define COLLECTIVE(name, which, type, op, count, ...)                                              \
    const att_preload_call_t call = {which, type, op, count, stream};                              \
    att_scope_t scope;                                                                             \
    begin_call(&scope, ATT_NCCL_##name, comm, &call, ATT_SCOPE_CALLER);                            \
    comm = scope.comm;                                                                             \
    return scope.copy != NULL ? end_call(&scope, &call, ATT_SCOPE_REAL(scope, name)(__VA_ARGS__))  \
                              : att_scope_absent("nccl" #name)

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm,
                  void *stream)
{
    COLLECTIVE(AllReduce, ATT_COLLECTIVE_ALL_REDUCE, type, op, count, send, receive, count, type,
               op, comm, stream);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op, void *comm,
                      void *stream)
{
    COLLECTIVE(ReduceScatter, ATT_COLLECTIVE_REDUCE_SCATTER, type, op, count, send, receive, count,
               type, op, comm, stream);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type, void *comm, void *stream)
{
    COLLECTIVE(AllGather, ATT_COLLECTIVE_ALL_GATHER, type, 0, count, send, receive, count, type,
               comm, stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, void *comm,
                  void *stream)
{
    COLLECTIVE(Broadcast, ATT_COLLECTIVE_BROADCAST, type, 0, count, send, receive, count, type,
               root, comm, stream);
}

int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
    COLLECTIVE(Bcast, ATT_COLLECTIVE_BROADCAST, type, 0, count, buffer, count, type, root, comm,
               stream);
}

int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
               void *comm, void *stream)
{
    COLLECTIVE(Reduce, ATT_COLLECTIVE_REDUCE, type, op, count, send, receive, count, type, op, root,
               comm, stream);
}

/* ---- NCCL asks no tuner about these: they are only counted ---- */

int ncclAlltoAll(const void *send, void *receive, size_t count, int type, void *comm, void *stream)
{
    COLLECTIVE(AlltoAll, -1, type, 0, count, send, receive, count, type, comm, stream);
}

int ncclGather(const void *send, void *receive, size_t count, int type, int root, void *comm,
               void *stream)
{
    COLLECTIVE(Gather, -1, type, 0, count, send, receive, count, type, root, comm, stream);
}

int ncclScatter(const void *send, void *receive, size_t count, int type, int root, void *comm,
                void *stream)
{
    COLLECTIVE(Scatter, -1, type, 0, count, send, receive, count, type, root, comm, stream);
}

int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream)
{
    COLLECTIVE(Send, -1, type, 0, count, send, count, type, peer, comm, stream);
}

int ncclRecv(void *receive, size_t count, int type, int peer, void *comm, void *stream)
{
    COLLECTIVE(Recv, -1, type, 0, count, receive, count, type, peer, comm, stream);
}

int ncclPutSignal(const void *local, size_t count, int type, int peer, void *window, size_t offset,
                  int signal, int context, unsigned flags, void *comm, void *stream)
{
    COLLECTIVE(PutSignal, -1, type, 0, count, local, count, type, peer, window, offset, signal,
               context, flags, comm, stream);
}

int ncclSignal(int peer, int signal, int context, unsigned flags, void *comm, void *stream)
{
    COLLECTIVE(Signal, -1, 0, 0, 1, peer, signal, context, flags, comm, stream);
}

int ncclWaitSignal(int count, void *signals, void *comm, void *stream)
{
    COLLECTIVE(WaitSignal, -1, 0, 0, 1, count, signals, comm, stream);
}
