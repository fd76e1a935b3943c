/*
 * recent: a task's last calls, for those who watch: what they take now, and who keeps arriving
 * last. Samples stop when kernel stamps are off; the age says how old the last one is.
 */
#ifndef ATT_PROFILE_RECENT_H
#define ATT_PROFILE_RECENT_H

#include "profile/aggregate.h"

#include <stdint.h>

#define ATT_RECENT_CALLS 32

typedef struct att_recent {
    uint64_t samples;
    uint64_t sampled_ns; /* host's clock */
    double duration_us[ATT_RECENT_CALLS];
    uint64_t calls;
    uint64_t previous_call, previous_start_ns;
    uint32_t last_rank[ATT_RECENT_CALLS];
    double gap_us[ATT_RECENT_CALLS]; /* last start - last but one: what the others waited for it */
    double period_us[ATT_RECENT_CALLS]; /* from the last start of the call before, 0 unknown */
} att_recent_t;

/* A sample in microseconds; now_ns on the host's clock. */
void att_recent_sample(att_recent_t *recent, double duration_us, uint64_t now_ns);
/* A complete call whose ranks' stamps are on one clock: only then starts can be compared. */
void att_recent_call(att_recent_t *recent, const att_part_t *whole);

/* Median of the last samples in microseconds; 0 when there is none. */
double att_recent_duration_us(const att_recent_t *recent);

typedef struct att_recent_late {
    uint32_t rank;
    double late_us; /* median of what the others waited for it alone */
    double share;   /* of the last calls in which it came last */
} att_recent_late_t;
/* 1: a rank came last in at least 4 of 5 of the last 32 calls, and alone by at least 5 % of the
 * time from call to call. `attune stragglers` has the full rules (profile/straggler.h). */
int att_recent_late(const att_recent_t *recent, att_recent_late_t *late);

#endif
