#include "hook/abi/tuner_v6.h"

#include "hook/tuner.h"

static int init(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants)
{
    return att_tuner_init(context, comm_id, ranks, nodes, logger, 6);
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

static int get_chunk_size(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk)
{
    return att_tuner_chunk(context, collective, algorithm, protocol, chunk);
}

__attribute__((visibility("default"))) const att_tuner_v6_t ncclTunerPlugin_v6 = {
    .name = "attune",
    .init = init,
    .get_coll_info = get_coll_info,
    .finalize = finalize,
    .get_chunk_size = get_chunk_size,
};
