/*
 * stamps: when NCCL may stamp kernels (Coll and KernelCh events).
 *
 * For a stamped kernel NCCL gives its proxy thread a number to wait for, counted by the host, and the
 * GPU counts kernels itself (SaveProxyProfiler, src/proxy.cc; profiler(), src/device/common.h). Once
 * the two counts differ the thread waits for what never comes, and ncclCommDestroy for the thread:
 * the job hangs at its end. They differ
 *
 * - where a stamped call was captured into a CUDA graph, and in every communicator whose graphs are
 *   replayed: replays are counted on the GPU alone (NCCL 2.27 to 2.30);
 * - after an AllGatherV, which broadcasts with several roots in one group become (NCCL 2.29.2 to 2.30).
 *
 * Then a process gets no stamps any more. The first captured call must be known before NCCL is called,
 * as NCCL reads its event mask before it tells (collTaskAppend, src/enqueue.cc): where that is not
 * possible there are none at all.
 */
#ifndef ATT_HOOK_STAMPS_H
#define ATT_HOOK_STAMPS_H

#include "hook/context.h"
#include "hook/preload_copy.h"

/* The user may say that the job has no CUDA graphs (attune run --no-graphs). */
bool att_stamps_graphs_excluded(void);

/* Is capture known before the NCCL whose event mask this is gets a call: from the preload, because
 * no CUDA driver is loaded, or by the user's word? `own` is the hook's part of the mask, which is
 * remembered for att_stamps_before. */
bool att_stamps_possible(const int *mask, _Atomic int *own);

/* A call goes to this copy: no stamps when the stream records into a graph. Costs a look at the
 * mask while stamps are off. */
void att_stamps_look(const att_preload_copy_t *copy, void *stream);
static inline void att_stamps_before(const att_preload_copy_t *copy, void *stream)
{
    _Atomic int *mask = atomic_load_explicit(&copy->mask, memory_order_acquire);
    if (mask != NULL && __builtin_expect(atomic_load(mask) & ATT_EVENT_KERNEL_CH, 0))
        att_stamps_look(copy, stream);
}

/* Stamps on, unless they have ended in this process. */
void att_stamps_on(const att_context_t *context);

/* No more stamps in this process, for good. */
void att_stamps_end(att_segment_process_t *process, _Atomic int *mask);

/* May NCCL make an AllGatherV of broadcasts? */
bool att_stamps_gathers(uint32_t profiler_abi);
/* A Broadcast that is not the first of its batch: does another root make it an AllGatherV? */
void att_stamps_broadcast(att_context_t *context, int root);

#endif
