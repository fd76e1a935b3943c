#include "sim/row.h"

#include "base/status.h"
#include "sim/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *att_sim_measure_name(att_sim_measure_t measure)
{
    static const char *const names[] = {"gap_at_descent_stop", "gap_final", "calls_to_2", "regret"};
    return (unsigned)measure < ATT_SIM_MEASURES ? names[measure] : "unknown";
}

/* One value a run. A contest has few runs: the array of all of them is made for each use. */
typedef double (*value_fn)(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level);

static double stop_of(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest, (void)level;
    return o->stop > 0 ? (double)o->stop : INFINITY;
}

static double settled_of(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest, (void)level;
    return o->settled > 0 ? (double)o->settled : INFINITY;
}

static double gap_at_stop(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)level;
    return contest->stop_checkpoint < contest->checkpoint_count ? o->gaps[contest->stop_checkpoint]
                                                                : NAN;
}

static double final_gap(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest, (void)level;
    return o->gap;
}

static double reached(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest;
    return o->reached[level] > 0 ? (double)o->reached[level] : INFINITY;
}

static double reached_or_budget(const att_sim_contest_t *contest, const att_sim_outcome_t *o,
                                int level)
{
    return o->reached[level] > 0 ? (double)o->reached[level] : (double)contest->budget;
}

static double stays(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest;
    return o->stays[level] > 0 ? (double)o->stays[level] : INFINITY;
}

static double regret_of(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest, (void)level;
    return o->lost;
}

static double trials_of(const att_sim_contest_t *contest, const att_sim_outcome_t *o, int level)
{
    (void)contest, (void)level;
    return o->trials;
}

static double trial_calls_of(const att_sim_contest_t *contest, const att_sim_outcome_t *o,
                             int level)
{
    (void)contest, (void)level;
    return (double)o->trial_calls;
}

/* The caller frees it; NULL without memory. */
static double *values_of(const att_sim_contest_t *contest, uint32_t strategy, value_fn value,
                         int level)
{
    double *values = malloc(contest->seeds * sizeof *values);
    const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
    for (uint32_t i = 0; values != NULL && i < contest->seeds; i++)
        values[i] = value(contest, &outcomes[i], level);
    return values;
}

static double quantile_of(const att_sim_contest_t *contest, uint32_t strategy, value_fn value,
                          int level, double q)
{
    double *values = values_of(contest, strategy, value, level);
    double result = values != NULL ? att_quantile(values, contest->seeds, q) : NAN;
    free(values);
    return result;
}

static double mean_of(const att_sim_contest_t *contest, uint32_t strategy, value_fn value,
                      int level)
{
    const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
    double sum = 0;
    for (uint32_t i = 0; i < contest->seeds; i++)
        sum += value(contest, &outcomes[i], level);
    return sum / contest->seeds;
}

/* Geometric mean of 1 + value, minus 1. */
static double geomean_of(const att_sim_contest_t *contest, uint32_t strategy, value_fn value)
{
    const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
    double sum = 0;
    for (uint32_t i = 0; i < contest->seeds; i++)
        sum += log1p(value(contest, &outcomes[i], 0));
    return expm1(sum / contest->seeds);
}

static void fill_sums(const att_sim_contest_t *contest, uint32_t strategy,
                      const struct att_sim_task *task, int load, att_sim_row_t *row)
{
    const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
    double native_us = att_sim_task_collective_us(task, ATT_SETTING_KEEP, load);
    double native_step_us = att_sim_task_step_us(task, ATT_SETTING_KEEP, load);
    double calls = 0, slower = 0, asks = 0, ask_ns = 0, speedup = 0, step_speedup = 0;
    for (uint32_t i = 0; i < contest->seeds; i++) {
        const att_sim_outcome_t *o = &outcomes[i];
        calls += (double)o->calls;
        slower += (double)o->slower;
        asks += (double)o->asks;
        ask_ns += (double)o->ask_ns;
        row->offline += (double)o->offline / contest->seeds;
        row->kept_share += (double)o->kept_default / contest->seeds;
        speedup += log(native_us / o->collective_us);
        step_speedup += log(native_step_us / o->step_us);
        if (o->status != ATT_OK && row->failed++ == 0)
            memcpy(row->why, o->why, sizeof row->why);
    }
    row->slower_share = calls > 0 ? slower / calls : 0;
    row->ask_us = asks > 0 ? ask_ns / asks * 1e-3 : 0;
    row->speedup = exp(speedup / contest->seeds);
    row->step_speedup =
        att_sim_task_config(task)->step.compute_us > 0 ? exp(step_speedup / contest->seeds) : NAN;
}

