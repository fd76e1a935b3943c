#include "fabric/plugin_old.h"

#include "attune/setting.h"

static union {
    const void *symbol;
    const ncclTuner_v2_t *v2;
    const ncclTuner_v3_t *v3;
    const ncclTuner_v4_t *v4;
} tuner;
static const ncclProfiler_v4_t *profiler;

static ncclResult_t init_old(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                             ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                             ncclTunerConstants_t *constants)
{
    return tuner.v4->init(ranks, nodes, log, context); /* the same in all three */
}

static ncclResult_t destroy_old(void *context)
{
    return tuner.v4->destroy(context);
}

/* NCCL 2.21 had no table; newer ones build these words from it and the table from the answer. */
static ncclResult_t decide_v2(void *context, int function, size_t bytes, int pipe_ops,
                              float **costs, int algorithms, int protocols, int registered,
                              int *channels)
{
    float *table = (float *)costs;
    int nvls = table[ATT_ALGORITHM_NVLS * protocols + ATT_PROTOCOL_SIMPLE] >= 0;
    int collnet = table[ATT_ALGORITHM_COLLNET_CHAIN * protocols + ATT_PROTOCOL_SIMPLE] >= 0;
    int algorithm = -1, protocol = -1;
    ncclResult_t result = tuner.v2->getCollInfo(context, function, bytes, collnet, nvls, pipe_ops,
                                                &algorithm, &protocol, channels);
    if (result == ncclSuccess && algorithm >= 0 && algorithm < algorithms && protocol >= 0 &&
        protocol < protocols && table[algorithm * protocols + protocol] >= 0)
        table[algorithm * protocols + protocol] = 0;
    return result;
}

static ncclResult_t decide_v3(void *context, int function, size_t bytes, int pipe_ops,
                              float **costs, int algorithms, int protocols, int registered,
                              int *channels)
{
    return tuner.v3->getCollInfo(context, function, bytes, pipe_ops, costs, algorithms, protocols,
                                 channels);
}

static ncclResult_t decide_v4(void *context, int function, size_t bytes, int pipe_ops,
                              float **costs, int algorithms, int protocols, int registered,
                              int *channels)
{
    return tuner.v4->getCollInfo(context, function, bytes, pipe_ops, costs, algorithms, protocols,
                                 registered, channels);
}

const ncclTuner_v6_t *att_plugin_wrap_tuner(const void *symbol, int abi)
{
    static ncclTuner_v6_t wrapped;
    if (!symbol || abi >= 5)
        return symbol;
    tuner.symbol = symbol;
    wrapped = (ncclTuner_v6_t){.name = tuner.v4->name,
                               .init = init_old,
                               .getCollInfo = abi == 2   ? decide_v2
                                              : abi == 3 ? decide_v3
                                                         : decide_v4,
                               .finalize = destroy_old};
    return &wrapped;
}

static ncclResult_t init_v4(void **context, uint64_t comm_id, int *mask, const char *name,
                            int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
    return profiler->init(context, mask, name, comm_id, nodes, ranks, rank, log);
}

/* Events of API calls did not exist; a Coll event hung below its Group event. */
static ncclResult_t start_v4(void *context, void **handle, ncclProfilerEventDescr_t *event)
{
    *handle = NULL;
    if (event->type > ncclProfileNetPlugin)
        return ncclSuccess;
    ncclProfilerEventDescr_v4_t old = {
        .type = (uint8_t)event->type, .parentObj = event->parentObj, .rank = event->rank};
    if (event->type == ncclProfileColl) {
        old.parentObj = event->coll.parentGroup;
        old.coll.seqNumber = event->coll.seqNumber;
        old.coll.func = event->coll.func;
        old.coll.sendBuff = event->coll.sendBuff;
        old.coll.recvBuff = event->coll.recvBuff;
        old.coll.count = event->coll.count;
        old.coll.root = event->coll.root;
        old.coll.datatype = event->coll.datatype;
        old.coll.nChannels = event->coll.nChannels;
        old.coll.nWarps = event->coll.nWarps;
        old.coll.algo = event->coll.algo;
        old.coll.proto = event->coll.proto;
    } else if (event->type == ncclProfileKernelCh) {
        old.kernelCh.channelId = event->kernelCh.channelId;
        old.kernelCh.pTimer = event->kernelCh.pTimer;
    }
    return profiler->startEvent(context, handle, &old);
}

static ncclResult_t stop_v4(void *handle)
{
    return handle ? profiler->stopEvent(handle) : ncclSuccess;
}

static ncclResult_t record_v4(void *handle, int state, ncclProfilerEventStateArgs_t *args)
{
    return profiler->recordEventState(handle, state, args);
}

static ncclResult_t finalize_v4(void *context)
{
    return profiler->finalize(context);
}

const ncclProfiler_v6_t *att_plugin_wrap_profiler(const void *symbol, int abi)
{
    static ncclProfiler_v6_t wrapped;
    if (!symbol || abi >= 5)
        return symbol;
    profiler = symbol;
    wrapped = (ncclProfiler_v6_t){.name = profiler->name,
                                  .init = init_v4,
                                  .startEvent = start_v4,
                                  .stopEvent = stop_v4,
                                  .recordEventState = record_v4,
                                  .finalize = finalize_v4};
    return &wrapped;
}
