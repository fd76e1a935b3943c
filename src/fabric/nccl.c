/* The exported functions: nccl* are weak aliases of pnccl*, so that a tool may take their place. */
#include "fabric/nccl_abi.h"

#include "attune/setting.h"
#include "base/clock.h"
#include "base/log.h"
#include "fabric/error.h"
#include "fabric/group.h"
#include "fabric/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(result, name, ...)                                                                  \
    __attribute__((weak, alias("pnccl" #name))) result nccl##name(__VA_ARGS__);                    \
    result pnccl##name(__VA_ARGS__)

static ncclResult_t no_pointer(const char *function)
{
    return att_fabric_error(ncclInvalidArgument, "%s: pointer is NULL", function);
}

__attribute__((constructor)) static void set_up(void)
{
    att_log_set_name("fabric");
}

EXPORT(ncclResult_t, GetVersion, int *version)
{
    if (!version)
        return no_pointer("ncclGetVersion");
    *version = att_fabric_version();
    return ncclSuccess;
}

#define ID_TAG "attfab1:"

EXPORT(ncclResult_t, GetUniqueId, ncclUniqueId *id)
{
    if (!id)
        return no_pointer("ncclGetUniqueId");
    char name[33];
    att_arena_new_name(name);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, ID_TAG "%s", name);
    return ncclSuccess;
}

EXPORT(ncclResult_t, MemAlloc, void **pointer, size_t size)
{
    if (!pointer)
        return no_pointer("ncclMemAlloc");
    if (posix_memalign(pointer, 4096, size ? size : 1))
        return att_fabric_error(ncclSystemError, "out of memory (%zu bytes)", size);
    return ncclSuccess;
}

EXPORT(ncclResult_t, MemFree, void *pointer)
{
    free(pointer);
    return ncclSuccess;
}

EXPORT(const char *, GetErrorString, ncclResult_t result)
{
    static const char *const text[ncclNumResults] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
        "NCCL operation timed out"};
    return (unsigned)result < ncclNumResults ? text[result] : "unknown result code";
}

EXPORT(const char *, GetLastError, ncclComm_t comm)
{
    return att_fabric_last_error();
}

static ncclResult_t wish_of(const ncclUniqueId *id, int ranks, int rank, const ncclConfig_t *config,
                            att_comm_wish_t *wish)
{
    memset(wish, 0, sizeof *wish);
    if (strncmp(id->internal, ID_TAG, strlen(ID_TAG)) ||
        strnlen(id->internal, sizeof id->internal) != strlen(ID_TAG) + 32)
        return att_fabric_error(ncclInvalidArgument,
                                "the unique id does not come from ncclGetUniqueId");
    memcpy(wish->name, id->internal + strlen(ID_TAG), 32);
    wish->ranks = ranks;
    wish->rank = rank;
    if (config) {
        if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, netName))
            return att_fabric_error(ncclInvalidArgument, "ncclConfig_t was not initialised with "
                                                         "NCCL_CONFIG_INITIALIZER");
        wish->min_channels = config->minCTAs > 0 ? config->minCTAs : 0;
        wish->max_channels = config->maxCTAs > 0 ? config->maxCTAs : 0;
        size_t name_end = offsetof(ncclConfig_t, commName) + sizeof config->commName;
        if (config->size >= name_end && config->commName)
            snprintf(wish->comm_name, sizeof wish->comm_name, "%s", config->commName);
    }
    return ncclSuccess;
}

static ncclResult_t create(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
                           const ncclConfig_t *config)
{
    if (!comm)
        return no_pointer("ncclCommInitRank");
    att_comm_wish_t wish;
    ncclResult_t result = wish_of(id, ranks, rank, config, &wish);
    if (result != ncclSuccess)
        return result;
    wish.device = att_device_take(att_arena_hash(wish.name));
    if (!wish.device)
        return att_fabric_error(ncclSystemError, "out of memory");
    return att_group_create(&wish, comm);
}

EXPORT(ncclResult_t, CommInitRank, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return create(comm, ranks, &id, rank, NULL);
}

EXPORT(ncclResult_t, CommInitRankConfig, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
       ncclConfig_t *config)
{
    return create(comm, ranks, &id, rank, config);
}

