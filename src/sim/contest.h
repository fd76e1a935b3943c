/*
 * contest: several strategies on one task, each under the same seeds and with the same budget of
 * calls.
 *
 * The yardstick is AutoCCL's coordinate descent as published (the reference): it runs first, to
 * where it stops by itself; the median of these calls is the "descent stop", and the budget is
 * three times it unless one is given.
 */
#ifndef ATT_SIM_CONTEST_H
#define ATT_SIM_CONTEST_H

#include "sim/run.h"

#define ATT_SIM_REFERENCE  "coordinate_descent:variant=paper"
#define ATT_SIM_STRATEGIES 32
#define ATT_SIM_SEEDS_MAX  1000000
#define ATT_SIM_STOP_MOST  200000 /* calls after which a reference that does not stop is cut */

typedef struct att_sim_contest_config {
    struct att_sim_task *task;
    const char *label;              /* of the task, in messages */
    struct att_strategy_host *host; /* in process */
    uint32_t strategy_count;
    const char *strategies[ATT_SIM_STRATEGIES];
    uint32_t seeds;
    uint64_t first_seed;
    uint64_t budget; /* calls; 0: three times the descent stop */
    uint32_t workers;
    double limit_s;           /* of one run */
    att_sim_run_config_t run; /* strategy, budget and checkpoints are filled in here */
    void (*progress)(void *context, uint32_t done, uint32_t jobs); /* may be NULL */
    void *context;
} att_sim_contest_config_t;

typedef struct att_sim_contest {
    uint64_t descent_stop; /* median calls; 0: most runs of the reference did not stop */
    uint64_t budget;
    uint32_t seeds, strategy_count;
    uint32_t checkpoint_count;
    uint64_t checkpoints[ATT_SIM_CHECKPOINTS];
    uint32_t
        stop_checkpoint; /* index of descent_stop in them; checkpoint_count: beyond the budget */
    att_sim_outcome_t *outcomes; /* strategy-major */
} att_sim_contest_t;

/* A strategy that fails in a run is told by the outcome's status. One that cannot begin, crashes,
 * ends its process or hangs ends the contest: -ATT_EFAIL, and the text names strategy, task and
 * seed. Other errors end it, too. */
int att_sim_contest_run(const att_sim_contest_config_t *config, att_sim_contest_t *contest,
                        att_error_t *error);
void att_sim_contest_free(att_sim_contest_t *contest); /* NULL is fine */
const att_sim_outcome_t *att_sim_contest_outcomes(const att_sim_contest_t *contest,
                                                  uint32_t strategy);

#endif
