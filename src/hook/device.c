#include "hook/device.h"

#include "hook/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of cuda.h */
enum { CUDA_MULTIPROCESSOR_COUNT = 16 };

/* FNV-1a; never 0, which means unknown. */
static uint64_t hash_id(const uint8_t id[16])
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < 16; i++)
        hash = (hash ^ id[i]) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

static bool ask_fabric(att_device_t *device, att_nccl_logger_fn logger)
{
    int (*info)(unsigned char *, int *) =
        (int (*)(unsigned char *, int *))att_library_symbol(logger, "ncclFabricDeviceInfo");
    int units = 0;
    if (info == NULL || info(device->uuid, &units) != 0)
        return false;
    int (*is_virtual)(void) = (int (*)(void))att_library_symbol(logger, "ncclFabricVirtual");
    device->fabric = true;
    device->clock_kind = is_virtual != NULL && is_virtual() ? ATT_CLOCK_VIRTUAL : ATT_CLOCK_HOST;
    device->units = units > 0 ? (uint32_t)units : 0;
    return true;
}

static bool ask_cuda(att_device_t *device)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (cuda == NULL)
        return false;
    int (*get_device)(int *) = (int (*)(int *))dlsym(cuda, "cuCtxGetDevice");
    int (*get_uuid)(unsigned char *, int) =
        (int (*)(unsigned char *, int))dlsym(cuda, "cuDeviceGetUuid_v2");
    if (get_uuid == NULL)
        get_uuid = (int (*)(unsigned char *, int))dlsym(cuda, "cuDeviceGetUuid");
    int (*get_attribute)(int *, int, int) =
        (int (*)(int *, int, int))dlsym(cuda, "cuDeviceGetAttribute");
    dlclose(cuda);
    int number = 0;
    int units = 0;
    if (get_device == NULL || get_uuid == NULL || get_attribute == NULL ||
        get_device(&number) != 0 || get_uuid(device->uuid, number) != 0)
        return false;
    device->clock_kind = ATT_CLOCK_DEVICE;
    if (get_attribute(&units, CUDA_MULTIPROCESSOR_COUNT, number) == 0 && units > 0)
        device->units = (uint32_t)units;
    return true;
}

att_device_t att_device_current(att_nccl_logger_fn logger, const uint8_t node_id[16])
{
    att_device_t device = {0};
    if (ask_fabric(&device, logger)) /* virtual time is the same on all nodes */
        device.clock_id = device.clock_kind == ATT_CLOCK_VIRTUAL ? 1 : hash_id(node_id);
    else if (ask_cuda(&device))
        device.clock_id = hash_id(device.uuid);
    return device;
}
