/*
 * setting: one value per knob of a collective. Public header, seen by strategies and tools.
 *
 * Numbers of collectives, algorithms and protocols are NCCL's own (ncclFunc_t, NCCL_ALGO_*,
 * NCCL_PROTO_* of nccl_tuner.h, 2.22 to 2.30), so that a value can cross the plugin ABI unchanged.
 */
#ifndef ATTUNE_SETTING_H
#define ATTUNE_SETTING_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum att_collective {
    ATT_COLLECTIVE_BROADCAST      = 0,
    ATT_COLLECTIVE_REDUCE         = 1,
    ATT_COLLECTIVE_ALL_GATHER     = 2,
    ATT_COLLECTIVE_REDUCE_SCATTER = 3,
    ATT_COLLECTIVE_ALL_REDUCE     = 4,
    ATT_COLLECTIVE_COUNT          = 5
} att_collective_t;

typedef enum att_algorithm {
    ATT_ALGORITHM_KEEP           = -1, /* NCCL's own choice */
    ATT_ALGORITHM_TREE           = 0,
    ATT_ALGORITHM_RING           = 1,
    ATT_ALGORITHM_COLLNET_DIRECT = 2,
    ATT_ALGORITHM_COLLNET_CHAIN  = 3,
    ATT_ALGORITHM_NVLS           = 4,
    ATT_ALGORITHM_NVLS_TREE      = 5,
    ATT_ALGORITHM_PAT            = 6,
    ATT_ALGORITHM_COUNT          = 7
} att_algorithm_t;

typedef enum att_protocol {
    ATT_PROTOCOL_KEEP   = -1,
    ATT_PROTOCOL_LL     = 0,
    ATT_PROTOCOL_LL128  = 1,
    ATT_PROTOCOL_SIMPLE = 2,
    ATT_PROTOCOL_COUNT  = 3
} att_protocol_t;

typedef enum att_transport {
    ATT_TRANSPORT_KEEP  = -1,
    ATT_TRANSPORT_P2P   = 0,
    ATT_TRANSPORT_SHM   = 1,
    ATT_TRANSPORT_NET   = 2,
    ATT_TRANSPORT_COUNT = 3
} att_transport_t;

/* One bit per (algorithm, protocol) pair: bit algorithm * 3 + protocol. */
#define ATT_PAIR_COUNT                    (ATT_ALGORITHM_COUNT * ATT_PROTOCOL_COUNT)
#define ATT_PAIR_BIT(algorithm, protocol) (1u << ((algorithm)*ATT_PROTOCOL_COUNT + (protocol)))

/* 16 bytes, passed by value and stored in shared memory. 0 (or KEEP) in a knob keeps NCCL's choice. */
typedef struct att_setting {
    int8_t algorithm;     /* att_algorithm_t */
    int8_t protocol;      /* att_protocol_t; KEEP exactly when algorithm is KEEP */
    int8_t transport;     /* att_transport_t */
    int8_t reserved0;     /* 0 */
    uint16_t channels;    /* channels (thread blocks), 0 keeps */
    uint16_t threads;     /* threads per block, 0 keeps */
    uint32_t chunk_bytes; /* bytes a channel moves per step, 0 keeps */
    uint32_t reserved1;   /* 0 */
} att_setting_t;
static_assert(sizeof(att_setting_t) == 16, "att_setting_t is part of the segment layout");

#ifdef __cplusplus
#define ATT_SETTING_KEEP                                                                           \
    (att_setting_t{ATT_ALGORITHM_KEEP, ATT_PROTOCOL_KEEP, ATT_TRANSPORT_KEEP, 0, 0, 0, 0, 0})
#else
#define ATT_SETTING_KEEP                                                                           \
    ((att_setting_t){.algorithm = ATT_ALGORITHM_KEEP,                                              \
                     .protocol = ATT_PROTOCOL_KEEP,                                                \
                     .transport = ATT_TRANSPORT_KEEP})
#endif

static inline bool att_setting_equal(att_setting_t a, att_setting_t b)
{
    return a.algorithm == b.algorithm && a.protocol == b.protocol && a.transport == b.transport &&
           a.channels == b.channels && a.threads == b.threads && a.chunk_bytes == b.chunk_bytes;
}

static inline bool att_setting_is_keep(att_setting_t s)
{
    return att_setting_equal(s, ATT_SETTING_KEEP);
}

#endif
