/*
 * clock model: one node's clock against the reference, as points (measured offsets) with a line
 * between each two. The linear model of HCA3 (Hunold, Carpen-Amarie, CLUSTER 2018), re-estimated at
 * every point, so that drift may change during a run.
 *
 * A point counts only if its best round trip is near the lowest of the pair in the seconds around
 * it: a longer one has an asymmetry that nobody can see. att_clock_model_clean drops the others.
 */
#ifndef ATT_PROFILE_CLOCK_MODEL_H
#define ATT_PROFILE_CLOCK_MODEL_H

#include "profile/stream.h"

#include <stdbool.h>

typedef struct att_clock_model {
    att_stream_clock_t *points; /* by at_ns */
    uint32_t count, capacity;
    uint32_t rejected;
} att_clock_model_t;

/* True when a burst with this best round trip may be used beside the lowest. */
bool att_clock_near(uint32_t round_trip_ns, uint32_t lowest_ns);

/* Zeroed at start. Points in any order; equal ones once. 0 or -ATT_ENOMEM. */
int att_clock_model_add(att_clock_model_t *model, const att_stream_clock_t *point);
/* Drop points that are not near; at most `keep` remain (0: all), the latest. 0 or -ATT_ENOMEM. */
int att_clock_model_clean(att_clock_model_t *model, uint32_t keep);
void att_clock_model_free(att_clock_model_t *model);

typedef struct att_clock_reading {
    int64_t ns;              /* on the reference */
    uint32_t uncertainty_ns; /* half width */
} att_clock_reading_t;
/* Between points: their line; outside: the last line goes on, with growing uncertainty. A model
 * without points gives its argument and UINT32_MAX. */
att_clock_reading_t att_clock_model_read(const att_clock_model_t *model, int64_t node_ns);
/* Slope of the offset at the end, from the latest points; 0 with fewer than two. */
double att_clock_model_drift(const att_clock_model_t *model);

#endif
