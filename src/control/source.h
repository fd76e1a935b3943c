/*
 * source: how the complete calls of one task become samples: by kernel stamps, or start to start.
 *
 * NCCL's stop stamp of a channel is that of its thread 0 (device/common.h, 2.30), whose role ends
 * early in every algorithm but Ring: Tree then looks faster than it is. When calls follow each
 * other at once, start to start tells the truth. Otherwise only Ring settings can be compared. The
 * choice is made once, from calls with NCCL's own setting, and never mixed.
 */
#ifndef ATT_CONTROL_SOURCE_H
#define ATT_CONTROL_SOURCE_H

#include "attune/setting.h"
#include "control/rhythm.h"
#include "profile/aggregate.h"

#define ATT_SOURCE_CALLS 12 /* calls with NCCL's own setting that are watched */
#define ATT_SOURCE_STEPS 72 /* where the step is to be short: a full ring of rhythm.h and more */

typedef struct att_source {
    att_reduction_t reduction;
    bool chosen; /* att_source_choose was called */
    bool step;   /* the step is to be short: start to start, whatever fills the time between */
    bool beside; /* samples are of the collective alone, and what its step does is watched */
    att_reduction_t stamps; /* how the collective alone is reduced; never INTERVAL */
    att_setting_t native;   /* algorithm, protocol, channels that NCCL's own choice uses */
    uint32_t durations, intervals;
    double duration_us[ATT_SOURCE_CALLS], interval_us[ATT_SOURCE_CALLS];
    att_part_t previous; /* last complete call; ranks = 0: none */
    uint32_t watched;
    att_rhythm_t rhythm; /* of steps */
    uint32_t window;     /* calls of a step that is to be short: a period of the rhythm, or 1 */
    uint32_t run;        /* calls that followed each other one by one, up to the period's limit */
    double run_us[ATT_RHYTHM_PERIOD]; /* their steps, by call modulo the limit */
    uint64_t broke, paused; /* call + 1 of the latest step that was far too long, and of the latest
                               that was a pause; 0: none */
    uint64_t disturbed;     /* call + 1 of the latest step beside another group's list; 0: none */
} att_source_t;

void att_source_init(att_source_t *source, att_reduction_t reduction, bool step);
/* A complete call with NCCL's own setting. Returns 1 when enough were seen to choose, or more than
 * enough for the step to have shown itself. */
int att_source_watch(att_source_t *source, const att_part_t *whole);
/* whole_stamps: every rank's stop stamps cover all threads. Returns the pairs (ATT_PAIR_BIT) whose
 * samples can be compared with each other; 0: the step is asked for, and its calls do not follow
 * each other one by one. */
uint32_t att_source_choose(att_source_t *source, bool whole_stamps);
/* A sample; durations that are not above 0 are not known. */
typedef struct att_source_sample {
    uint64_t call;
    double duration_us;   /* what is made short */
    double collective_us; /* of that call, by stamps */
    /* Of the call before the one that brought it, whose step is known only now: */
    uint64_t before;
    double step_us; /* from its start to the next call's, made level (rhythm.h), which may be below
                       0; NAN: not known, or not of interest (att_source_choose) */
    int disturbed;  /* that step, by another group's list; where the step is to be short, one of
                       those that the duration is the mean of */
} att_source_sample_t;
/* A complete call; 1 with a sample, or 0. even_from: the first call after the last list; from there
 * on all calls have one setting, and the pattern that they come in is learnt. */
int att_source_sample(att_source_t *source, const att_part_t *whole, uint64_t even_from,
                      att_source_sample_t *sample);

#endif
