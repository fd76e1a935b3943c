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
#include "profile/aggregate.h"

#define ATT_SOURCE_CALLS 12 /* calls with NCCL's own setting that are watched */

typedef struct att_source {
    att_reduction_t reduction;
    att_setting_t native; /* algorithm, protocol, channels that NCCL's own choice uses */
    uint32_t durations, intervals;
    double duration_us[ATT_SOURCE_CALLS], interval_us[ATT_SOURCE_CALLS];
    att_part_t previous; /* last complete call; ranks = 0: none */
} att_source_t;

void att_source_init(att_source_t *source, att_reduction_t reduction);
/* A complete call with NCCL's own setting. Returns 1 when enough were seen to choose. */
int att_source_watch(att_source_t *source, const att_part_t *whole);
/* whole_stamps: every rank's stop stamps cover all threads. Returns the pairs (ATT_PAIR_BIT) whose
 * samples can be compared with each other. */
uint32_t att_source_choose(att_source_t *source, bool whole_stamps);
/* A complete call; 1 with the call that the sample is of and its duration, or 0. */
int att_source_sample(att_source_t *source, const att_part_t *whole, uint64_t *call,
                      double *duration_us);

#endif
