/*
 * event time: durations of lone calls by a pair of CUDA events around them, where NCCL's profiler
 * gives no stamps. Only while the agent wants times, never on a capturing stream. One timer belongs
 * to one communicator and is used by one thread at a time; nothing here waits for the device.
 *
 * An event on the stream completes after everything before it, so a duration holds the call with
 * all of its threads, and the launch when the stream was empty. Its clock is the device's own:
 * starts are counted from an anchor on the host's, and not comparable between ranks.
 */
#ifndef ATT_HOOK_EVENT_TIME_H
#define ATT_HOOK_EVENT_TIME_H

#include "attune/record.h"
#include "hook/call.h"

struct att_event_timer;

/* NULL when there is no driver to ask, or no memory. */
struct att_event_timer *att_event_timer_create(void);

/* NULL is fine. Only when no call can use it any more. */
void att_event_timer_destroy(struct att_event_timer *timer);

/* Before the call: true when it can be timed. After it: with the record that it is to give (its
 * start, stop and reason are filled in later), or NULL: it gives none. */
bool att_event_timer_begin(struct att_event_timer *timer, void *stream);
void att_event_timer_end(struct att_event_timer *timer, void *stream, const att_record_t *record);

/* Write the records of calls that are over by now; all: what is not over is lost. */
void att_event_timer_collect(struct att_event_timer *timer, const att_sink_t *sink, bool all);

#endif
