#include "forced_tuner.h"

#include "fabric/plugin_abi.h"

forced_t forced = {.algorithm = -1};

static ncclResult_t init(void **context, uint64_t id, size_t ranks, size_t nodes,
                         ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                         ncclTunerConstants_t *constants)
{
    *context = &forced;
    return ncclSuccess;
}

static ncclResult_t get_coll_info(void *context, int function, size_t bytes, int ops, float **table,
                                  int algorithms, int protocols, int registered, int *channels)
{
    float(*costs)[ATT_PROTOCOLS] = (float(*)[ATT_PROTOCOLS])table;
    if (forced.algorithm >= 0 && costs[forced.algorithm][forced.protocol] >= 0)
        costs[forced.algorithm][forced.protocol] = 0;
    *channels = forced.channels;
    return ncclSuccess;
}

static ncclResult_t get_chunk_size(void *context, int function, size_t bytes, int algorithm,
                                   int protocol, int channels, size_t *chunk)
{
    if (forced.chunk)
        *chunk = forced.chunk;
    return ncclSuccess;
}

static ncclResult_t finalize(void *context)
{
    return ncclSuccess;
}

__attribute__((visibility("default"))) extern const ncclTuner_v6_t ncclTunerPlugin_v6;
const ncclTuner_v6_t ncclTunerPlugin_v6 = {"forced", init, get_coll_info, finalize, get_chunk_size};
