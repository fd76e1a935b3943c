/*
 * job: a synthetic training job that calls one task again and again and drives an optimizer the way
 * a sidecar does: it commits plans some calls ahead, hands in samples, and can lose them.
 */
#ifndef ATT_TEST_JOB_H
#define ATT_TEST_JOB_H

#include "search/optimizer.h"
#include "search/space.h"

/* True duration of a setting (KEEP included) in microseconds. */
typedef double (*job_duration_fn)(void *context, att_setting_t setting);

typedef struct job {
    job_duration_fn duration;
    void *context;
    double noise;         /* relative standard deviation of a sample */
    double load;          /* factor on all durations, for drift */
    double unusable;      /* share of samples flagged unusable */
    double lost;          /* share of samples that never come */
    double compute_us;    /* between calls, part of the run time */
    double harm;          /* share by which compute takes longer after a call with a setting */
    bool stepped;         /* the length of each step is handed in as well */
    uint32_t buckets;     /* calls after which comes what `harm` adds to all of them; 0: after each.
                             Steps are made level by what they are without it. */
    uint32_t delay;       /* calls between a plan and its fence */
    uint32_t abort_every; /* every n-th plan is aborted; 0 none */
    struct att_optimizer *optimizer;

    uint64_t random;
    uint64_t call;
    double burden_us; /* harm of the calls since the last one that ended a step of buckets */
    double run_us;
    att_plan_t plan; /* waiting for its fence, or in force */
    int waiting, playing;
    uint64_t fence;
    att_setting_t incumbent;
    uint32_t plans, aborts;
    uint64_t trial_calls;
    uint64_t unstamped;     /* calls of a search without stamps: no sample */
    att_setting_t in_force; /* at the last call */
} job_t;

double job_draw(job_t *job);   /* uniform [0, 1) */
double job_normal(job_t *job); /* standard normal */
void job_call(job_t *job);
/* Call until the phase is settled or failed, at most `most` calls. Returns the phase. */
att_phase_t job_run(job_t *job, uint64_t most);

#endif
