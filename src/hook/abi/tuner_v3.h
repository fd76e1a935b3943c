/*
 * tuner_v3: NCCL's tuner ABI 3 (NCCL 2.22.3, the first with a cost table;
 * src/include/plugin/tuner/tuner_v3.h): 4 without the word about registered buffers.
 */
#ifndef ATT_HOOK_ABI_TUNER_V3_H
#define ATT_HOOK_ABI_TUNER_V3_H

#include "hook/abi/nccl.h"

#include <stddef.h>

/* `table` is float[algorithms][protocols] behind a cast. */
typedef struct att_tuner_v3 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int *channels);
    int (*destroy)(void *context);
} att_tuner_v3_t;
_Static_assert(offsetof(att_tuner_v3_t, init) == 8, "ncclTuner_v3_t");
_Static_assert(offsetof(att_tuner_v3_t, get_coll_info) == 16, "ncclTuner_v3_t");
_Static_assert(offsetof(att_tuner_v3_t, destroy) == 24, "ncclTuner_v3_t");
_Static_assert(sizeof(att_tuner_v3_t) == 32, "ncclTuner_v3_t");

extern const att_tuner_v3_t ncclTunerPlugin_v3;

#endif
