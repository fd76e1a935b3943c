/*
 * variants: twins of a communicator that differ from it in what NCCL fixes when it makes one:
 * threads per block, transport, and the size of its buffers, which decides the chunk where NCCL has
 * no chunk per call. Which ones are made is the user's word (--variants); their order
 * is the same in every process, so that a number means the same variant everywhere.
 */
#ifndef ATT_BASE_VARIANTS_H
#define ATT_BASE_VARIANTS_H

#include "attune/setting.h"
#include "base/status.h"

#include <stdbool.h>

#define ATT_VARIANTS 15 /* most of one communicator */

typedef struct att_variant {
    uint16_t threads; /* 0: as in the communicator itself */
    int8_t transport; /* att_transport_t, KEEP: as in the communicator itself */
    uint32_t buffer;  /* bytes of a connection's Simple buffer, 0: as in the communicator itself */
} att_variant_t;

typedef struct att_variants {
    uint32_t count;
    uint32_t digest; /* equal for equal lists, 0 for the empty one */
    bool buffers;    /* some differ in their buffer: a setting's chunk names a variant */
    att_variant_t items[ATT_VARIANTS];
} att_variants_t;

/* NCCL that reads NCCL_BUFFSIZE anew for a communicator (NCCL_NO_CACHE, 2.29.7) and has no chunk
 * per call yet (getChunkSize, 2.30.3): from, and up to but without. */
#define ATT_BUFFER_VARIANTS_SINCE 22907
#define ATT_BUFFER_VARIANTS_UNTIL 23003

/* "nt=128,256,512;t=p2p,shm;buffer=512K": every combination of the values and "as it is", but that
 * of all as they are. "" is the empty list. -ATT_EUSAGE names what is wrong. */
int att_variants_parse(const char *text, att_variants_t *variants, att_error_t *error);

/* Where a setting runs: the number of a variant, -1: the communicator itself, -2: neither. */
int att_variants_find(const att_variants_t *variants, int collective, att_setting_t setting);

/* The chunk of a pair with this variant's buffer, bytes; 0: its buffer is as it is, or the pair
 * does not use it (only Ring and Tree with Simple do). */
uint32_t att_variant_chunk(const att_variant_t *variant, int collective, int algorithm,
                           int protocol);

/* Device memory of the variants, of up to `channels` channels on one GPU, bytes: a channel's
 * buffers of the three protocols are 9.2 MiB a connection by default (transport/p2p.cc, NCCL 2.30),
 * Ring has one a channel and Tree up to three, and each communicator has about 1 MiB more. */
uint64_t att_variants_bytes(const att_variants_t *variants, uint32_t channels);

#endif
