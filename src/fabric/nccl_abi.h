/*
 * nccl_abi: the part of NCCL 2.30's C ABI that the host fabric exports, declared on its own so that
 * attune builds on machines without NCCL.
 *
 * Names, numbers and struct layouts are NCCL's (nccl.h of 2.30.7): a program compiled against
 * nccl.h links with the fabric unchanged. Every function also exists with the prefix pnccl.
 */
#ifndef ATT_FABRIC_NCCL_ABI_H
#define ATT_FABRIC_NCCL_ABI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_VERSION_CODE     23007
#define NCCL_UNIQUE_ID_BYTES  128
#define NCCL_API_MAGIC        0xcafebeefu
#define NCCL_SIM_INFO_MAGIC   0x74685283u
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_SPLIT_NOCOLOR    (-1)

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t; /* never looked into */

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclTimeout = 8,
    ncclNumResults = 9
} ncclResult_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
    int graphUsageMode;
    int numRmaCtx;
    int maxP2pPeers;
    int graphStreamOrdering;
} ncclConfig_t;
_Static_assert(offsetof(ncclConfig_t, netName) == 32, "ncclConfig_t of 2.30");
_Static_assert(offsetof(ncclConfig_t, commName) == 48, "ncclConfig_t of 2.30");

typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime; /* microseconds */
} ncclSimInfo_t;

#define NCCL_FABRIC_API(result, name, ...)                                                         \
    __attribute__((visibility("default"))) result nccl##name(__VA_ARGS__);                         \
    __attribute__((visibility("default"))) result pnccl##name(__VA_ARGS__)

NCCL_FABRIC_API(ncclResult_t, GetVersion, int *version);
NCCL_FABRIC_API(ncclResult_t, GetUniqueId, ncclUniqueId *id);
NCCL_FABRIC_API(ncclResult_t, MemAlloc, void **pointer, size_t size);
NCCL_FABRIC_API(ncclResult_t, MemFree, void *pointer);
NCCL_FABRIC_API(const char *, GetErrorString, ncclResult_t result);
NCCL_FABRIC_API(const char *, GetLastError, ncclComm_t comm);

NCCL_FABRIC_API(ncclResult_t, CommInitRank, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
NCCL_FABRIC_API(ncclResult_t, CommInitRankConfig, ncclComm_t *comm, int ranks, ncclUniqueId id,
                int rank, ncclConfig_t *config);
NCCL_FABRIC_API(ncclResult_t, CommInitRankScalable, ncclComm_t *comm, int ranks, int rank,
                int id_count, ncclUniqueId *ids, ncclConfig_t *config);
NCCL_FABRIC_API(ncclResult_t, CommInitAll, ncclComm_t *comms, int devices, const int *list);
NCCL_FABRIC_API(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *child,
                ncclConfig_t *config);
NCCL_FABRIC_API(ncclResult_t, CommFinalize, ncclComm_t comm);
NCCL_FABRIC_API(ncclResult_t, CommDestroy, ncclComm_t comm);
NCCL_FABRIC_API(ncclResult_t, CommAbort, ncclComm_t comm);
NCCL_FABRIC_API(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t *error);
NCCL_FABRIC_API(ncclResult_t, CommCount, const ncclComm_t comm, int *count);
NCCL_FABRIC_API(ncclResult_t, CommCuDevice, const ncclComm_t comm, int *device);
NCCL_FABRIC_API(ncclResult_t, CommUserRank, const ncclComm_t comm, int *rank);

NCCL_FABRIC_API(ncclResult_t, GroupStart, void);
NCCL_FABRIC_API(ncclResult_t, GroupEnd, void);
NCCL_FABRIC_API(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t *info);

NCCL_FABRIC_API(ncclResult_t, AllReduce, const void *send, void *recv, size_t count,
                ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, AllGather, const void *send, void *recv, size_t count,
                ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, ReduceScatter, const void *send, void *recv, size_t count,
                ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, Broadcast, const void *send, void *recv, size_t count,
                ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, Bcast, void *buffer, size_t count, ncclDataType_t type, int root,
                ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, Reduce, const void *send, void *recv, size_t count,
                ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, Send, const void *send, size_t count, ncclDataType_t type, int peer,
                ncclComm_t comm, cudaStream_t stream);
NCCL_FABRIC_API(ncclResult_t, Recv, void *recv, size_t count, ncclDataType_t type, int peer,
                ncclComm_t comm, cudaStream_t stream);

/* The fabric's own: what a GPU would tell through CUDA. */

/* Identity of the device of the communicator that this thread created last (inside a plugin's init:
 * the one being created), else of the process's last. `units` is the counterpart of SMs. 0, or 1
 * when there is none yet. Ranks that share a device report the same uuid. */
NCCL_FABRIC_API(int, FabricDeviceInfo, unsigned char uuid[16], int *units);
/* Model mode: let `us` microseconds of computation pass on the virtual clock of the communicator's
 * device. Real mode: no effect. */
NCCL_FABRIC_API(void, FabricAdvance, ncclComm_t comm, double us);
/* Model mode: the virtual clock of the communicator's device. Real mode: CLOCK_MONOTONIC. */
NCCL_FABRIC_API(uint64_t, FabricNow, ncclComm_t comm);
/* 1: stamps are on the modelled machine's clock. */
NCCL_FABRIC_API(int, FabricVirtual, void);

#endif