EXPORT(ncclResult_t, CommInitRankScalable, ncclComm_t *comm, int ranks, int rank, int id_count,
       ncclUniqueId *ids, ncclConfig_t *config)
{
    if (!ids || id_count < 1)
        return att_fabric_error(ncclInvalidArgument, "ncclCommInitRankScalable: no id");
    return create(comm, ranks, &ids[0], rank, config);
}

EXPORT(ncclResult_t, CommInitAll, ncclComm_t *comms, int devices, const int *list)
{
    if (!comms)
        return no_pointer("ncclCommInitAll");
    ncclUniqueId id;
    ncclResult_t result = pncclGetUniqueId(&id);
    att_group_start();
    for (int r = 0; r < devices && result == ncclSuccess; r++)
        result = create(&comms[r], devices, &id, r, NULL);
    ncclResult_t end = att_group_end();
    return result != ncclSuccess ? result : end;
}

EXPORT(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *child,
       ncclConfig_t *config)
{
    ncclResult_t result = att_comm_check(comm, "ncclCommSplit");
    if (result != ncclSuccess)
        return result;
    if (!child)
        return no_pointer("ncclCommSplit");
    if (att_group_open())
        return att_fabric_error(ncclInvalidUsage, "ncclCommSplit inside a group is not supported");
    *child = NULL;
    att_comm_wish_t wish;
    result = att_comm_split(comm, color, key, &wish);
    if (result != ncclSuccess || wish.ranks == 0)
        return result;
    return att_comm_create(&wish, child);
}

EXPORT(ncclResult_t, CommFinalize, ncclComm_t comm)
{
    ncclResult_t result = att_comm_check(comm, "ncclCommFinalize");
    if (result == ncclInvalidArgument)
        return result;
    return atomic_exchange(&comm->finalized, 1)
               ? att_fabric_error(ncclInvalidUsage, "ncclCommFinalize was called twice")
               : ncclSuccess;
}

EXPORT(ncclResult_t, CommDestroy, ncclComm_t comm)
{
    if (comm && att_comm_check(comm, "ncclCommDestroy") == ncclInvalidArgument)
        return ncclInvalidArgument;
    att_comm_destroy(comm);
    return ncclSuccess;
}

EXPORT(ncclResult_t, CommAbort, ncclComm_t comm)
{
    if (comm && att_comm_check(comm, "ncclCommAbort") == ncclInvalidArgument)
        return ncclInvalidArgument;
    if (comm)
        att_comm_abort(comm);
    return ncclSuccess;
}

EXPORT(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
    if (!error)
        return no_pointer("ncclCommGetAsyncError");
    ncclResult_t result = att_comm_check(comm, "ncclCommGetAsyncError");
    if (result == ncclInvalidArgument)
        return result;
    *error = result;
    if (result == ncclSuccess)
        *error = att_arena_failure(&comm->arena);
    return ncclSuccess;
}

EXPORT(ncclResult_t, CommCount, const ncclComm_t comm, int *count)
{
    if (att_comm_check(comm, "ncclCommCount") == ncclInvalidArgument || !count)
        return ncclInvalidArgument;
    *count = comm->decider.ranks;
    return ncclSuccess;
}

EXPORT(ncclResult_t, CommCuDevice, const ncclComm_t comm, int *device)
{
    if (att_comm_check(comm, "ncclCommCuDevice") == ncclInvalidArgument || !device)
        return ncclInvalidArgument;
    *device = comm->device->number;
    return ncclSuccess;
}

EXPORT(ncclResult_t, CommUserRank, const ncclComm_t comm, int *rank)
{
    if (att_comm_check(comm, "ncclCommUserRank") == ncclInvalidArgument || !rank)
        return ncclInvalidArgument;
    *rank = comm->arena.rank;
    return ncclSuccess;
}

EXPORT(ncclResult_t, GroupStart, void)
{
    return att_group_start();
}

EXPORT(ncclResult_t, GroupEnd, void)
{
    return att_group_end();
}

