#include "hook/abi/tuner_v5.h"

#include "hook/tuner.h"

static int init(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants)
{
    return att_tuner_init(context, comm_id, ranks, nodes, logger, 5);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels)
{
    return att_tuner_decide(context, collective, bytes, (float *)table, algorithms, protocols,
                            channels);
}

static int finalize(void *context)
{
    return att_tuner_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v5_t ncclTunerPlugin_v5 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .finalize = finalize,
};
