#include "search/trial.h"

#include "search/statistics.h"

void att_trial_open(att_open_trial_t *trial, att_setting_t setting, uint32_t samples)
{
    *trial = (att_open_trial_t){.setting = setting,
                                .samples = samples,
                                .goal = samples < ATT_TRIAL_PROBE ? samples : ATT_TRIAL_PROBE};
}

uint32_t att_trial_calls(const att_open_trial_t *trial, uint32_t discard)
{
    return discard + trial->goal - trial->count;
}

static double smallest(const double *values, uint32_t count)
{
    double least = values[0];
    for (uint32_t i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

/* Worse than the best by more than what noise explains; the smallest sample speaks, as outliers of
 * a running job go up. */
static bool clearly_worse(const att_open_trial_t *trial, const att_yardstick_t *y)
{
    double margin = 4 * y->spread;
    margin = margin < 0.05 ? 0.05 : margin > 0.5 ? 0.5 : margin;
    return smallest(trial->samples_us, trial->count) > y->best * y->incumbent_us * (1 + margin);
}

att_trial_step_t att_trial_ran(att_open_trial_t *trial, const double *samples_us, uint32_t count,
                               const att_yardstick_t *y, att_outcome_t *outcome)
{
    for (uint32_t i = 0; i < count && trial->count < ATT_TRIAL_SAMPLES; i++)
        trial->samples_us[trial->count++] = samples_us[i];

    if (trial->count > 0 && y->incumbent_us > 0 && y->max_slowdown > 0 &&
        att_median(trial->samples_us, trial->count) > y->max_slowdown * y->incumbent_us) {
        *outcome = ATT_OUTCOME_SLOW;
        return ATT_TRIAL_TELL;
    }
    if (trial->count < trial->goal) {
        if (!trial->repeated) {
            trial->repeated = true;
            return ATT_TRIAL_MORE;
        }
        /* Half of a full trial says enough; less does not. */
        bool enough = trial->goal > ATT_TRIAL_PROBE && trial->count * 2 >= trial->goal;
        *outcome = enough ? ATT_OUTCOME_OK : ATT_OUTCOME_LOSSY;
        return ATT_TRIAL_TELL;
    }
    *outcome = ATT_OUTCOME_OK;
    if (trial->goal >= trial->samples || clearly_worse(trial, y))
        return ATT_TRIAL_TELL;
    trial->goal = trial->samples;
    trial->repeated = false;
    return ATT_TRIAL_MORE;
}

att_result_t att_result_of(att_outcome_t outcome, const double *samples_us, uint32_t count,
                           uint32_t calls)
{
    return (att_result_t){.abi = ATT_STRATEGY_ABI,
                          .size = sizeof(att_result_t),
                          .outcome = outcome,
                          .sample_count = count,
                          .samples_us = samples_us,
                          .median_us = att_median(samples_us, count),
                          .mean_us = att_mean(samples_us, count),
                          .stddev_us = att_stddev(samples_us, count),
                          .calls = calls};
}

void att_trial_result(const att_open_trial_t *trial, att_outcome_t outcome, double baseline_us,
                      uint32_t baseline_count, att_result_t *result)
{
    bool valid = outcome == ATT_OUTCOME_OK || outcome == ATT_OUTCOME_SLOW;
    uint32_t n = valid ? trial->count : 0;
    *result = att_result_of(outcome, trial->samples_us, n, trial->calls);
    result->baseline_median_us = baseline_us;
    result->baseline_count = baseline_count;
    result->collective_us =
        n > 0 && trial->collectives > 0 ? trial->collective_us / trial->collectives : 0;
}
