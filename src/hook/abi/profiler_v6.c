#include "hook/abi/profiler_v6.h"

#include "hook/chain_profiler.h"
#include "hook/profiler.h"

static int init(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger)
{
    const att_profiler_start_t start = {.abi = 6,
                                        .comm_id = comm_id,
                                        .mask = mask,
                                        .comm_name = comm_name,
                                        .nodes = nodes,
                                        .ranks = ranks,
                                        .rank = rank,
                                        .logger = logger};
    return att_chain_profiler_init(context, &start);
}

static void *start_coll(void *context, const att_event_v6_t *event)
{
    struct att_call *call = att_profiler_take(context, event->parent);
    if (call == NULL)
        return NULL;
    const att_coll_event_t coll = {
        .sequence = event->coll.sequence,
        .function = event->coll.function,
        .count = event->coll.count,
        .datatype = event->coll.datatype,
        .algorithm = event->coll.algorithm,
        .protocol = event->coll.protocol,
        .channels = event->coll.channels,
        .warps = event->coll.warps,
    };
    return att_profiler_coll(context, call, &coll);
}

static int start_own(void *context, void **handle, void *descriptor)
{
    att_event_v6_t *event = descriptor;
    *handle = NULL;
    switch (event->type) {
    case ATT_EVENT_GROUP_API:
        att_profiler_group(context, event->group_api.captured);
        break;
    case ATT_EVENT_COLL_API:
        *handle = att_profiler_coll_api(context, event->coll_api.captured);
        if (event->coll_api.function != NULL && event->coll_api.function[0] == 'B')
            att_profiler_broadcast(context, event->coll_api.root);
        break;
    case ATT_EVENT_COLL:
        *handle = start_coll(context, event);
        break;
    case ATT_EVENT_KERNEL_CH:
        *handle = att_profiler_kernel_start(event->parent, event->kernel_ch.channel,
                                            event->kernel_ch.time_ns);
        break;
    default:
        break;
    }
    return ATT_NCCL_SUCCESS;
}

static int start_event(void *context, void **handle, att_event_v6_t *event)
{
    if (!att_chain_profiler_on())
        return start_own(context, handle, event);
    const att_chain_event_t both = {.context = context,
                                    .handle = handle,
                                    .type = event->type,
                                    .event = event,
                                    .parent = &event->parent,
                                    .group = event->type == ATT_EVENT_COLL  ? &event->coll.group
                                             : event->type == ATT_EVENT_P2P ? &event->p2p.group
                                                                            : NULL,
                                    .own = start_own};
    return att_chain_profiler_begin(&both);
}

/* Nothing of ours ends here: Coll stops when it is enqueued, KernelCh brings its time before. */
static int stop_event(void *handle)
{
    if (att_chain_profiler_on())
        att_chain_profiler_stop(handle);
    return ATT_NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, att_event_state_v6_t *arguments)
{
    if (att_chain_profiler_on())
        handle = att_chain_profiler_record(handle, state, arguments);
    if (state == ATT_STATE_KERNEL_CH_STOP && arguments != NULL)
        att_profiler_kernel_stop(handle, arguments->kernel_ch.time_ns);
    return ATT_NCCL_SUCCESS;
}

static int finalize(void *context)
{
    if (att_chain_profiler_on())
        return att_chain_profiler_finalize(context);
    att_profiler_finalize(context);
    return ATT_NCCL_SUCCESS;
}

__attribute__((visibility("default"))) const att_profiler_v6_t ncclProfiler_v6 = {
    .name = "attune",
    .init = init,
    .start_event = start_event,
    .stop_event = stop_event,
    .record_event_state = record_event_state,
    .finalize = finalize,
};