EXPORT(ncclResult_t, GroupSimulateEnd, ncclSimInfo_t *info)
{
    if (!info)
        return att_group_end();
    float estimate = 0;
    bool good = info->magic == NCCL_SIM_INFO_MAGIC;
    ncclResult_t result = att_group_simulate(&estimate);
    if (!good)
        return att_fabric_error(ncclInvalidArgument, "ncclSimInfo_t was not initialised "
                                                     "with NCCL_SIM_INFO_INITIALIZER");
    info->estimatedTime = estimate;
    return result;
}

EXPORT(ncclResult_t, AllReduce, const void *send, void *recv, size_t count, ncclDataType_t type,
       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    att_call_t call = {
        ATT_COLLECTIVE_ALL_REDUCE, "ncclAllReduce", send, recv, count, type, op, 0, comm, stream};
    return att_group_call(&call);
}

EXPORT(ncclResult_t, AllGather, const void *send, void *recv, size_t count, ncclDataType_t type,
       ncclComm_t comm, cudaStream_t stream)
{
    att_call_t call = {ATT_COLLECTIVE_ALL_GATHER,
                       "ncclAllGather",
                       send,
                       recv,
                       count,
                       type,
                       ncclSum,
                       0,
                       comm,
                       stream};
    return att_group_call(&call);
}

EXPORT(ncclResult_t, ReduceScatter, const void *send, void *recv, size_t count, ncclDataType_t type,
       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    att_call_t call = {ATT_COLLECTIVE_REDUCE_SCATTER,
                       "ncclReduceScatter",
                       send,
                       recv,
                       count,
                       type,
                       op,
                       0,
                       comm,
                       stream};
    return att_group_call(&call);
}

EXPORT(ncclResult_t, Broadcast, const void *send, void *recv, size_t count, ncclDataType_t type,
       int root, ncclComm_t comm, cudaStream_t stream)
{
    att_call_t call = {ATT_COLLECTIVE_BROADCAST,
                       "ncclBroadcast",
                       send,
                       recv,
                       count,
                       type,
                       ncclSum,
                       root,
                       comm,
                       stream};
    return att_group_call(&call);
}

EXPORT(ncclResult_t, Bcast, void *buffer, size_t count, ncclDataType_t type, int root,
       ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm,
                         stream); /* as NCCL: interposable */
}

EXPORT(ncclResult_t, Reduce, const void *send, void *recv, size_t count, ncclDataType_t type,
       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    att_call_t call = {
        ATT_COLLECTIVE_REDUCE, "ncclReduce", send, recv, count, type, op, root, comm, stream};
    return att_group_call(&call);
}

static ncclResult_t no_point_to_point(const char *function)
{
    return att_fabric_error(
        ncclInvalidUsage, "%s: the host fabric has collectives only, no point-to-point", function);
}

EXPORT(ncclResult_t, Send, const void *send, size_t count, ncclDataType_t type, int peer,
       ncclComm_t comm, cudaStream_t stream)
{
    return no_point_to_point("ncclSend");
}

EXPORT(ncclResult_t, Recv, void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
       cudaStream_t stream)
{
    return no_point_to_point("ncclRecv");
}

EXPORT(int, FabricDeviceInfo, unsigned char uuid[16], int *units)
{
    const att_device_t *device = att_device_current();
    if (!device)
        return 1;
    memcpy(uuid, device->uuid, 16);
    *units = device->units;
    return 0;
}

static bool modelled(ncclComm_t comm, const char *function)
{
    return att_comm_check(comm, function) != ncclInvalidArgument && comm->decider.surface;
}

EXPORT(void, FabricAdvance, ncclComm_t comm, double us)
{
    if (modelled(comm, "ncclFabricAdvance") && us > 0)
        atomic_fetch_add(&comm->device->clock_ns, (uint64_t)(us * 1000 + 0.5));
}

EXPORT(int, FabricVirtual, void)
{
    att_fabric_mode_t mode;
    return att_comm_mode(&mode) == ncclSuccess && mode == ATT_FABRIC_MODEL;
}

EXPORT(uint64_t, FabricNow, ncclComm_t comm)
{
    return modelled(comm, "ncclFabricNow") ? atomic_load(&comm->device->clock_ns) : att_clock_ns();
}
