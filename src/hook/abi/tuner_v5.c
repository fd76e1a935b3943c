#include "hook/abi/tuner_v5.h"

#include "hook/chain.h"

static int init(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants)
{
    const att_tuner_start_t start = {.abi = 5,
                                     .comm_id = comm_id,
                                     .ranks = ranks,
                                     .nodes = nodes,
                                     .logger = logger,
                                     .domains = domains,
                                     .constants = constants};
    return att_chain_init(context, &start);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels)
{
    const att_tuner_question_t question = {
        .collective = collective,
        .bytes = bytes,
        .pipe_ops = pipe_ops,
        .table = (float *)table,
        .algorithms = algorithms,
        .protocols = protocols,
        .registered = registered,
    };
    return att_chain_decide(context, &question, channels);
}

static int finalize(void *context)
{
    return att_chain_finalize(context);
}

__attribute__((visibility("default"))) const att_tuner_v5_t ncclTunerPlugin_v5 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .finalize = finalize,
};
