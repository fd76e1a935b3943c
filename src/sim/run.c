#include "sim/run.h"

#include "base/names.h"
#include "sim/noise.h"

#include <string.h>

const double att_sim_levels[ATT_SIM_LEVELS] = {0.10, 0.05, 0.02, 0.01};

typedef struct att_sim_job {
    struct att_sim_task *task;
    const att_sim_run_config_t *config;
    uint64_t seed;
    struct att_strategy_host *host;
    att_host_usage_t usage; /* of the host before the run */
    struct att_optimizer *optimizer;
    att_sim_outcome_t *outcome;

    uint64_t call;
    double run_us;
    att_plan_t plan; /* waiting for its fence, or in force */
    int waiting, playing;
    uint64_t fence;
    att_setting_t incumbent;

    /* of the load in force */
    int load;
    att_sim_optimum_t optimum;
    double native_us;
    /* of the setting run last and of the one believed best: looked up when they change */
    att_setting_t in_force, believed;
    double in_force_us, believed_us;
    double measured_us; /* of the latest call */
    uint32_t checkpoint;
} att_sim_job_t;

static void consult(att_sim_job_t *job)
{
    if (job->waiting && job->call == job->fence) {
        job->waiting = 0;
        job->playing = 1;
        att_optimizer_committed(job->optimizer, job->plan.id, job->fence);
    }
    if (!job->waiting && att_optimizer_plan(job->optimizer, job->run_us, &job->plan) == 1) {
        job->waiting = 1;
        job->playing = 0;
        job->fence = job->call + job->config->lead;
    }
}

static att_setting_t next_setting(att_sim_job_t *job)
{
    if (!job->playing)
        return job->incumbent;
    uint64_t at = job->call - job->fence;
    for (uint32_t i = 0; i < job->plan.count; i++) {
        if (at < job->plan.entries[i].calls)
            return job->plan.entries[i].setting;
        at -= job->plan.entries[i].calls;
    }
    job->incumbent = job->plan.incumbent;
    job->playing = 0;
    return job->incumbent;
}

static int enter_load(att_sim_job_t *job, int load, att_error_t *error)
{
    if (load == job->load)
        return ATT_OK;
    job->load = load;
    job->native_us = att_sim_task_us(job->task, ATT_SETTING_KEEP, load);
    job->in_force_us = att_sim_task_us(job->task, job->in_force, load);
    job->believed_us = att_sim_task_us(job->task, job->believed, load);
    return att_sim_task_optimum(job->task, load, &job->optimum, error);
}

static double noise_of(const att_sim_job_t *job)
{
    const att_sim_run_config_t *c = job->config;
    if (c->residual_count == 0)
        return att_sim_noise(c->noise, job->seed, job->call);
    /* Uniform in [0, 1) from the same stream as the synthetic noise. */
    double u = att_sim_uniform(job->seed, job->call);
    return 1 + c->residuals[(size_t)(u * (double)c->residual_count)];
}

/* One call of the job. */
static int make_call(att_sim_job_t *job, att_error_t *error)
{
    consult(job);
    int rc = enter_load(job, att_sim_conditions_load(&job->config->conditions, job->call), error);
    if (rc != ATT_OK)
        return rc;
    att_setting_t setting = next_setting(job);
    if (!att_setting_equal(setting, job->in_force)) {
        job->in_force = setting;
        job->in_force_us = att_sim_task_us(job->task, setting, job->load);
    }
    if (job->in_force_us < 0) {
        char text[ATT_SETTING_TEXT];
        return att_fail(error, ATT_EINPUT, "the surface gives no duration for %s",
                        att_setting_text(setting, text, sizeof text));
    }
    double us = job->in_force_us * att_sim_conditions_factor(&job->config->conditions, job->call) *
                noise_of(job);
    job->outcome->lost += job->in_force_us / job->optimum.us - 1;
    job->outcome->slower += job->in_force_us > job->native_us * (1 + 1e-9);
    job->run_us += us;
    job->measured_us = us;
    att_sample_t sample = {.call = job->call++, .duration_us = us, .usable = 1};
    if (att_sim_task_config(job->task)->objective == ATT_SIM_STEP)
        sample.collective_us =
            att_sim_task_collective_us(job->task, setting, job->load) * (us / job->in_force_us);
    att_optimizer_sample(job->optimizer, &sample);
    att_optimizer_advance(job->optimizer, job->call);
    return ATT_OK;
}

/* Calls made, and samples from elsewhere, each of which is charged as a call. */
static uint64_t elapsed(const att_sim_job_t *job)
{
    return job->call + job->outcome->offline;
}

/* Samples from elsewhere show up at a question. The job learns nothing while they are paid for, and
 * each costs at least the time of one optimal call. */
