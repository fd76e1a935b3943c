/*
 * trial: one setting on its way from the strategy's question to its answer.
 *
 * It runs first as a short probe. A probe that is far too slow, or clearly worse than the best
 * known, ends there; the others go on to the full number of samples in a later list.
 */
#ifndef ATT_SEARCH_TRIAL_H
#define ATT_SEARCH_TRIAL_H

#include "attune/setting.h"
#include "attune/strategy.h"

#include <stdbool.h>

#define ATT_TRIAL_PROBE   2  /* usable samples of a probe */
#define ATT_TRIAL_SAMPLES 64 /* most samples of a trial */

typedef struct att_open_trial {
    att_setting_t setting;
    bool listed;         /* in the list that is out */
    uint64_t first_call; /* of its first entry */
    uint32_t calls;      /* run so far */
    uint32_t samples;    /* wanted in full */
    uint32_t goal;       /* samples wanted at this stage */
    bool repeated;       /* asked for more once already at this stage, because of loss */
    uint32_t count;
    double samples_us[ATT_TRIAL_SAMPLES];
    uint32_t collectives; /* of them that know how long the collective alone took (att_sample_t) */
    double collective_us; /* sum over those */
} att_open_trial_t;

/* What a trial is measured against. */
typedef struct att_yardstick {
    double incumbent_us;      /* median of the setting in force between lists, measured recently */
    double incumbent_mid_us;  /* midmean of the same samples */
    uint32_t incumbent_count; /* samples in it */
    double best;         /* best duration over incumbent_us so far; 1 when nothing was faster */
    double spread;       /* relative noise of single samples */
    double max_slowdown; /* <= 0: no limit */
} att_yardstick_t;

typedef enum att_trial_step {
    ATT_TRIAL_MORE = 0, /* run again, att_trial_calls() */
    ATT_TRIAL_TELL = 1  /* *outcome is final */
} att_trial_step_t;

void att_trial_open(att_open_trial_t *trial, att_setting_t setting, uint32_t samples);
/* Calls that its next entry needs. */
uint32_t att_trial_calls(const att_open_trial_t *trial, uint32_t discard);
/* One of its entries has ended with these usable samples. */
att_trial_step_t att_trial_ran(att_open_trial_t *trial, const double *samples_us, uint32_t count,
                               const att_yardstick_t *yardstick, att_outcome_t *outcome);
/* A result of these samples, which it points to; the baseline is left 0 (unknown). */
att_result_t att_result_of(att_outcome_t outcome, const double *samples_us, uint32_t count,
                           uint32_t calls);
/* Fill a result with the trial's samples (which it points to). */
void att_trial_result(const att_open_trial_t *trial, att_outcome_t outcome, double baseline_us,
                      uint32_t baseline_count, att_result_t *result);

#endif
