/*
 * cost: what the trials of one task have cost the job.
 *
 * Trials take longer than the setting in force, or less: what they win pays for those that come
 * later, so that noise, which adds to one what it takes from another, hardly counts. It is no leave
 * for slow ones: it pays up to 16 calls, and within one search, as the next one has another
 * baseline.
 */
#ifndef ATT_SEARCH_COST_H
#define ATT_SEARCH_COST_H

#include "search/playlist.h"

typedef struct att_cost {
    double lost_us;  /* that trials took longer, beyond what earlier ones had won; never less */
    double ahead_us; /* what trials have won since they last lost more than they had won */
    double excess;   /* running mean over trials of (duration / base - 1), if positive */
} att_cost_t;

void att_cost_init(att_cost_t *cost);
/* A play has ended. base_us: what the setting in force takes; not above 0: not known. */
void att_cost_add(att_cost_t *cost, const att_play_t *play, double base_us);
/* Another search begins: what this one has won is spent. */
void att_cost_renew(att_cost_t *cost);

#endif
