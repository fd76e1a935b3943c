/*
 * mark: tells attune where an iteration of the training loop begins, for traces and reports.
 *
 * libattune-nccl.so exports the function. A program finds it without linking to attune:
 *     void *hook = dlopen("libattune-nccl.so", RTLD_NOW | RTLD_NOLOAD);
 *     attune_mark_iteration_fn mark = hook ? dlsym(hook, "attune_mark_iteration") : NULL;
 * and from Python with ctypes.CDLL. Optional: nothing depends on marks.
 */
#ifndef ATTUNE_MARK_H
#define ATTUNE_MARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rank: the caller's number in the job; iteration: counted by the caller; time_ns: CLOCK_MONOTONIC,
 * or the modelled fabric's clock (ncclFabricNow); 0 means now. Costs less than a microsecond; does
 * nothing before the first communicator, without a sidecar, or while nobody traces. Returns 1 when
 * the mark was recorded, else 0. Any thread. */
typedef int (*attune_mark_iteration_fn)(int rank, uint64_t iteration, uint64_t time_ns);
int attune_mark_iteration(int rank, uint64_t iteration, uint64_t time_ns);

#ifdef __cplusplus
}
#endif

#endif
