/* window: the latest durations of the setting in force between lists: the moving baseline. */
#ifndef ATT_SEARCH_WINDOW_H
#define ATT_SEARCH_WINDOW_H

#include "search/statistics.h"

#include <stdbool.h>

#define ATT_WINDOW 16

typedef struct att_window {
    double values[ATT_WINDOW];
    uint32_t count, at;
    bool stale; /* nobody has looked since: the next value begins anew */
} att_window_t;

static inline void att_window_add(att_window_t *window, double duration_us)
{
    if (window->stale)
        *window = (att_window_t){0};
    window->values[window->at] = duration_us;
    window->at = (window->at + 1) % ATT_WINDOW;
    window->count = window->count < ATT_WINDOW ? window->count + 1 : ATT_WINDOW;
}

static inline double att_window_median(const att_window_t *window)
{
    return att_median(window->values, window->count);
}

static inline double att_window_midmean(const att_window_t *window)
{
    return att_midmean(window->values, window->count);
}

static inline double att_window_spread(const att_window_t *window)
{
    return att_relative_spread(window->values, window->count);
}

#endif
