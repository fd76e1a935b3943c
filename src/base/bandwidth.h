/*
 * bandwidth: algorithm and bus bandwidth as nccl-tests reports them (doc/PERFORMANCE.md there).
 * GB/s is 10^9 bytes a second; bytes are those of NCCL's tuner (AllGather and ReduceScatter: all
 * ranks together), which are nccl-tests' S.
 */
#ifndef ATT_BASE_BANDWIDTH_H
#define ATT_BASE_BANDWIDTH_H

#include "attune/setting.h"

/* 0 when the time is not known. */
static inline double att_algorithm_gbs(uint64_t bytes, double time_us)
{
    return time_us > 0 ? (double)bytes / time_us * 1e-3 : 0;
}

/* Bus bandwidth over algorithm bandwidth. */
static inline double att_bus_factor(int collective, int ranks)
{
    double n = ranks;
    switch (collective) {
    case ATT_COLLECTIVE_ALL_REDUCE:
        return n > 0 ? 2 * (n - 1) / n : 0;
    case ATT_COLLECTIVE_ALL_GATHER:
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return n > 0 ? (n - 1) / n : 0;
    default:
        return 1;
    }
}

#endif
