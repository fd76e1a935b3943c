/*
 * topology: a description of the machine in which NCCL finds a rank's GPU without NVLink and, like
 * every other GPU, behind the processor: too far for P2P by NCCL's own rule, so that a communicator
 * made with it (NCCL_TOPO_FILE, read for each communicator) connects over shared memory.
 *
 * Each rank describes its own GPU alone; NCCL joins what the ranks of a host have
 * (NVIDIA/nccl src/graph/topo.cc ncclTopoGetSystem, 2.30.7; the rule: paths.cc ncclTopoCheckP2p,
 * never beyond a PCI switch, but for two GPUs of an AMD host, which is why the vendor is said to be
 * Intel). What is left out NCCL adds from the machine.
 */
#ifndef ATT_HOOK_TOPOLOGY_H
#define ATT_HOOK_TOPOLOGY_H

#include <stddef.h>

enum { ATT_TOPOLOGY_TEXT = 512 };

/* The description, for a GPU as the driver names it ("0000:3B:00.0") on this NUMA node (-1
 * unknown). Its length, or -1 when the name is no PCI address or `size` is too small. */
int att_topology_text(const char *bus_id, int numa_node, char *text, size_t size);

/* A file in memory with the description of the current context's GPU. Its descriptor, which the
 * caller closes, and its name in `path`; -1 when there is no driver or no memory. */
int att_topology_open(char *path, size_t size);

#endif
