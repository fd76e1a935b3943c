#include "hook/stamps.h"

#include "base/log.h"
#include "hook/chain_profiler.h"
#include "hook/event.h"

#include <stdlib.h>
#include <string.h>

/* CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the stream is the legacy one, and another one captures. */
#define OTHER_CAPTURES 906

static _Atomic int switching; /* threads that put stamps on right now */

bool att_stamps_graphs_excluded(void)
{
    const char *graphs = getenv("ATTUNE_GRAPHS");
    return graphs != NULL && (strcmp(graphs, "no") == 0 || strcmp(graphs, "0") == 0);
}

bool att_stamps_possible(const int *mask, _Atomic int *own)
{
    bool preloaded = att_preload_copy_watch(mask, own) && att_event_driver() != NULL;
    return preloaded || !att_event_driver_is_loaded() || att_stamps_graphs_excluded();
}

void att_stamps_look(const att_preload_copy_t *copy, void *stream)
{
    const att_hook_t *hook = att_hook_attached();
    const att_event_driver_t *driver = att_event_driver();
    _Atomic int *mask = atomic_load_explicit(&copy->mask, memory_order_acquire);
    int status = 0;
    if (hook == NULL || driver == NULL || att_hook_is_stopped())
        return;
    int error = driver->capturing(stream, &status);
    if (error != 0 && error != OTHER_CAPTURES)
        atomic_fetch_and(mask, ~ATT_STAMPS); /* unknown: not this call */
    else if (error != 0 || status != 0)
        att_stamps_end(hook->process, mask);
    else
        return;
    if (att_chain_profiler_on())
        att_chain_profiler_sync();
}

/* Against att_stamps_end in another thread: either this one sees the end, or that one sees this one
 * and waits until its bits are there to be taken away. */
void att_stamps_on(const att_context_t *context)
{
    atomic_fetch_add(&switching, 1);
    if (atomic_load(&context->sink.process->unstamped) == 0)
        atomic_fetch_or(context->mask, ATT_STAMPS);
    atomic_fetch_sub(&switching, 1);
}

void att_stamps_end(att_segment_process_t *process, _Atomic int *mask)
{
    atomic_store(&process->unstamped, 1);
    while (atomic_load(&switching) != 0)
        continue;
    atomic_fetch_and(mask, ~ATT_STAMPS);
}

/* Profiler ABI 6 and AllGatherV came with the same NCCL, 2.29.2. */
bool att_stamps_gathers(uint32_t profiler_abi)
{
    const char *enabled = getenv("NCCL_ALLGATHERV_ENABLE");
    return profiler_abi >= 6 && (enabled == NULL || strtol(enabled, NULL, 0) != 0);
}

void att_stamps_broadcast(att_context_t *context, int root)
{
    static att_log_site_t site;
    att_batch_t *batch = &context->batch;
    bool several = batch->has_root && batch->root != root;
    batch->has_root = true;
    batch->root = root;
    if (!several || !context->gathers || atomic_load(&context->sink.process->unstamped) != 0)
        return;
    att_stamps_end(context->sink.process, context->mask);
    if (context->rank == 0 && atomic_load(&context->memory->header.agent_tuning) != 0)
        att_log_limited(&site, ATT_LOG_WARN,
                        "no more calls are timed: the job broadcasts from several roots in one "
                        "group, and NCCL's stamps are wrong after such an AllGatherV; "
                        "NCCL_ALLGATHERV_ENABLE=0 does without it");
}
