#include "hook/capture.h"

#include "hook/chain_profiler.h"
#include "hook/event.h"

#include <stdlib.h>
#include <string.h>

/* CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the stream is the legacy one, and another one captures. */
#define OTHER_CAPTURES 906

static _Atomic int switching; /* threads that put stamps on right now */

bool att_capture_is_excluded(void)
{
    const char *graphs = getenv("ATTUNE_GRAPHS");
    return graphs != NULL && (strcmp(graphs, "no") == 0 || strcmp(graphs, "0") == 0);
}

bool att_capture_is_told(const int *mask, _Atomic int *own)
{
    bool preloaded = att_preload_copy_watch(mask, own) && att_event_driver() != NULL;
    return preloaded || !att_event_driver_is_loaded() || att_capture_is_excluded();
}

void att_capture_look(const att_preload_copy_t *copy, void *stream)
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
        att_capture_seen(hook->process, mask);
    else
        return;
    if (att_chain_profiler_on())
        att_chain_profiler_sync();
}

/* Against att_capture_seen in another thread: either this one sees the capture, or that one sees
 * this one and waits until its bits are there to be taken away. */
void att_capture_stamps_on(const att_context_t *context)
{
    atomic_fetch_add(&switching, 1);
    if (atomic_load(&context->sink.process->capturing) == 0)
        atomic_fetch_or(context->mask, ATT_STAMPS);
    atomic_fetch_sub(&switching, 1);
}

void att_capture_seen(att_segment_process_t *process, _Atomic int *mask)
{
    atomic_store(&process->capturing, 1);
    while (atomic_load(&switching) != 0)
        continue;
    atomic_fetch_and(mask, ~ATT_STAMPS);
}
