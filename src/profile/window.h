/*
 * window: the calls of a trace that start in a span of time, on the reference clock and in order.
 * What every consumer reads records through, so that memory stays bounded by the window.
 */
#ifndef ATT_PROFILE_WINDOW_H
#define ATT_PROFILE_WINDOW_H

#include "profile/trace.h"

/* A part of the timeline, for --window, --ranks, --groups. */
typedef struct att_trace_select {
    int64_t from_ns, to_ns;
    const bool *members; /* by index; NULL: all */
} att_trace_select_t;

/* The selected timed calls that start in the window, by start, then member. The caller frees
 * *events. May be called by several threads. 0 or -ATT_ENOMEM. */
int att_trace_load(const struct att_trace *trace, const att_trace_select_t *select,
                   att_trace_event_t **events, size_t *count);
/* Cut the window so that about `most` records lie in each piece: *bounds are *pieces + 1 times, the
 * caller frees them. */
int att_trace_cut(const struct att_trace *trace, const att_trace_select_t *select, uint64_t most,
                  int64_t **bounds, uint32_t *pieces);
/* The selected calls in order, piece by piece of bounded size: take() gets each piece's events,
 * which end with it, and stops the walk with anything but 0. Returns that, or -ATT_ENOMEM. */
typedef int (*att_trace_take_fn)(void *context, const att_trace_event_t *events, size_t count);
int att_trace_each(const struct att_trace *trace, const att_trace_select_t *select,
                   att_trace_take_fn take, void *context);

#endif
