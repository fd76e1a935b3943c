/*
 * device clock: ties a GPU's timer to its host's clock without asking the GPU.
 *
 * Every timed call gives two bounds: its kernel cannot have started before the host decided on it,
 * and not have stopped after the host saw the stop stamp. With d = host - device:
 *     decided - start <= d <= seen - stop
 * (the two one-way bounds of Cristian's method). Over a window the largest lower and the smallest
 * upper bound are kept, on a line with the slope of the windows before; the middle is the offset,
 * half the gap its uncertainty.
 */
#ifndef ATT_PROFILE_DEVICE_CLOCK_H
#define ATT_PROFILE_DEVICE_CLOCK_H

#include <stdint.h>

typedef struct att_device_clock_point {
    int64_t at_ns;     /* device's clock */
    int64_t offset_ns; /* host - device */
    uint32_t uncertainty_ns;
} att_device_clock_point_t;

typedef struct att_device_clock {
    int64_t from_ns, to_ns;  /* device time of the window */
    int64_t low_ns, high_ns; /* bounds at from_ns */
    uint64_t samples;
    double drift;       /* of the offset, a second a second */
    double drift_error; /* by how much the last point moved it */
    att_device_clock_point_t last;
    uint64_t points;
} att_device_clock_t;

/* Zero the clock to start. Returns 1 and a point when a window is complete. */
int att_device_clock_add(att_device_clock_t *clock, int64_t decided_ns, int64_t start_ns,
                         int64_t stop_ns, int64_t seen_ns, att_device_clock_point_t *point);
/* The window that is open, if it has samples: 1 and a point, else 0. */
int att_device_clock_finish(att_device_clock_t *clock, att_device_clock_point_t *point);

#endif
