/*
 * objective: does what is made short agree with the rest? While a winner and NCCL's choice run
 * interleaved, both measures of each call are kept: the collective alone, by stamps, and its step,
 * from its start to the next call's. A setting that is faster alone may slow the compute beside it
 * (Lagom, arXiv 2602.20656, section 3: more channels, 0.87 of the step).
 */
#ifndef ATT_CONTROL_OBJECTIVE_H
#define ATT_CONTROL_OBJECTIVE_H

#include "attune/setting.h"

#include <stdint.h>

#define ATT_OBJECTIVE_CALLS 32

typedef struct att_objective {
    uint32_t count[2]; /* 0: NCCL's choice, 1: the winner */
    double collective_us[2][ATT_OBJECTIVE_CALLS], step_us[2][ATT_OBJECTIVE_CALLS];
} att_objective_t;

/* Which one a call ran with, from what its event told: 0 NCCL's choice, 1 the winner, -1 not known
 * (another one, or the two differ in the chunk alone, which no event tells). NCCL may have used
 * fewer channels than the winner names, never more. */
int att_objective_side(att_setting_t native, att_setting_t winner, att_setting_t used);

/* One call; what is not above 0 is not known and not counted. The first ATT_OBJECTIVE_CALLS of each
 * setting count. */
void att_objective_add(att_objective_t *objective, int winner, double collective_us,
                       double step_us);
/* 1 when one measure gains and the other loses, both by more than 2 % of their medians: with the
 * gains of the winner, relative. 0: they agree, or too few calls were seen. */
int att_objective_disagrees(const att_objective_t *objective, double *collective_gain,
                            double *step_gain);

#endif
