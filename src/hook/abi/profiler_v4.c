#include "hook/abi/profiler_v4.h"

#include "hook/profiler.h"

static int init(void **context, int *mask, const char *comm_name, uint64_t comm_id, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger)
{
    *context = att_profiler_init(comm_id, mask, ranks, rank, logger, 4);
    return ATT_NCCL_SUCCESS;
}

static void *start_coll(void *context, const att_event_v4_t *event)
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

static int start_event(void *context, void **handle, att_event_v4_t *event)
{
    *handle = NULL;
    if (event->type == ATT_EVENT_COLL)
        *handle = start_coll(context, event);
    else if (event->type == ATT_EVENT_KERNEL_CH)
        *handle = att_profiler_kernel_start(event->parent, event->kernel_ch.channel,
                                            event->kernel_ch.time_ns);
    return ATT_NCCL_SUCCESS;
}

/* Nothing of ours ends here: Coll stops when it is enqueued, KernelCh brings its time before. */
static int stop_event(void *handle)
{
    return ATT_NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, att_event_state_v4_t *arguments)
{
    if (state == ATT_STATE_KERNEL_CH_STOP && arguments != NULL)
        att_profiler_kernel_stop(handle, arguments->kernel_ch.time_ns);
    return ATT_NCCL_SUCCESS;
}

static int finalize(void *context)
{
    att_profiler_finalize(context);
    return ATT_NCCL_SUCCESS;
}

__attribute__((visibility("default"))) const att_profiler_v4_t ncclProfiler_v4 = {
    .name = "attune",
    .init = init,
    .start_event = start_event,
    .stop_event = stop_event,
    .record_event_state = record_event_state,
    .finalize = finalize,
};
