/*
 * run: one search of one strategy under one seed: a job that calls one task again and again and
 * drives the optimizer the way a sidecar's task does (src/control/task.c). A plan is committed some
 * calls ahead, its list is played call by call, each call gives one sample, and the next list comes
 * when the last one has ended. The optimizer and the strategy are the very same code as live; only
 * the duration comes from a surface.
 *
 * Every call counts: warm-up, baseline, trials, final, guard, and the calls between lists.
 */
#ifndef ATT_SIM_RUN_H
#define ATT_SIM_RUN_H

#include "search/optimizer.h"
#include "search/strategy_host.h"
#include "sim/conditions.h"
#include "sim/task.h"

#define ATT_SIM_CHECKPOINTS 128
#define ATT_SIM_LEVELS      4 /* 10, 5, 2, 1 % of the optimum */
extern const double att_sim_levels[ATT_SIM_LEVELS];

/* One call as it was, for traces and plots. */
typedef struct att_sim_call {
    uint64_t call;
    att_phase_t phase; /* of the optimizer, after the call */
    att_setting_t setting, believed;
    double us, measured_us; /* without and with noise */
    double gap;             /* of `believed` */
} att_sim_call_t;

typedef struct att_sim_run_config {
    const char *strategy;    /* NAME[:key=value,...] */
    double noise;            /* relative standard deviation of a sample */
    const double *residuals; /* when not NULL, noise is drawn from these (sample / truth - 1) */
    size_t residual_count;
    att_sim_conditions_t conditions;
    uint64_t budget; /* calls */
    int until_stop;  /* 1: end when the search has stopped, at `budget` at the latest */
    uint32_t lead;   /* calls between a plan and its fence, >= 1 */
    int samples, discard;
    double max_slowdown;
    uint32_t checkpoint_count; /* ascending calls at which the gap is noted */
    uint64_t checkpoints[ATT_SIM_CHECKPOINTS];
    void (*on_call)(void *context, const att_sim_call_t *call); /* may be NULL */
    void *context;
} att_sim_run_config_t;

/*
 * Samples from elsewhere (include/attune/strategy.h) are charged: numbers of calls include them,
 * nothing is learnt from them before they are paid for, and each loses one optimal call.
 *
 * What came of a run; fixed size, so that it can be handed between processes. Gaps are fractions
 * over the optimum under the load of the moment, of the setting that the optimizer believes best
 * (in force, once settled), without noise. */
typedef struct att_sim_outcome {
    int status; /* 0, or -ATT_E... with the text: the strategy failed */
    char why[200];
    uint64_t stop;                    /* calls when the strategy had finished; 0: not within */
    uint64_t settled;                 /* calls when the search had settled first; 0: not within */
    uint64_t reached[ATT_SIM_LEVELS]; /* first call after which the gap is small enough; 0 never */
    uint64_t stays[ATT_SIM_LEVELS];   /* the same, and it stays so to the end */
    float gaps[ATT_SIM_CHECKPOINTS];  /* at the checkpoints */
    double gap;                       /* at the end */
    double lost;                      /* time lost against the optimum, in optimal calls */
    uint64_t calls, slower;           /* calls made; those with a setting slower than NCCL's */
    uint32_t trials;
    uint64_t trial_calls;           /* in lists: trials, comparisons, refreshed baselines */
    uint64_t asks, ask_ns, offline; /* of the strategy (att_host_usage_t) */
    int kept_default;
    att_setting_t setting;         /* believed best at the end */
    double collective_us, step_us; /* noiseless, of that setting, under the last load */
} att_sim_outcome_t;

/* `task` has its optima of all loads in the conditions. Errors of the strategy are in the outcome;
 * -ATT_E... only for errors that would hit every run. */
int att_sim_run(struct att_sim_task *task, const att_sim_run_config_t *config, uint64_t seed,
                struct att_strategy_host *host, att_sim_outcome_t *outcome, att_error_t *error);

#endif