static void charge(att_sim_job_t *job)
{
    att_sim_outcome_t *o = job->outcome;
    att_host_usage_t usage;
    att_strategy_host_usage(job->host, &usage);
    uint64_t offline = usage.offline_samples - job->usage.offline_samples;
    if (offline == o->offline)
        return;
    o->lost += (double)(offline - o->offline);
    o->offline = offline;
}

static void note_gaps(att_sim_job_t *job, uint64_t until)
{
    while (job->checkpoint < job->config->checkpoint_count &&
           job->config->checkpoints[job->checkpoint] < until)
        job->outcome->gaps[job->checkpoint++] = (float)job->outcome->gap;
}

/* After a call: what the optimizer believes now, and how far that is from the optimum. */
static void take_stock(att_sim_job_t *job, att_optimizer_status_t *status)
{
    att_sim_outcome_t *o = job->outcome;
    charge(job);
    uint64_t now = elapsed(job);
    note_gaps(job, now < job->config->budget ? now : job->config->budget + 1);
    if (now > job->config->budget)
        return; /* paid for with calls that there are not */
    att_optimizer_status(job->optimizer, status);
    att_setting_t best = status->phase == ATT_PHASE_FAILED ? status->incumbent : status->best;
    if (!att_setting_equal(best, job->believed)) {
        job->believed = best;
        job->believed_us = att_sim_task_us(job->task, best, job->load);
    }
    o->gap = job->believed_us / job->optimum.us - 1;
    for (int i = 0; i < ATT_SIM_LEVELS; i++) {
        if (o->gap > att_sim_levels[i]) {
            o->stays[i] = 0;
            continue;
        }
        if (o->reached[i] == 0)
            o->reached[i] = now;
        if (o->stays[i] == 0)
            o->stays[i] = now;
    }
    if (o->stop == 0 && status->phase > ATT_PHASE_SEARCH)
        o->stop = now;
    if (o->settled == 0 && status->phase == ATT_PHASE_SETTLED)
        o->settled = now;
    note_gaps(job, now + 1);
}

static void show(const att_sim_job_t *job, const att_optimizer_status_t *status)
{
    att_sim_call_t call = {.call = job->call - 1,
                           .phase = status->phase,
                           .setting = job->in_force,
                           .believed = job->believed,
                           .us = job->in_force_us,
                           .measured_us = job->measured_us,
                           .gap = job->outcome->gap};
    if (job->config->on_call != NULL)
        job->config->on_call(job->config->context, &call);
}

static int play(att_sim_job_t *job, att_error_t *error)
{
    att_optimizer_status_t status = {0};
    while (elapsed(job) < job->config->budget) {
        int rc = make_call(job, error);
        if (rc != ATT_OK)
            return rc;
        take_stock(job, &status);
        show(job, &status);
        if (job->config->until_stop && job->outcome->stop != 0)
            break;
    }
    att_sim_outcome_t *o = job->outcome;
    note_gaps(job, UINT64_MAX); /* a search that was cut at its stop */
    o->calls = job->call;
    o->trials = status.trials;
    o->trial_calls = status.calls;
    o->kept_default = att_setting_is_keep(job->believed);
    o->setting = job->believed;
    o->collective_us = att_sim_task_collective_us(job->task, job->believed, job->load);
    o->step_us = att_sim_task_step_us(job->task, job->believed, job->load);
    if (status.phase == ATT_PHASE_FAILED) {
        o->status = -ATT_EPLUGIN;
        memcpy(o->why, status.reason, sizeof status.reason);
    }
    return ATT_OK;
}

int att_sim_run(struct att_sim_task *task, const att_sim_run_config_t *config, uint64_t seed,
                struct att_strategy_host *host, att_sim_outcome_t *outcome, att_error_t *error)
{
    att_sim_job_t job = {.task = task,
                         .config = config,
                         .seed = seed,
                         .host = host,
                         .outcome = outcome,
                         .incumbent = ATT_SETTING_KEEP,
                         .in_force = ATT_SETTING_KEEP,
                         .believed = ATT_SETTING_KEEP,
                         .load = -1};
    att_optimizer_config_t search = {.strategy = config->strategy,
                                     .seed = seed,
                                     .samples = config->samples,
                                     .discard = config->discard,
                                     .max_slowdown = config->max_slowdown};
    att_host_usage_t after;
    *outcome = (att_sim_outcome_t){0};
    att_strategy_host_usage(host, &job.usage);
    int rc = att_optimizer_create(att_sim_task_space(task), &search, host, NULL, NULL,
                                  &job.optimizer, error);
    if (rc != ATT_OK)
        return rc;
    rc = play(&job, error);
    att_optimizer_destroy(job.optimizer);
    att_strategy_host_usage(host, &after);
    outcome->asks = after.asks - job.usage.asks;
    outcome->ask_ns = after.ask_ns - job.usage.ask_ns;
    return rc;
}
