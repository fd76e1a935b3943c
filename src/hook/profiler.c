/* Hot path (all but init and finalize): no allocation, lock, system call or unbounded loop. */
#include "hook/profiler.h"

#include "base/names.h"
#include "hook/chain_profiler.h"
#include "hook/context.h"
#include "hook/datatype.h"
#include "hook/preload.h"
#include "hook/stamps.h"

static _Atomic uint64_t threads;

void *att_profiler_init(const att_profiler_start_t *start, int *mask)
{
    const att_hook_t *hook = att_hook_attach(start->logger);
    if (hook == NULL || mask == NULL || start->ranks < 2 || start->rank < 0)
        return NULL;
    att_context_t *context = att_context_create(hook, start->comm_id, (uint32_t)start->ranks,
                                                (uint32_t)start->rank, mask, start->abi);
    if (context != NULL)
        att_stamps_init(context, start);
    return context;
}

void att_profiler_finalize(void *pointer)
{
    if (pointer != NULL && !att_hook_is_stopped())
        att_context_leave_profiler(pointer);
}

void att_profiler_group(void *pointer, bool captured)
{
    const att_context_t *context = pointer;
    att_preload_thread_t *me = att_preload_me();
    if (__builtin_expect(me->told_groups == 0, 0))
        me->told_groups = (atomic_fetch_add(&threads, 1) + 1) << 40;
    /* Whoever it is told to: the calls of all its communicators are this thread's. */
    me->told_groups++;
    if (context == NULL || att_hook_is_stopped())
        return;
    if (__builtin_expect(captured, 0)) /* also of Send alone: its replays count, too */
        att_stamps_end(context->sink.process, context->mask, ATT_UNSTAMPED_GRAPH);
    else if (atomic_load_explicit(&att_stamps_by_preload, memory_order_relaxed) &&
             __builtin_expect(me->inside == 0, 0))
        att_stamps_bypassed(context);
}

void *att_profiler_coll_api(void *pointer, bool captured)
{
    att_context_t *context = pointer;
    if (context == NULL || att_hook_is_stopped())
        return NULL;
    bool stamped = (att_context_mask(context) & ATT_STAMPS) != 0;
    if (__builtin_expect(captured, 0))
        att_stamps_end(context->sink.process, context->mask, ATT_UNSTAMPED_GRAPH);
    if (!att_context_decides(context))
        return NULL;
    att_batch_t *batch = &context->batch;
    uint64_t groups = att_preload_me()->told_groups;
    if (batch->decisions > 0 || batch->launched)
        context->gathering = false;
    if (batch->decisions > 0 || batch->launched ||
        groups != atomic_load_explicit(&batch->group, memory_order_relaxed) || batch->apis == 0)
        att_context_begin_batch(context, groups, stamped);
    batch->apis++;
    atomic_store_explicit(&context->names_calls, true, memory_order_relaxed);
    /* NCCL refuses to mix captured and other calls in a group, so each call speaks for all. Never
     * carried over from a call before: ranks may see other ends of a batch without decisions. */
    batch->captured = captured;
    /* Only Coll events name it. NCCL ends no event that has no handle: two calls less. */
    if (!stamped && !att_chain_profiler_on())
        return NULL;
    return att_handle_pack(ATT_HANDLE_API, context->index,
                           atomic_load_explicit(&batch->serial, memory_order_relaxed), 0);
}

void att_profiler_simulate(void)
{
    att_context_t *context;
    uint64_t groups = att_preload_thread.told_groups;
    for (uint32_t i = 0; groups != 0 && (context = att_context_at(i)) != NULL; i++)
        if (atomic_load_explicit(&context->batch.group, memory_order_relaxed) == groups)
            atomic_store(&context->simulated, groups);
}

void att_profiler_broadcast(void *pointer, int root)
{
    if (pointer != NULL && !att_hook_is_stopped())
        att_stamps_broadcast(pointer, root);
}

/* Message bytes as the tuner counts them (ncclFuncMaxSendRecvCount, src/include/enqueue.h). */
static uint64_t message_bytes(const att_context_t *context, int collective,
                              const att_datatype_t *datatype, size_t count)
{
    uint64_t bytes = (uint64_t)count * datatype->bytes;
    if (collective == ATT_COLLECTIVE_ALL_GATHER || collective == ATT_COLLECTIVE_REDUCE_SCATTER)
        bytes *= context->ranks;
    return bytes;
}

static void raise_channels(att_segment_member_t *member, uint32_t channels)
{
    uint32_t most = atomic_load_explicit(&member->channels, memory_order_relaxed);
    while (most < channels && !atomic_compare_exchange_weak(&member->channels, &most, channels))
        continue;
}

