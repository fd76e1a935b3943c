/*
 * plugin_old: plugins of older ABIs in the shape of the newest, as NCCL wraps them
 * (src/plugin/tuner/tuner_v2.cc to v4.cc, src/plugin/profiler/profiler_v4.cc of 2.30.7). One plugin
 * of a kind is loaded at a time.
 */
#ifndef ATT_FABRIC_PLUGIN_OLD_H
#define ATT_FABRIC_PLUGIN_OLD_H

#include "fabric/plugin_abi.h"

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **context);
    ncclResult_t (*getCollInfo)(void *context, int function, size_t nBytes, int collNetSupport,
                                int nvlsSupport, int numPipeOps, int *algorithm, int *protocol,
                                int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v2_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **context);
    ncclResult_t (*getCollInfo)(void *context, int function, size_t nBytes, int numPipeOps,
                                float **costTable, int numAlgo, int numProto, int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v3_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t log, void **context);
    ncclResult_t (*getCollInfo)(void *context, int function, size_t nBytes, int numPipeOps,
                                float **costTable, int numAlgo, int numProto, int regBuff,
                                int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v4_t;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            uint64_t seqNumber;
            const char *func;
            void const *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            uint8_t nChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        struct {
            uint8_t channelId;
            uint64_t pTimer;
        } kernelCh;
    };
} ncclProfilerEventDescr_v4_t;
_Static_assert(offsetof(ncclProfilerEventDescr_v4_t, coll.proto) == 96, "descriptor of v4");
_Static_assert(sizeof(ncclProfilerEventDescr_v4_t) == 104, "descriptor of v4");

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, int *eActivationMask, const char *commName,
                         uint64_t commHash, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t log);
    ncclResult_t (*startEvent)(void *context, void **handle, ncclProfilerEventDescr_v4_t *event);
    ncclResult_t (*stopEvent)(void *handle);
    ncclResult_t (*recordEventState)(void *handle, int state, ncclProfilerEventStateArgs_t *args);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v4_t;

/* The plugin whose symbol is of this ABI (2 to 6; 4 to 6), in the newest shape. */
const ncclTuner_v6_t *att_plugin_wrap_tuner(const void *symbol, int abi);
const ncclProfiler_v6_t *att_plugin_wrap_profiler(const void *symbol, int abi);

#endif
