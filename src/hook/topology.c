#include "hook/topology.h"

#include "base/descriptor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUS_ID = 32 };

/* NCCL's form: lower case, four digits of the domain. */
static int normal_bus_id(const char *bus_id, char out[BUS_ID])
{
    unsigned domain, bus, device, function;
    char rest;
    if (sscanf(bus_id, "%x:%x:%x.%1x%c", &domain, &bus, &device, &function, &rest) != 4 ||
        domain > 0xffffff || bus > 0xff || device > 0x1f || function > 7)
        return -1;
    snprintf(out, BUS_ID, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return 0;
}

int att_topology_text(const char *bus_id, int numa_node, char *text, size_t size)
{
    char normal[BUS_ID];
    if (normal_bus_id(bus_id, normal) != 0)
        return -1;
    /* A link to no GPU keeps NCCL from asking for the real ones. */
    int length =
        snprintf(text, size,
                 "<system version=\"1\">\n"
                 "  <cpu numaid=\"%d\" vendor=\"GenuineIntel\">\n"
                 "    <pci busid=\"%s\" class=\"0x030200\">\n"
                 "      <gpu>\n"
                 "        <nvlink target=\"0000:00:00.0\" count=\"1\" tclass=\"0x030000\"/>\n"
                 "      </gpu>\n"
                 "    </pci>\n"
                 "  </cpu>\n"
                 "</system>\n",
                 numa_node, normal);
    return length < 0 || (size_t)length >= size ? -1 : length;
}

static int current_bus_id(char bus_id[BUS_ID])
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (cuda == NULL)
        return -1;
    int (*get_device)(int *) = (int (*)(int *))dlsym(cuda, "cuCtxGetDevice");
    int (*get_bus_id)(char *, int, int) =
        (int (*)(char *, int, int))dlsym(cuda, "cuDeviceGetPCIBusId");
    dlclose(cuda);
    int device = 0;
    return get_device != NULL && get_bus_id != NULL && get_device(&device) == 0 &&
                   get_bus_id(bus_id, BUS_ID, device) == 0
               ? 0
               : -1;
}

static int numa_node_of(const char *bus_id)
{
    char normal[BUS_ID], path[64 + BUS_ID];
    int node = -1;
    if (normal_bus_id(bus_id, normal) != 0)
        return -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", normal);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

int att_topology_open(char *path, size_t size)
{
    char bus_id[BUS_ID], text[ATT_TOPOLOGY_TEXT];
    if (current_bus_id(bus_id) != 0)
        return -1;
    int length = att_topology_text(bus_id, numa_node_of(bus_id), text, sizeof text);
    int file = length > 0 ? att_descriptor_keep(memfd_create("attune-topology", MFD_CLOEXEC)) : -1;
    if (file < 0)
        return -1;
    if (write(file, text, (size_t)length) != length ||
        snprintf(path, size, "/proc/self/fd/%d", file) >= (int)size) {
        close(file);
        return -1;
    }
    return file;
}
