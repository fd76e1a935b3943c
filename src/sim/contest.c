#include "sim/contest.h"

#include "sim/crew.h"
#include "sim/quantile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct att_sim_heat {
    const att_sim_contest_config_t *config;
    const att_sim_run_config_t *run;
    const char *const *strategies;
} att_sim_heat_t;

static const char *strategy_of(const att_sim_heat_t *heat, uint32_t number)
{
    return heat->strategies[number / heat->config->seeds];
}

static uint64_t seed_of(const att_sim_heat_t *heat, uint32_t number)
{
    return heat->config->first_seed + number % heat->config->seeds;
}

static void name_run(void *context, uint32_t number, char *text, size_t size)
{
    const att_sim_heat_t *heat = context;
    snprintf(text, size, "%.128s, seed %" PRIu64 ": strategy %.128s", heat->config->label,
             seed_of(heat, number), strategy_of(heat, number));
}

static int do_run(void *context, uint32_t number, void *result, att_error_t *error)
{
    const att_sim_heat_t *heat = context;
    att_sim_run_config_t run = *heat->run;
    att_error_t why = {""};
    char name[320];
    run.strategy = strategy_of(heat, number);
    int rc = att_sim_run(heat->config->task, &run, seed_of(heat, number), heat->config->host,
                         result, &why);
    if (rc == ATT_OK)
        return ATT_OK;
    name_run(context, number, name, sizeof name);
    return att_fail(error, rc == -ATT_EPLUGIN ? ATT_EFAIL : (att_status_t)-rc, "%s: %.180s", name,
                    why.text);
}

static void show_progress(void *context, uint32_t done, uint32_t jobs)
{
    const att_sim_heat_t *heat = context;
    heat->config->progress(heat->config->context, done, jobs);
}

static int run_all(const att_sim_contest_config_t *config, const att_sim_run_config_t *run,
                   const char *const *strategies, uint32_t count, att_sim_outcome_t *outcomes,
                   att_error_t *error)
{
    att_sim_heat_t heat = {config, run, strategies};
    att_crew_t crew = {.workers = config->workers,
                       .limit_s = config->limit_s,
                       .work = do_run,
                       .context = &heat,
                       .what = "simulated runs",
                       .name = name_run,
                       .progress = config->progress != NULL ? show_progress : NULL};
    return att_crew_run(&crew, count * config->seeds, sizeof *outcomes, outcomes, error);
}

/* Median of the calls at which the reference stops. */
static int find_descent_stop(const att_sim_contest_config_t *config, att_sim_contest_t *contest,
                             att_error_t *error)
{
    static const char *const reference[] = {ATT_SIM_REFERENCE};
    att_sim_run_config_t run = config->run;
    run.budget = ATT_SIM_STOP_MOST;
    run.until_stop = 1;
    run.checkpoint_count = 0;
    run.on_call = NULL;
    att_sim_outcome_t *outcomes = calloc(config->seeds, sizeof *outcomes);
    double *stops = calloc(config->seeds, sizeof *stops);
    int rc = outcomes == NULL || stops == NULL
                 ? att_fail(error, ATT_ENOMEM, "no memory for %u runs", config->seeds)
                 : run_all(config, &run, reference, 1, outcomes, error);
    for (uint32_t i = 0; rc == ATT_OK && i < config->seeds; i++) {
        stops[i] = outcomes[i].stop > 0 ? (double)outcomes[i].stop : INFINITY;
        if (outcomes[i].status != ATT_OK)
            rc = att_fail(error, ATT_EPLUGIN, "the reference %s failed: %s", reference[0],
                          outcomes[i].why);
    }
    if (rc == ATT_OK) {
        double stop = att_quantile(stops, config->seeds, 0.5);
        contest->descent_stop = isfinite(stop) ? (uint64_t)ceil(stop) : 0;
    }
    free(stops);
    free(outcomes);
    return rc;
}

/* Calls on a log scale up to the budget, with the descent stop among them. */
static void place_checkpoints(att_sim_contest_t *contest)
{
    uint64_t stop = contest->descent_stop;
    bool stop_placed = stop == 0 || stop > contest->budget;
    contest->checkpoint_count = 0;
    for (uint64_t at = 1; at <= contest->budget;) {
        if (!stop_placed && stop <= at) {
            at = stop;
            stop_placed = true;
        }
        contest->checkpoints[contest->checkpoint_count++] = at;
        double ratio = pow((double)contest->budget, 1.0 / (ATT_SIM_CHECKPOINTS - 8));
        uint64_t next = (uint64_t)((double)at * ratio);
        next = next > at ? next : at + 1;
        at = next > contest->budget && at < contest->budget ? contest->budget : next;
        if (contest->checkpoint_count == ATT_SIM_CHECKPOINTS - 2 && at < contest->budget)
            at = contest->budget;
    }
    contest->stop_checkpoint = contest->checkpoint_count;
    for (uint32_t i = 0; i < contest->checkpoint_count; i++)
        if (stop > 0 && contest->checkpoints[i] == stop)
            contest->stop_checkpoint = i;
}

/* Optima take time and are the same for all: look for them before the processes part. */
static int find_optima(const att_sim_contest_config_t *config, att_error_t *error)
{
    att_sim_optimum_t optimum;
    int rc = ATT_OK;
    for (uint32_t i = 0; rc == ATT_OK && i < config->run.conditions.count; i++)
        rc = att_sim_task_optimum(config->task, config->run.conditions.spans[i].load, &optimum,
                                  error);
    return rc;
}

int att_sim_contest_run(const att_sim_contest_config_t *config, att_sim_contest_t *out,
                        att_error_t *error)
{
    att_sim_contest_t contest = {.seeds = config->seeds, .strategy_count = config->strategy_count};
    int rc = find_optima(config, error);
    if (rc == ATT_OK)
        rc = find_descent_stop(config, &contest, error);
    if (rc != ATT_OK)
        return rc;
    contest.budget = config->budget > 0 ? config->budget : 3 * contest.descent_stop;
    if (contest.budget == 0)
        return att_fail(error, ATT_EFAIL,
                        "coordinate descent does not stop within %d calls here: give a --budget",
                        ATT_SIM_STOP_MOST);
    place_checkpoints(&contest);
    att_sim_run_config_t run = config->run;
    run.budget = contest.budget;
    run.checkpoint_count = contest.checkpoint_count;
    memcpy(run.checkpoints, contest.checkpoints, sizeof run.checkpoints);
    contest.outcomes =
        calloc((size_t)config->strategy_count * config->seeds, sizeof *contest.outcomes);
    if (contest.outcomes == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the outcomes of %u runs",
                        config->strategy_count * config->seeds);
    rc = run_all(config, &run, config->strategies, config->strategy_count, contest.outcomes, error);
    if (rc != ATT_OK) {
        free(contest.outcomes);
        return rc;
    }
    *out = contest;
    return ATT_OK;
}

void att_sim_contest_free(att_sim_contest_t *contest)
{
    if (contest == NULL)
        return;
    free(contest->outcomes);
    contest->outcomes = NULL;
}

const att_sim_outcome_t *att_sim_contest_outcomes(const att_sim_contest_t *contest,
                                                  uint32_t strategy)
{
    return contest->outcomes + (size_t)strategy * contest->seeds;
}
