#include "hook/abi/tuner_v4.h"

#include "hook/tuner.h"

static int init(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context)
{
    return att_tuner_init(context, ATT_COMM_UNTOLD, ranks, nodes, logger, 4);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels)
{
    return att_tuner_decide(context, collective, bytes, (float *)table, algorithms, protocols,
                            channels);
}

static int destroy(void *context)
{
    return att_tuner_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v4_t ncclTunerPlugin_v4 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .destroy = destroy,
};