static void anomaly(const att_context_t *context)
{
    atomic_fetch_add_explicit(&context->sink.process->anomalies, 1, memory_order_relaxed);
}

struct att_call *att_profiler_take(void *pointer, void *parent_handle)
{
    att_context_t *context = pointer;
    if (!att_context_decides(context))
        return NULL;
    att_handle_t parent = att_handle_unpack(parent_handle);
    uint64_t serial = parent.serial;
    bool named = parent.kind == ATT_HANDLE_API && parent.context == context->index;
    if (!named && atomic_load_explicit(&context->names_calls, memory_order_relaxed))
        return NULL; /* of a graph's replay, its handle long gone: nothing of this batch */
    if (!named) {
        serial = atomic_load_explicit(&context->batch.serial, memory_order_relaxed);
        atomic_fetch_add_explicit(&context->batch.colls, 1, memory_order_relaxed);
    }
    att_call_t *call = att_context_call(context, serial);
    if (att_call_take(call, serial))
        return call;
    /* A second event of the batch, or none that was to be timed. */
    att_call_spoil(call, serial, ATT_UNTIMED_GROUPED, &context->sink);
    return NULL;
}

__attribute__((noinline)) void *att_profiler_coll(void *pointer, struct att_call *call,
                                                  const att_coll_event_t *event)
{
    att_context_t *context = pointer;
    uint64_t serial = att_call_serial(call);
    int collective = att_collective_parse(event->function);
    int algorithm = att_algorithm_parse(event->algorithm);
    int protocol = att_protocol_parse(event->protocol);
    if (algorithm >= 0 && protocol >= 0 && !context->variant)
        atomic_fetch_or_explicit(&context->member->used_pairs, ATT_PAIR_BIT(algorithm, protocol),
                                 memory_order_relaxed);
    const att_datatype_t *datatype = att_datatype_parse(event->datatype);
    att_record_t *record = &call->record;
    if (datatype == NULL || collective != record->collective || algorithm < 0 || protocol < 0 ||
        message_bytes(context, collective, datatype, event->count) != record->bytes ||
        (call->setting.algorithm != ATT_ALGORITHM_KEEP &&
         (algorithm != call->setting.algorithm || protocol != call->setting.protocol))) {
        att_call_drop(call, serial, ATT_UNTIMED_MISMATCH, &context->sink);
        return NULL;
    }
    if (call->setting.channels == 0 && !context->variant)
        raise_channels(context->member, event->channels);
    record->nccl_seq = event->sequence;
    record->algorithm = (int8_t)algorithm;
    record->protocol = (int8_t)protocol;
    record->channels = (uint16_t)event->channels;
    record->threads = (uint16_t)(event->warps * 32);
    /* NCCL has turned these two into bytes: the type is not known. */
    if (collective != ATT_COLLECTIVE_ALL_GATHER && collective != ATT_COLLECTIVE_BROADCAST)
        record->datatype = datatype->number;
    if (event->channels == 0 || event->channels > ATT_CALL_CHANNELS) {
        /* CollNet: how many stamps will come is not said. */
        att_call_drop(call, serial, ATT_UNTIMED_LOST, &context->sink);
        return NULL;
    }
    att_call_time(call, serial, event->channels);
    return att_handle_pack(ATT_HANDLE_COLL, context->index, serial, 0);
}

__attribute__((noinline)) void *att_profiler_kernel_start(void *coll, uint32_t channel,
                                                          uint64_t time_ns)
{
    att_handle_t parent = att_handle_unpack(coll);
    if (parent.kind != ATT_HANDLE_COLL || att_hook_is_stopped())
        return NULL;
    att_context_t *context = att_context_at(parent.context);
    if (context == NULL)
        return NULL;
    if (!att_call_start(att_context_call(context, parent.serial), parent.serial, channel,
                        time_ns)) {
        anomaly(context);
        return NULL;
    }
    if (__builtin_expect(atomic_load_explicit(&context->member->stamped, memory_order_relaxed) == 0,
                         0))
        atomic_store_explicit(&context->member->stamped, 1, memory_order_relaxed);
    return att_handle_pack(ATT_HANDLE_KERNEL, parent.context, parent.serial, channel);
}

void att_profiler_kernel_stop(void *kernel, uint64_t time_ns)
{
    att_handle_t handle = att_handle_unpack(kernel);
    if (handle.kind != ATT_HANDLE_KERNEL || att_hook_is_stopped())
        return;
    att_context_t *context = att_context_at(handle.context);
    if (context == NULL)
        return;
    if (!att_call_stop(att_context_call(context, handle.serial), handle.serial, handle.channel,
                       time_ns, &context->sink))
        anomaly(context);
}
