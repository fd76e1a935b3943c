/* tuner_v5: NCCL's tuner ABI 5 (NCCL 2.28.3; src/include/plugin/tuner/tuner_v5.h). */
#ifndef ATT_HOOK_ABI_TUNER_V5_H
#define ATT_HOOK_ABI_TUNER_V5_H

#include "hook/abi/nccl.h"

#include <stddef.h>

/* NVLink domains of the communicator. */
typedef struct att_nvl_domains_v5 {
    int domains;
    int min_ranks;
    int max_ranks;
} att_nvl_domains_v5_t;
_Static_assert(sizeof(att_nvl_domains_v5_t) == 12, "ncclNvlDomainInfo_v5_t");

/* Constants of NCCL's cost model; NCCL uses what init leaves in them. attune never changes them. */
typedef struct att_tuner_constants_v5 {
    double base_latencies[ATT_NCCL_ALGORITHMS][ATT_NCCL_PROTOCOLS];
    double hw_latencies[ATT_NCCL_HW_LINKS][ATT_NCCL_ALGORITHMS][ATT_NCCL_PROTOCOLS];
    double ll_max_bws[ATT_NCCL_COMPCAPS][ATT_NCCL_TUNING_SCALES];
    double ring_ll128_max_bws[ATT_NCCL_COMPCAPS][ATT_NCCL_TUNING_SCALES];
    double tree_ll128_max_bws[ATT_NCCL_COMPCAPS][ATT_NCCL_TUNING_SCALES];
    double tree_max_bws[ATT_NCCL_COMPCAPS][ATT_NCCL_TUNING_SCALES];
    double nvls_tree_max_bws[ATT_NCCL_COMPCAPS][ATT_NCCL_TUNING_SCALES];
} att_tuner_constants_v5_t;
_Static_assert(sizeof(att_tuner_constants_v5_t) == (21 + 63 + 5 * 12) * 8,
               "ncclTunerConstants_v5_t");

/* `table` is float[algorithms][protocols] behind a cast. */
typedef struct att_tuner_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels);
    int (*finalize)(void *context);
} att_tuner_v5_t;
_Static_assert(offsetof(att_tuner_v5_t, init) == 8, "ncclTuner_v5_t");
_Static_assert(offsetof(att_tuner_v5_t, get_coll_info) == 16, "ncclTuner_v5_t");
_Static_assert(offsetof(att_tuner_v5_t, finalize) == 24, "ncclTuner_v5_t");
_Static_assert(sizeof(att_tuner_v5_t) == 32, "ncclTuner_v5_t");

extern const att_tuner_v5_t ncclTunerPlugin_v5;

#endif
