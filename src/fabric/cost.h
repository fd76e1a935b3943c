/*
 * cost: which (algorithm, protocol) pairs there are and what the fabric, by itself, thinks of them.
 *
 * Real mode, a fixed model of a small shared-memory machine, microseconds:
 *   time = steps * latency[P] + traffic / bandwidth[P]
 *   steps    Ring: AllReduce 2 (n - 1), all others n - 1; Tree (AllReduce only): 2 ceil(log2 n)
 *   traffic  bytes each rank moves: Ring AllReduce 2 (n - 1) / n * S, AllGather and ReduceScatter
 *            (n - 1) / n * S, Broadcast and Reduce S; Tree 2 S; S as the tuner sees it
 *   latency LL 4, LL128 5, Simple 9 us; bandwidth LL 1.2, LL128 2.6, Simple 4 GB/s
 * It chooses like NCCL's model does, without knowing the machine: LL for small, Simple for large
 * messages. Model mode asks the surface instead.
 */
#ifndef ATT_FABRIC_COST_H
#define ATT_FABRIC_COST_H

#include "fabric/nccl_abi.h"
#include "fabric/plugin_abi.h"

/* What NCCL_ALGO and NCCL_PROTO leave: one bit per pair and function (ATT_PAIR_BIT). */
typedef struct att_pairs {
    uint32_t allowed[ATT_FUNCTIONS];
} att_pairs_t;

/* Parse NCCL's lists: "ring,tree", "^ll128", "ring;allreduce:tree". NULL or "" allows all. An
 * unknown word is ncclInvalidUsage. */
ncclResult_t att_pairs_parse(const char *algorithms, const char *protocols, att_pairs_t *pairs);
/* Pairs that the real fabric has for a function. */
uint32_t att_cost_pairs(int function);
double att_cost_us(int function, int algorithm, int protocol, size_t bytes, int ranks);

#endif
