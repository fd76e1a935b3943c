/* tuner_v6: NCCL's tuner ABI 6 (NCCL 2.30.3; src/include/plugin/tuner/tuner_v6.h): 5 and chunks. */
#ifndef ATT_HOOK_ABI_TUNER_V6_H
#define ATT_HOOK_ABI_TUNER_V6_H

#include "hook/abi/tuner_v5.h"

typedef struct att_tuner_v6 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels);
    int (*finalize)(void *context);
    int (*get_chunk_size)(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk);
} att_tuner_v6_t;
_Static_assert(offsetof(att_tuner_v6_t, init) == 8, "ncclTuner_v6_t");
_Static_assert(offsetof(att_tuner_v6_t, get_coll_info) == 16, "ncclTuner_v6_t");
_Static_assert(offsetof(att_tuner_v6_t, finalize) == 24, "ncclTuner_v6_t");
_Static_assert(offsetof(att_tuner_v6_t, get_chunk_size) == 32, "ncclTuner_v6_t");
_Static_assert(sizeof(att_tuner_v6_t) == 40, "ncclTuner_v6_t");

extern const att_tuner_v6_t ncclTunerPlugin_v6;

#endif
