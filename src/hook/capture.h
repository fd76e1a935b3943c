/*
 * capture: keeps NCCL's kernel stamps out of CUDA graphs. NCCL reads its event mask before it tells
 * that a call is captured (collTaskAppend, src/enqueue.cc), so a profiler learns it too late, and a
 * captured kernel with stamps is worse than slow: its replays are counted on the GPU and not by the
 * host, NCCL's proxy thread waits for counts that never come, and ncclCommDestroy for that thread
 * (SaveProxyProfiler, src/proxy.cc, of NCCL 2.27 to 2.30).
 *
 * So a process gets stamps only where capture is known before NCCL is called, and none any more
 * once it has captured.
 */
#ifndef ATT_HOOK_CAPTURE_H
#define ATT_HOOK_CAPTURE_H

#include "hook/context.h"
#include "hook/preload_copy.h"

/* The user may say that the job has no CUDA graphs (attune run --no-graphs). */
bool att_capture_is_excluded(void);

/* Is capture known before the NCCL whose event mask this is gets a call: from the preload, because
 * no CUDA driver is loaded, or by the user's word? `own` is the hook's part of the mask, which is
 * remembered for att_capture_before. */
bool att_capture_is_told(const int *mask, _Atomic int *own);

/* A call goes to this copy: no stamps when the stream records into a graph. Costs a look at the
 * mask while stamps are off. */
void att_capture_look(const att_preload_copy_t *copy, void *stream);
static inline void att_capture_before(const att_preload_copy_t *copy, void *stream)
{
    _Atomic int *mask = atomic_load_explicit(&copy->mask, memory_order_acquire);
    if (mask != NULL && __builtin_expect(atomic_load(mask) & ATT_EVENT_KERNEL_CH, 0))
        att_capture_look(copy, stream);
}

/* Stamps on, unless this process has captured. */
void att_capture_stamps_on(const att_context_t *context);

/* This process captures: no more stamps, for good. */
void att_capture_seen(att_segment_process_t *process, _Atomic int *mask);

#endif
