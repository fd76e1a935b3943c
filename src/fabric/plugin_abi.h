/*
 * plugin_abi: the tuner, profiler and env plugin interfaces of NCCL 2.30, as the fabric calls them.
 *
 * Layouts are NCCL's (src/include/plugin of 2.30.7). Tuner v5 is v6 without its last member, and
 * the events that the fabric raises have the same layout in profiler v5 and v6, so one declaration
 * serves both versions.
 */
#ifndef ATT_FABRIC_PLUGIN_ABI_H
#define ATT_FABRIC_PLUGIN_ABI_H

#include "fabric/nccl_abi.h"

#include <stdbool.h>

#define ATT_ALGORITHMS 7
#define ATT_PROTOCOLS  3
#define ATT_FUNCTIONS  5

typedef void (*ncclDebugLogger_t)(int level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);

typedef struct {
    int nNvlDomains;
    int minRanksPerNvlDomain;
    int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_t;

typedef struct {
    double baseLatencies[7][3];
    double hwLatencies[3][7][3];
    double llMaxBws[4][3];
    double perChMaxRingLL128Bws[4][3];
    double perChMaxTreeLL128Bws[4][3];
    double perChMaxTreeBws[4][3];
    double perChMaxNVLSTreeBws[4][3];
} ncclTunerConstants_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                         ncclTunerConstants_t *constants);
    ncclResult_t (*getCollInfo)(void *context, int function, size_t nBytes, int numPipeOps,
                                float **costTable, int numAlgo, int numProto, int regBuff,
                                int *nChannels);
    ncclResult_t (*finalize)(void *context);
    /* v6 only, may be NULL */
    ncclResult_t (*getChunkSize)(void *context, int function, size_t nBytes, int algorithm,
                                 int protocol, int nChannels, size_t *chunkSize);
} ncclTuner_v6_t;

enum {
    ncclProfileGroup = 1 << 0,
    ncclProfileColl = 1 << 1,
    ncclProfileP2p = 1 << 2,
    ncclProfileProxyOp = 1 << 3,
    ncclProfileProxyStep = 1 << 4,
    ncclProfileKernelCh = 1 << 6,
    ncclProfileNetPlugin = 1 << 7,
    ncclProfileGroupApi = 1 << 8,
    ncclProfileCollApi = 1 << 9,
    ncclProfileP2pApi = 1 << 10,
    ncclProfileKernelLaunch = 1 << 11,
    ncclProfileCeColl = 1 << 12,
    ncclProfileCeSync = 1 << 13,
    ncclProfileCeBatch = 1 << 14
};

enum {
    ncclProfilerKernelChStop = 22,
    ncclProfilerGroupStartApiStop = 23,
    ncclProfilerGroupEndApiStart = 24
};

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            bool graphCaptured;
            int groupDepth;
        } groupApi;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool graphCaptured;
        } collApi;
        struct {
            void *stream;
        } kernelLaunch;
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
            void *parentGroup;
        } coll;
        struct {
            uint8_t channelId;
            uint64_t pTimer;
        } kernelCh;
        /* v6's largest member (ceColl): a plugin may copy the whole struct. */
        uint64_t words[14];
    };
} ncclProfilerEventDescr_t;
_Static_assert(offsetof(ncclProfilerEventDescr_t, coll) == 24, "descriptor of profiler v5 and v6");
_Static_assert(offsetof(ncclProfilerEventDescr_t, coll.nChannels) == 80, "descriptor of v5, v6");

typedef union {
    size_t transSize;
    int appendedProxyOps;
    void *data;
    struct {
        uint64_t pTimer;
    } kernelCh;
} ncclProfilerEventStateArgs_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
                         const char *commName, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t log);
    ncclResult_t (*startEvent)(void *context, void **handle, ncclProfilerEventDescr_t *event);
    ncclResult_t (*stopEvent)(void *handle);
    ncclResult_t (*recordEventState)(void *handle, int state, ncclProfilerEventStateArgs_t *args);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v6_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                         ncclDebugLogger_t log); /* v1 has no log; the caller passes it anyway */
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *name);
} ncclEnv_v2_t;

#endif
