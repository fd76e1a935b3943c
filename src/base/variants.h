/*
 * variants: twins of a communicator that differ from it in what NCCL fixes when it makes one:
 * threads per block and transport. Which ones are made is the user's word (--variants); their order
 * is the same in every process, so that a number means the same variant everywhere.
 */
#ifndef ATT_BASE_VARIANTS_H
#define ATT_BASE_VARIANTS_H

#include "attune/setting.h"
#include "base/status.h"

#define ATT_VARIANTS 15 /* most of one communicator */

typedef struct att_variant {
    uint16_t threads; /* 0: as in the communicator itself */
    int8_t transport; /* att_transport_t, KEEP: as in the communicator itself */
} att_variant_t;

typedef struct att_variants {
    uint32_t count;
    uint32_t digest; /* equal for equal lists, 0 for the empty one */
    att_variant_t items[ATT_VARIANTS];
} att_variants_t;

/* "nt=128,256,512;t=p2p,shm": every combination of the values and "as it is", but that of both as
 * they are. "" is the empty list. -ATT_EUSAGE names what is wrong. */
int att_variants_parse(const char *text, att_variants_t *variants, att_error_t *error);

/* Where a setting runs: the number of a variant, -1: the communicator itself, -2: neither. */
int att_variants_find(const att_variants_t *variants, att_setting_t setting);

/* Device memory of `count` variants of up to `channels` channels on one GPU, bytes: a channel's
 * buffers of the three protocols are 9.2 MiB a connection (transport/p2p.cc, NCCL 2.30), Ring has
 * one a channel and Tree up to three, and each communicator has about 1 MiB more. */
uint64_t att_variants_bytes(uint32_t count, uint32_t channels);

#endif
