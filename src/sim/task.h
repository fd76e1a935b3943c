/*
 * simulated task: one collective of one size on a surface, the space that a search of it has, what
 * its settings really cost, and the best there is.
 *
 * Owns its space; borrows the surface. Optima are looked for once a load (att_sim_task_optimum) and
 * kept; after that a task may be read by several processes.
 */
#ifndef ATT_SIM_TASK_H
#define ATT_SIM_TASK_H

#include "attune/strategy.h"
#include "base/status.h"
#include "sim/step.h"
#include "surface/surface.h"

typedef enum att_sim_objective {
    ATT_SIM_COLLECTIVE = 0, /* duration of the collective */
    ATT_SIM_STEP = 1        /* duration of the step that it overlaps (src/sim/step.h) */
} att_sim_objective_t;

typedef struct att_sim_task_config {
    int collective; /* -1: the surface's only one, or its first */
    uint64_t bytes; /* 0: the size that the surface was made for */
    int six_knobs;  /* 1: also transport and threads, which stock NCCL cannot change a call */
    att_sim_objective_t objective;
    att_sim_step_t step;
} att_sim_task_config_t;

struct att_sim_task;

int att_sim_task_create(const struct att_surface *surface, const att_sim_task_config_t *config,
                        struct att_sim_task **task, att_error_t *error);
void att_sim_task_destroy(struct att_sim_task *task); /* NULL is fine */

const att_space_t *att_sim_task_space(const struct att_sim_task *task);
const att_sim_task_config_t *att_sim_task_config(const struct att_sim_task *task);

/* Noiseless microseconds of the objective under a load; negative when the surface has none. */
double att_sim_task_us(const struct att_sim_task *task, att_setting_t setting, int load);
/* The same for the collective alone and for the step, whatever the objective. */
double att_sim_task_collective_us(const struct att_sim_task *task, att_setting_t setting, int load);
double att_sim_task_step_us(const struct att_sim_task *task, att_setting_t setting, int load);

typedef struct att_sim_optimum {
    att_setting_t setting;
    double us;
} att_sim_optimum_t;

/* The fastest setting of the space (or NCCL's choice, when that is faster). */
int att_sim_task_optimum(struct att_sim_task *task, int load, att_sim_optimum_t *optimum,
                         att_error_t *error);

#endif
