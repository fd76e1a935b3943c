/*
 * tuner_v4: NCCL's tuner ABI 4 (NCCL 2.24.3; src/include/plugin/tuner/tuner_v4.h). The
 * communicator's hash is not told: the context of the profiler's init on this thread is the one.
 */
#ifndef ATT_HOOK_ABI_TUNER_V4_H
#define ATT_HOOK_ABI_TUNER_V4_H

#include "hook/abi/nccl.h"

#include <stddef.h>

/* `table` is float[algorithms][protocols] behind a cast. */
typedef struct att_tuner_v4 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels);
    int (*destroy)(void *context);
} att_tuner_v4_t;
_Static_assert(offsetof(att_tuner_v4_t, init) == 8, "ncclTuner_v4_t");
_Static_assert(offsetof(att_tuner_v4_t, get_coll_info) == 16, "ncclTuner_v4_t");
_Static_assert(offsetof(att_tuner_v4_t, destroy) == 24, "ncclTuner_v4_t");
_Static_assert(sizeof(att_tuner_v4_t) == 32, "ncclTuner_v4_t");

extern const att_tuner_v4_t ncclTunerPlugin_v4;

#endif
