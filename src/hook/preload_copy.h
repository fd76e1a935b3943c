/*
 * preload copy: an NCCL of this process, found by who calls it. A process may hold several copies
 * (a system's and a wheel's), load one late (PyTorch loads it with RTLD_LOCAL), or have it linked
 * in. A copy that was found is never let go.
 */
#ifndef ATT_HOOK_PRELOAD_COPY_H
#define ATT_HOOK_PRELOAD_COPY_H

#include "hook/abi/nccl_api.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct att_preload_copy {
    void *anchor; /* its ncclCommInitRank: which copy it is */
    /* What comes next for each: NCCL's, or in front of that somebody's who stands there as the
     * preload does (a tracer). NULL: this version lacks it. */
    void *functions[ATT_NCCL_FUNCTION_COUNT];
    int (*comm_count)(const void *comm, int *count);
    int (*comm_rank)(const void *comm, int *rank);
    int (*version)(int *version);
    int version_code;            /* NCCL_VERSION_CODE, 0 unknown */
    _Atomic bool bare;           /* no stamp is in its mask any more, nor will be: hook/stamps.h */
    _Atomic(_Atomic int *) mask; /* the hook's part of its event mask; NULL: no profiler of ours */
} att_preload_copy_t;

/* The copy that code at `caller` (a return address) would be bound to without the preload: the next
 * one in the global scope, else the one in the caller's own scope, else a libnccl.so.2 that is
 * loaded, else the first that was found for anybody. NULL when there is none. Nothing is loaded.
 * Remembered by caller. */
const att_preload_copy_t *att_preload_copy_of(const void *caller);

/* The copy in whose object `address` lies: its calls pass through here, and `mask` becomes its
 * mask. False when there is none: that NCCL is linked statically, or its functions were taken with
 * dlsym. */
bool att_preload_copy_watch(const void *address, _Atomic int *mask);

/* The copy's function with its type. */
#define ATT_PRELOAD_REAL(copy, name) ((__typeof__(&nccl##name))(copy)->functions[ATT_NCCL_##name])

#endif
