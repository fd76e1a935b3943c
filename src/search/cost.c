#include "search/cost.h"

#include "search/statistics.h"

#include <math.h>

#define FIRST_EXCESS 0.5
#define LATEST       0.2  /* weight of the latest trial */
#define CREDIT       16.0 /* calls of the setting in force that trials can be ahead at most */

void att_cost_init(att_cost_t *cost)
{
    *cost = (att_cost_t){.excess = FIRST_EXCESS};
}

void att_cost_add(att_cost_t *cost, const att_play_t *play, double base_us)
{
    if (play->seen == 0 || !(base_us > 0))
        return;
    /* What the usable samples say: start to start, single ones hold the job's own pauses. */
    double us =
        play->count > 0 ? att_midmean(play->samples_us, play->count) : play->total_us / play->seen;
    double lost_us = play->seen * (us - base_us);
    cost->lost_us += fmax(lost_us - cost->ahead_us, 0);
    cost->ahead_us = fmin(fmax(cost->ahead_us - lost_us, 0), CREDIT * base_us);
    if (play->owner == ATT_PLAY_TRIAL)
        cost->excess += LATEST * (fmax(us / base_us - 1, 0) - cost->excess);
}

void att_cost_renew(att_cost_t *cost)
{
    cost->ahead_us = 0;
}
