/*
 * shape: whether a surface has the shape that coordinate descent counts on. A line is what is left
 * when all knobs but one resource knob (channels, threads, chunk) are fixed; it is unimodal when
 * the duration first falls and then rises (AutoCCL, NSDI'25, section 4.2 and figure 3). It is not
 * when a value between two others is slower than both.
 */
#ifndef ATT_SURFACE_SHAPE_H
#define ATT_SURFACE_SHAPE_H

#include "surface/surface.h"

typedef enum att_shape_knob {
    ATT_SHAPE_CHANNELS = 0,
    ATT_SHAPE_THREADS = 1,
    ATT_SHAPE_CHUNK = 2,
    ATT_SHAPE_KNOBS = 3
} att_shape_knob_t;

typedef struct att_shape_count {
    uint32_t lines;     /* with at least 3 values */
    uint32_t bent;      /* not unimodal by the durations as they are */
    uint32_t bent_more; /* not unimodal by more than the tolerance */
    double worst;       /* the largest bump: how much slower than the faster side's worse end */
} att_shape_count_t;

/* Lines of one task. Recorded: of the recorded settings; bounds ("at least") and kept values are
 * no part of a line. Modelled: all channels, eight chunks an octave. `tolerance` is relative: a
 * bump counts in bent_more when it is slower than both sides by more than that. -ATT_ENOENT when
 * the task or load is not there, -ATT_ENOMEM. */
int att_surface_shape(const struct att_surface *surface, int collective, uint64_t bytes, int load,
                      double tolerance, att_shape_count_t counts[ATT_SHAPE_KNOBS],
                      att_error_t *error);

/* The largest i < j < k bump of a line: min over both sides of t[j] / least(t) - 1, 0 when the line
 * is unimodal. */
double att_shape_bump(const double *times, size_t count);

#endif