void att_sim_row_fill(const att_sim_contest_t *contest, uint32_t strategy,
                      const struct att_sim_task *task, int last_load, att_sim_row_t *row)
{
    row->seeds = contest->seeds;
    row->descent_stop = contest->descent_stop;
    row->budget = contest->budget;
    row->calls_at_stop = quantile_of(contest, strategy, stop_of, 0, 0.5);
    row->calls_at_settled = quantile_of(contest, strategy, settled_of, 0, 0.5);
    row->gap_at_descent_stop = geomean_of(contest, strategy, gap_at_stop);
    row->gap_final = geomean_of(contest, strategy, final_gap);
    row->gap_median = quantile_of(contest, strategy, final_gap, 0, 0.5);
    row->gap_p90 = quantile_of(contest, strategy, final_gap, 0, 0.9);
    row->gap_p99 = quantile_of(contest, strategy, final_gap, 0, 0.99);
    row->gap_worst = quantile_of(contest, strategy, final_gap, 0, 1);
    for (int level = 0; level < ATT_SIM_LEVELS; level++) {
        row->calls_to[level] = quantile_of(contest, strategy, reached, level, 0.5);
        row->calls_to_mean[level] = mean_of(contest, strategy, reached_or_budget, level);
        row->calls_to_stay[level] = quantile_of(contest, strategy, stays, level, 0.5);
        const att_sim_outcome_t *outcomes = att_sim_contest_outcomes(contest, strategy);
        uint32_t there = 0;
        for (uint32_t i = 0; i < contest->seeds; i++)
            there += outcomes[i].reached[level] > 0;
        row->share_to[level] = (double)there / contest->seeds;
    }
    row->regret = mean_of(contest, strategy, regret_of, 0);
    row->regret_share = row->regret / (double)contest->budget;
    row->trials = quantile_of(contest, strategy, trials_of, 0, 0.5);
    row->trial_calls = quantile_of(contest, strategy, trial_calls_of, 0, 0.5);
    fill_sums(contest, strategy, task, last_load, row);
}

static value_fn value_of_measure(att_sim_measure_t measure, int *level)
{
    *level = 2; /* of att_sim_levels: 2 % */
    switch (measure) {
    case ATT_SIM_GAP_AT_STOP:
        return gap_at_stop;
    case ATT_SIM_GAP_FINAL:
        return final_gap;
    case ATT_SIM_CALLS_TO_2:
        return reached_or_budget;
    default:
        return regret_of;
    }
}

int att_sim_duel(const att_sim_contest_t *contest, uint32_t a, uint32_t b,
                 att_sim_measure_t measure, att_sim_duel_t *duel)
{
    int level;
    value_fn value = value_of_measure(measure, &level);
    uint32_t n = contest->seeds;
    double *of_a = values_of(contest, a, value, level), *of_b = values_of(contest, b, value, level);
    double *difference = malloc(n * sizeof *difference);
    int rc = of_a != NULL && of_b != NULL && difference != NULL ? ATT_OK : -ATT_ENOMEM;
    if (rc == ATT_OK) {
        for (uint32_t i = 0; i < n; i++)
            difference[i] = of_a[i] - of_b[i];
        duel->measure = measure;
        duel->median_a = att_quantile(of_a, n, 0.5);
        duel->median_b = att_quantile(of_b, n, 0.5);
        duel->median_difference = att_quantile(difference, n, 0.5);
        rc = att_wilcoxon_test(of_a, of_b, n, &duel->test);
    }
    free(difference);
    free(of_b);
    free(of_a);
    return rc;
}
