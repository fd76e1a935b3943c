#include "hook/abi/tuner_v3.h"

#include "hook/chain.h"
#include "hook/tuner.h"

static int init(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context)
{
    const att_tuner_start_t start = {
        .abi = 3, .comm_id = ATT_COMM_UNTOLD, .ranks = ranks, .nodes = nodes, .logger = logger};
    return att_chain_init(context, &start);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int *channels)
{
    const att_tuner_question_t question = {
        .collective = collective,
        .bytes = bytes,
        .pipe_ops = pipe_ops,
        .table = (float *)table,
        .algorithms = algorithms,
        .protocols = protocols,
    };
    return att_chain_decide(context, &question, channels);
}

static int destroy(void *context)
{
    return att_chain_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v3_t ncclTunerPlugin_v3 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .destroy = destroy,
};
