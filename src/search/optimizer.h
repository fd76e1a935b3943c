/*
 * optimizer: the search of one task. Decides what to run next, groups samples into trials,
 * compares, guards. Knows no NCCL, no MPI, no shared memory and no clock: it is driven by calls, so
 * that a run, a simulation and a test share it.
 *
 * Life: baseline -> search (strategy asks, trials run, results are told) -> final (the best few and
 * NCCL's choice interleaved) -> guard (winner against NCCL's choice, interleaved) -> settled; a
 * drift leads back to search.
 */
#ifndef ATT_SEARCH_OPTIMIZER_H
#define ATT_SEARCH_OPTIMIZER_H

#include "attune/setting.h"
#include "attune/strategy.h"
#include "base/status.h"

#include <stdbool.h>

#define ATT_PLAN_ENTRIES 15 /* + the incumbent = ATT_SCHEDULE */

struct att_optimizer;
struct att_strategy_host; /* src/search/strategy_host.h */

typedef enum att_phase {
    ATT_PHASE_BASELINE = 0,
    ATT_PHASE_SEARCH = 1,
    ATT_PHASE_FINAL = 2,
    ATT_PHASE_GUARD = 3,
    ATT_PHASE_SETTLED = 4,
    ATT_PHASE_FAILED = 5 /* the strategy failed: NCCL's choice stays; reason in the status */
} att_phase_t;
const char *att_phase_name(att_phase_t phase);

typedef struct att_optimizer_config {
    const char *strategy; /* NAME[:key=value,...] */
    uint64_t seed;
    int samples;         /* usable samples a trial */
    int discard;         /* first samples after a switch that are not used (1) */
    double max_slowdown; /* 3.0; <= 0: no limit */
    double max_cost;     /* fraction of run time that trials may lose; <= 0: no limit */
    int max_trials;      /* 0: the strategy decides */
    int apply;           /* 1: `applied` becomes the incumbent without search or guard */
    att_setting_t applied;
} att_optimizer_config_t;

/* What to run next: entries one after the other, then `incumbent` for good. */
typedef struct att_plan {
    uint32_t id;    /* of this plan, from 1 */
    uint32_t count; /* 0..ATT_PLAN_ENTRIES; 0 with a new incumbent = switch for good */
    struct {
        att_setting_t setting;
        uint32_t calls; /* >= 1 */
    } entries[ATT_PLAN_ENTRIES];
    att_setting_t incumbent;
} att_plan_t;

/* One call's reduced duration, in call order or not. */
typedef struct att_sample {
    uint64_t call;
    double duration_us;
    int usable;           /* 0: timed but disturbed (overlaps another switch, lossy, mismatched) */
    double collective_us; /* of the collective alone where duration_us is of the step that it
                             overlaps; 0: duration_us is the collective's */
} att_sample_t;

/* One line of the trials log, given to the trial callback. */
typedef struct att_trial {
    uint32_t number; /* from 1 */
    att_phase_t phase;
    att_setting_t setting;
    uint64_t first_call;
    uint32_t calls;
    att_result_t result; /* samples_us valid during the callback */
} att_trial_t;
typedef void (*att_trial_fn)(void *context, const att_trial_t *trial);

typedef struct att_optimizer_status {
    att_phase_t phase;
    att_setting_t incumbent; /* in force after every list */
    att_setting_t best;      /* best known, not necessarily in force */
    uint32_t trials;
    uint64_t calls;     /* calls spent in trials and comparisons */
    double baseline_us; /* median of NCCL's choice, of the last interleaved comparison where
                           there was one */
    double tuned_us;    /* median of the winner there; = baseline_us when kept */
    uint32_t baseline_samples, tuned_samples;
    double gain_median, gain_lower; /* relative, winner against NCCL's choice, lower 95 % bound */
    double collective_gain, step_gain; /* of the winner there, relative, where both were measured;
                                          else both 0 */
    int harms;        /* 1: NCCL's choice was kept because the winner makes the step longer */
    double lost_us;   /* that trials took longer than the setting in force (cost.h) */
    int kept_default; /* 1 when settled on NCCL's choice */
    int followed;     /* 1 when settled by what a task of the same kind found */
    char reason[160]; /* "wins by 28.1 % (lower 95 % bound 27.4 %)", "gain 0.3 % is within
                         the noise (lower bound -0.2 %)", "the strategy crashed" */
} att_optimizer_status_t;

