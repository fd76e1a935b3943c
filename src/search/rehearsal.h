/*
 * rehearsal: one search of a strategy on a made-up space with made-up durations, without a job:
 * what it asks, in which order, and what it thinks is best. For the conformance test of plugins.
 */
#ifndef ATT_SEARCH_REHEARSAL_H
#define ATT_SEARCH_REHEARSAL_H

#include "attune/strategy.h"
#include "search/strategy_host.h"

#include <stdbool.h>

#define ATT_REHEARSAL_MOST 4000 /* settings; a search that asks more is cut */

/* The spaces, each of a kind that strategies meet. */
typedef enum att_stage {
    ATT_STAGE_ONE = 0,   /* one algorithm and protocol, channels and chunk */
    ATT_STAGE_SIX = 1,   /* six of them, with NCCL's estimates */
    ATT_STAGE_KEPT = 2,  /* six, all other knobs kept */
    ATT_STAGE_EVERY = 3, /* twelve, transport and threads too */
    ATT_STAGE_TWO = 4,   /* two settings in all */
    ATT_STAGE_COUNT = 5
} att_stage_t;
const char *att_stage_name(att_stage_t stage);

typedef struct att_rehearsal {
    /* what is played */
    const char *spec; /* NAME[:key=value,...] */
    uint64_t seed;
    uint32_t most;         /* settings asked for at once (15) */
    uint32_t limit;        /* settings after which it is cut (ATT_REHEARSAL_MOST) */
    att_outcome_t outcome; /* of every so-manieth trial, */
    uint32_t every;        /* 0: all are OK */
    bool backwards;        /* results are told last question first */
    bool leave_open;       /* cut without telling the last answers */
    att_space_t space;
    att_subspace_t subspaces[16];

    /* what came of it */
    bool finished; /* it ended by itself */
    uint32_t count;
    att_setting_t asked[ATT_REHEARSAL_MOST];
    att_setting_t best;
    uint64_t asks;
    double asks_us, slowest_us; /* from question to answer */
} att_rehearsal_t;

att_rehearsal_t *att_rehearsal_create(att_stage_t stage, uint64_t seed); /* NULL without memory */
void att_rehearsal_destroy(att_rehearsal_t *rehearsal);                  /* NULL is fine */
/* -ATT_E... with the text when the strategy failed. */
int att_rehearsal_run(att_rehearsal_t *rehearsal, struct att_strategy_host *host,
                      att_error_t *error);
/* Made-up duration of the best over the smallest there is, minus 1. */
double att_rehearsal_gap(const att_rehearsal_t *rehearsal);
/* Index of the first question that differs; the smaller count when none does. */
uint32_t att_rehearsal_difference(const att_rehearsal_t *a, const att_rehearsal_t *b);

#endif
