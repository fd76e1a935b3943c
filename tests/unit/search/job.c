#include "job.h"

#include <math.h>

double job_draw(job_t *job)
{
    uint64_t z = job->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double job_normal(job_t *job)
{
    double u = job_draw(job), v = job_draw(job);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static void consult(job_t *job)
{
    if (job->waiting && job->call == job->fence) {
        job->waiting = 0;
        if (job->abort_every > 0 && job->plans % job->abort_every == 0) {
            job->aborts++;
            att_optimizer_aborted(job->optimizer, job->plan.id);
        } else {
            job->playing = 1;
            att_optimizer_committed(job->optimizer, job->plan.id, job->fence);
        }
    }
    if (!job->waiting && att_optimizer_plan(job->optimizer, job->run_us, &job->plan) == 1) {
        job->plans++;
        job->waiting = 1;
        job->playing = 0;
        job->fence = job->call + (job->delay > 0 ? job->delay : 1);
    }
}

static att_setting_t in_force(job_t *job)
{
    if (!job->playing)
        return job->incumbent;
    uint64_t at = job->call - job->fence;
    for (uint32_t i = 0; i < job->plan.count; i++) {
        if (at < job->plan.entries[i].calls) {
            job->trial_calls++;
            return job->plan.entries[i].setting;
        }
        at -= job->plan.entries[i].calls;
    }
    job->incumbent = job->plan.incumbent;
    job->playing = 0;
    return job->incumbent;
}

void job_call(job_t *job)
{
    consult(job);
    job->in_force = in_force(job);
    double load = job->load > 0 ? job->load : 1;
    double truth = job->duration(job->context, job->in_force) * load;
    double measured = truth * (1 + job->noise * job_normal(job));
    double fate = job_draw(job);
    att_sample_t one = {job->call, measured, fate >= job->unusable, 0};
    double harm = att_setting_is_keep(job->in_force) ? 0 : job->harm;
    double step = measured + job->compute_us * (1 + harm) * (1 + job->noise * job_normal(job));
    job->run_us += measured + job->compute_us * (1 + harm);
    if (job->buckets > 0) {
        job->burden_us += job->compute_us * harm;
        step -= job->compute_us * harm;
        if ((job->call + 1) % job->buckets == 0) {
            step += job->burden_us;
            job->burden_us = 0;
        }
    }
    if (job->stepped)
        att_optimizer_step(job->optimizer, job->call, step, job->buckets);
    job->call++;
    att_optimizer_status_t status;
    att_optimizer_status(job->optimizer, &status);
    bool stamped = status.phase >= ATT_PHASE_SETTLED || att_optimizer_wants_timing(job->optimizer);
    job->unstamped += !stamped;
    if (job_draw(job) >= job->lost && stamped)
        att_optimizer_sample(job->optimizer, &one);
    att_optimizer_advance(job->optimizer, job->call);
}

att_phase_t job_run(job_t *job, uint64_t most)
{
    att_optimizer_status_t status;
    for (uint64_t i = 0; i < most; i++) {
        job_call(job);
        att_optimizer_status(job->optimizer, &status);
        int done = status.phase == ATT_PHASE_FAILED ||
                   (status.phase == ATT_PHASE_SETTLED && !job->waiting);
        if (done &&
            (status.phase == ATT_PHASE_FAILED || att_setting_equal(status.incumbent, status.best)))
            break;
    }
    att_optimizer_status(job->optimizer, &status);
    return status.phase;
}