/* space is copied. host may be shared by many optimizers and must outlive them. */
int att_optimizer_create(const att_space_t *space, const att_optimizer_config_t *config,
                         struct att_strategy_host *host, att_trial_fn on_trial, void *context,
                         struct att_optimizer **optimizer, att_error_t *error);
void att_optimizer_destroy(struct att_optimizer *optimizer); /* NULL is fine */

/* Never run this setting: what the strategy asks of it is told as ILLEGAL (a setting in force when
 * an earlier run ended badly). At most 32. */
void att_optimizer_quarantine(struct att_optimizer *optimizer, att_setting_t setting);

/* Begin no search yet (true): a task of the same kind is being searched; false: search after all.
 */
void att_optimizer_await(struct att_optimizer *optimizer, bool on);
/* That task settled on `setting`, where NCCL's choice took baseline_us. NCCL's choice is taken over
 * as it is; a winner goes to the guard at once, and only when it does not win here, or NCCL's
 * choice takes another time here, a search follows. baseline_us = 0: durations are shares of a
 * step (kin.h) and not compared, and a winner that does not win here leaves NCCL's choice. */
void att_optimizer_follow(struct att_optimizer *optimizer, att_setting_t setting,
                          double baseline_us);

/* Ask for the next plan. Returns 1 and a plan, or 0: nothing to run now (baseline still being
 * gathered, strategy still thinking, budget used up, settled). At most one plan is out between
 * this and its end; call again after att_optimizer_committed for the next list to be prepared
 * while this one plays when `*plan` allows it. run_us is the job's run time so far (budget).
 * A list is given out only when the one before has ended, so its fence never cuts one short. */
int att_optimizer_plan(struct att_optimizer *optimizer, double run_us, att_plan_t *plan);
/* The plan holds from call `fence` on. */
void att_optimizer_committed(struct att_optimizer *optimizer, uint32_t plan_id, uint64_t fence);
/* The plan never held; its trials are asked again. */
void att_optimizer_aborted(struct att_optimizer *optimizer, uint32_t plan_id);

void att_optimizer_sample(struct att_optimizer *optimizer, const att_sample_t *sample);
/* Where samples are of the collective alone: how long the step was that this call began, from its
 * start to the next call's. May come before or after the call's sample; what the guard has not
 * heard by the end of its list does not count. Steps are added up: made level, one of them may be
 * below 0. period: calls of the pattern that they come in; 0, 1: none. What a setting does to the
 * step may all lie in the longest of them: the guard's blocks have as many. */
void att_optimizer_step(struct att_optimizer *optimizer, uint64_t call, double step_us,
                        uint32_t period);
/* No sample of a call below `call` will come any more: what is missing is lost. */
void att_optimizer_advance(struct att_optimizer *optimizer, uint64_t call);
/* The lease of the plan in force ran out (the job stopped calling): trials are told as TIMEOUT. */
void att_optimizer_expire(struct att_optimizer *optimizer);
/* Watch: samples of a settled task show another duration: search again. Also at settled tasks,
 * att_optimizer_sample does this by itself (see drift in the implementation). */
void att_optimizer_restart(struct att_optimizer *optimizer, const char *why);

/* What is in force must not stay (`why`): NCCL's choice by the next plan, and no search any more.
 */
void att_optimizer_withdraw(struct att_optimizer *optimizer, const char *why);

void att_optimizer_status(const struct att_optimizer *optimizer, att_optimizer_status_t *status);
/* True while kernel stamps are of use for this task: not while it waits for its budget. */
int att_optimizer_wants_timing(const struct att_optimizer *optimizer);

#endif
