/*
 * tuner_v2: NCCL's tuner ABI 2 (NCCL 2.21.5; src/include/plugin/tuner/tuner_v2.h). It has no cost
 * table, and that NCCL takes an answer without looking whether there is a kernel for it: attune
 * answers nothing, which keeps NCCL's choice.
 */
#ifndef ATT_HOOK_ABI_TUNER_V2_H
#define ATT_HOOK_ABI_TUNER_V2_H

#include "hook/abi/nccl.h"

#include <stddef.h>

typedef struct att_tuner_v2 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int collnet, int nvls,
                         int pipe_ops, int *algorithm, int *protocol, int *channels);
    int (*destroy)(void *context);
} att_tuner_v2_t;
_Static_assert(offsetof(att_tuner_v2_t, init) == 8, "ncclTuner_v2_t");
_Static_assert(offsetof(att_tuner_v2_t, get_coll_info) == 16, "ncclTuner_v2_t");
_Static_assert(offsetof(att_tuner_v2_t, destroy) == 24, "ncclTuner_v2_t");
_Static_assert(sizeof(att_tuner_v2_t) == 32, "ncclTuner_v2_t");

extern const att_tuner_v2_t ncclTunerPlugin_v2;

#endif
