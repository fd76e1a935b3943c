/*
 * host: which ranks NCCL would take to be on one node.
 *
 * NCCL compares a hash of NCCL_HOSTID or else of host name and boot id (misc/utils.cc, getHostHash,
 * 2.30.7), and counts different ones as nodes. So do we: ranks in containers or virtual nodes with
 * a host name of their own are on nodes of their own, and so are ranks that are given different
 * NCCL_HOSTIDs on one machine.
 */
#ifndef ATT_FABRIC_HOST_H
#define ATT_FABRIC_HOST_H

#include <stdint.h>

/* How a communicator's ranks lie on nodes. */
typedef struct att_host_layout {
    int nodes;
    int fewest, most; /* ranks of one node */
} att_host_layout_t;

/* Hash of the calling process's host, never 0. host_id: the value of NCCL_HOSTID, NULL when unset.
 */
uint64_t att_host_hash(const char *host_id);
/* Name of the host, for messages; cut to `size`. */
void att_host_name(char *name, int size);
/* Layout of `count` ranks (1 or more) from their hashes. */
att_host_layout_t att_host_layout(const uint64_t *hashes, int count);

#endif
