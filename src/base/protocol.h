/*
 * protocol: what NCCL fixes for each protocol: the grain of a chunk, the buffer of a connection and
 * with it the largest chunk. The one place in code for the hook, which reads no file, and the host
 * fabric; a test holds it against the catalogue (data/knobs.json), from which the search works.
 *
 * Sources (NCCL 2.30.7): src/include/device.h (ncclProtoGrainSize, NCCL_STEPS, buffer sizes),
 * src/init.cc (computeBuffSizes), src/enqueue.cc (calcCollChunking).
 */
#ifndef ATT_BASE_PROTOCOL_H
#define ATT_BASE_PROTOCOL_H

#include "attune/setting.h"

#include <stdint.h>

/* Bytes; NCCL floors every chunk to a multiple, and divides by what is left. */
#define ATT_GRAIN_LL     16u
#define ATT_GRAIN_LL128  1920u
#define ATT_GRAIN_SIMPLE 512u

/* Bytes of a connection's buffer by default; it has 8 steps. */
#define ATT_BUFFER_LL     524288u
#define ATT_BUFFER_LL128  4915200u
#define ATT_BUFFER_SIMPLE 4194304u
#define ATT_BUFFER_STEPS  8u

static inline uint32_t att_protocol_grain(int protocol)
{
    return protocol == ATT_PROTOCOL_LL      ? ATT_GRAIN_LL
           : protocol == ATT_PROTOCOL_LL128 ? ATT_GRAIN_LL128
                                            : ATT_GRAIN_SIMPLE;
}

static inline uint32_t att_protocol_buffer(int protocol)
{
    return protocol == ATT_PROTOCOL_LL      ? ATT_BUFFER_LL
           : protocol == ATT_PROTOCOL_LL128 ? ATT_BUFFER_LL128
                                            : ATT_BUFFER_SIMPLE;
}

/* Largest chunk, bytes, with a buffer of `buffer` bytes. Ring/Simple takes 4 steps at a time, but 1
 * for Broadcast and Reduce; half of an LL line is data, and 15 of 16 words of an LL128 line. */
static inline uint32_t att_protocol_chunk_most(int collective, int algorithm, int protocol,
                                               uint32_t buffer)
{
    uint32_t step = buffer / ATT_BUFFER_STEPS;
    int long_chunk = algorithm == ATT_ALGORITHM_RING && collective != ATT_COLLECTIVE_BROADCAST &&
                     collective != ATT_COLLECTIVE_REDUCE;
    return protocol == ATT_PROTOCOL_LL      ? step / 2
           : protocol == ATT_PROTOCOL_LL128 ? step / 16 * 15
                                            : step * (long_chunk ? 4 : 1);
}

/* NCCL_VERSION_CODE from which broadcasts of several roots in one group become an AllGatherV. */
#define ATT_NCCL_ALLGATHERV 22902

/* Bytes of /dev/shm that NCCL makes for each rank of a communicator once its calls are stamped
 * (struct ncclProxyOpsPool, src/include/proxy.h; a page for its count). */
#define ATT_STAMPS_POOL (34210176 + 4096)

#endif
