/*
 * space: which settings are legal for a task, from what all ranks of the group reported.
 */
#ifndef ATT_SEARCH_SPACE_H
#define ATT_SEARCH_SPACE_H

#include "attune/strategy.h"
#include "base/status.h"
#include "base/variants.h"

/* What the ranks agree on: masks are ANDed, ceilings are minima over the ranks. */
typedef struct att_space_facts {
    int collective;
    uint64_t bytes;
    int ranks;
    int nodes;
    uint32_t legal_pairs;          /* not IGNORE on every rank */
    uint32_t connected_pairs;      /* pairs whose algorithm is connected on every rank */
    float cost_us[ATT_PAIR_COUNT]; /* NCCL's estimate, negative unknown */
    uint32_t pinned;               /* ATT_PIN_*: knobs the user forced (OR over ranks) */
    int channels_ceiling;          /* most channels allowed; 0: the knob is kept */
    int channels_seen;             /* most that NCCL itself was seen to use in this group; 0 none */
    int nccl_version;              /* NCCL_VERSION_CODE, 0: unknown, the newest */
    int gathers_hidden;            /* the hook cannot tell an AllGatherV from an AllGather */
    int has_chunk;                 /* every rank's tuner has a chunk callback (v6) */
    att_setting_t native;          /* algorithm, protocol, channels really used by NCCL's choice */
    att_variants_t variants;       /* communicator variants that every rank has; digest unused */
    uint32_t algorithms;           /* user's restriction: bit per algorithm; 0 = all */
} att_space_facts_t;

/* Owns its subspaces. */
struct att_space_owned;
/* -ATT_EILLEGAL with the reason when nothing can be tuned (a single setting is left). */
int att_space_build(const att_space_facts_t *facts, struct att_space_owned **space,
                    att_error_t *error);
const att_space_t *att_space_view(const struct att_space_owned *space);
void att_space_destroy(struct att_space_owned *space);
/* Number of settings, counting chunk "keep". */
uint64_t att_space_size(const att_space_t *space);
/* The i-th setting in a fixed order, i < att_space_size. */
att_setting_t att_space_at(const att_space_t *space, uint64_t i);
int att_space_contains(const att_space_t *space, att_setting_t setting);

/* Grain and largest chunk per protocol and algorithm of the newest NCCL, bytes, from the catalogue
 * of knobs (search/knobs.h). 0 largest: the chunk is kept. */
uint32_t att_chunk_grain(int protocol);
uint32_t att_chunk_max(int collective, int algorithm, int protocol);
/* Most channels that this NCCL (NCCL_VERSION_CODE, 0: the newest) has at all. */
uint32_t att_channels_max(int nccl_version);

#endif
