/*
 * pool: the candidates, settings of the space that are considered: a lattice in octaves over every
 * subspace, and finer and finer neighbours of what looks fast.
 */
#ifndef ATT_DEFAULT_POOL_H
#define ATT_DEFAULT_POOL_H

#include "attune/strategy.h"
#include "surrogate.h"

#define POOL_SUBSPACES 64

typedef struct pool {
    const att_space_t *space;
    surrogate_t *surrogate;
    double belief; /* in what NCCL's costs and channels say before any trial, 0 to 1 */
    att_setting_t settings[SURROGATE_ROOM]; /* index = candidate of the surrogate */
} pool_t;

/* Channels of NCCL's choice; where it is not known, half of what there is. */
uint16_t pool_channels(const att_space_t *space, const att_subspace_t *subspace);
/* The lattice; where it has more points than fit, a part of them drawn with *random. */
void pool_fill(pool_t *pool, uint64_t *random);
/* Believe another part of what was thought before any trial. */
void pool_believe(pool_t *pool, double belief);
/* The candidate with this setting, added if it is new; -1 when there is no room. */
int pool_find(pool_t *pool, int subspace, att_setting_t setting);
/* Add neighbours of a candidate: from one octave away to one step. */
void pool_refine(pool_t *pool, int candidate);

#endif
