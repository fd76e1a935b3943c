#include "hook/abi/tuner_v2.h"

#include "hook/tuner.h"

static int init(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context)
{
    return att_tuner_init_idle(context, logger,
                               "this NCCL has no cost table for a tuner (since 2.22.3)");
}

static int get_coll_info(void *context, int collective, size_t bytes, int collnet, int nvls,
                         int pipe_ops, int *algorithm, int *protocol, int *channels)
{
    return ATT_NCCL_SUCCESS;
}

static int destroy(void *context)
{
    return att_tuner_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v2_t ncclTunerPlugin_v2 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .destroy = destroy,
};
