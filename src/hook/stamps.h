/*
 * stamps: when NCCL may stamp kernels (Coll and KernelCh events), and when that would break the
 * job.
 *
 * For a stamped kernel NCCL gives its proxy thread a number to wait for, counted by the host, and
 * the GPU counts kernels itself (SaveProxyProfiler, src/proxy.cc; profiler(), src/device/common.h).
 * Once the two counts differ the thread waits for what never comes, and ncclCommDestroy for the
 * thread: the job hangs at its end. They differ
 *
 * - where a stamped call was captured into a CUDA graph, and in every communicator whose graphs are
 *   replayed: replays are counted on the GPU alone (NCCL 2.27 to 2.30);
 * - after an AllGatherV, which broadcasts with several roots in one group become (NCCL 2.29.2 to
 *   2.30).
 *
 * The first stamped call of a communicator makes 32.6 MiB of shared memory for each rank (struct
 * ncclProxyOpsPool), which NCCL does not have otherwise where no network is used, and the job dies
 * of a fault when /dev/shm has no room for it (proxyProfilerConnect, src/plugin/profiler.cc).
 *
 * NCCL has one event mask for all communicators, so all of them lose their stamps together. The
 * first captured call must be known before NCCL is called, as NCCL reads its mask before it tells
 * (collTaskAppend, src/enqueue.cc): where that is not possible there are no stamps at all.
 */
#ifndef ATT_HOOK_STAMPS_H
#define ATT_HOOK_STAMPS_H

#include "base/protocol.h"
#include "hook/context.h"
#include "hook/preload_copy.h"
#include "hook/profiler.h"

/* The user may say that the job has no CUDA graphs (attune run --no-graphs). */
bool att_stamps_graphs_excluded(void);

/* A communicator is made: may its calls be stamped? */
void att_stamps_init(att_context_t *context, const att_profiler_start_t *start);

/* Is there room in the file system of `folder` for `pools` of ATT_STAMPS_POOL? */
bool att_stamps_have_room(const char *folder, uint64_t pools);

/* A call goes to this copy, as the preload sees it. No stamps any more when the stream records into
 * a graph: looked at while there may be some, whether or not they are on, as another thread may put
 * them on at any moment. */
void att_stamps_before(const att_preload_copy_t *copy, void *stream);

/* Around a call that is no collective: without stamps. The hook has no use for them, and where such
 * calls and an AllGatherV are in one group NCCL makes their kernels last. True: they were on. */
bool att_stamps_pause(const att_preload_copy_t *copy);
void att_stamps_resume(const att_preload_copy_t *copy);

/* Stamps on, unless they have ended in this process. */
void att_stamps_on(const att_segment_process_t *process, _Atomic int *mask);

/* No more stamps in this process, for good. why: ATT_UNSTAMPED_* */
void att_stamps_end(att_segment_process_t *process, _Atomic int *mask, uint32_t why);

/* NCCL tells of a call that did not come through the preload, by a copy whose calls do. */
extern _Atomic bool att_stamps_by_preload __attribute__((visibility("hidden")));
void att_stamps_bypassed(const att_context_t *context);

/* A Broadcast. A lone one, or several of one root, ask the tuner before the next one comes; others
 * become an AllGatherV. */
void att_stamps_broadcast(att_context_t *context, int root);

#endif
