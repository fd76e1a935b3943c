#include "hook/abi/tuner_v2.h"

#include "hook/chain.h"

static int init(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context)
{
    const att_tuner_start_t start = {.abi = 2, .ranks = ranks, .nodes = nodes, .logger = logger};
    return att_chain_init(context, &start);
}

static int get_coll_info(void *context, int collective, size_t bytes, int collnet, int nvls,
                         int pipe_ops, int *algorithm, int *protocol, int *channels)
{
    return att_chain_decide_v2(context, collective, bytes, collnet, nvls, pipe_ops, algorithm,
                               protocol, channels);
}

static int destroy(void *context)
{
    return att_chain_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v2_t ncclTunerPlugin_v2 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .destroy = destroy,
};
