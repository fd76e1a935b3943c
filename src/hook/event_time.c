/* Hot path while times are wanted: no lock, no wait; events are made at first use. */
#include "hook/event_time.h"

#include "base/clock.h"
#include "hook/event.h"

#include <stdlib.h>

#define SLOTS     64
#define REBASE_MS 1000.0f /* a float of milliseconds is exact to 0.1 us below this */

typedef struct slot {
    void *start, *stop;
    att_record_t record;
} slot_t;

struct att_event_timer {
    const att_event_driver_t *driver;
    uint64_t head, tail; /* slots [tail, head) wait for their stop */
    uint64_t last_start_ns;
    bool has_last; /* the slot before `tail` still holds the start event of last_start_ns */
    slot_t slots[SLOTS];
};

struct att_event_timer *att_event_timer_create(void)
{
    const att_event_driver_t *driver = att_event_driver();
    struct att_event_timer *timer = driver != NULL ? calloc(1, sizeof *timer) : NULL;
    if (timer != NULL)
        timer->driver = driver;
    return timer;
}

void att_event_timer_destroy(struct att_event_timer *timer)
{
    for (int i = 0; timer != NULL && i < SLOTS; i++) {
        if (timer->slots[i].start != NULL)
            timer->driver->destroy(timer->slots[i].start);
        if (timer->slots[i].stop != NULL)
            timer->driver->destroy(timer->slots[i].stop);
    }
    free(timer);
}

static slot_t *slot_of(struct att_event_timer *timer, uint64_t number)
{
    return &timer->slots[number % SLOTS];
}

bool att_event_timer_begin(struct att_event_timer *timer, void *stream)
{
    const att_event_driver_t *driver = timer->driver;
    slot_t *slot = slot_of(timer, timer->head);
    if (timer->head - timer->tail >= SLOTS - 1) /* one stays: the start before the oldest */
        return false;
    if (slot->start == NULL && driver->create(&slot->start, 0) != 0) {
        slot->start = NULL;
        return false;
    }
    if (slot->stop == NULL && driver->create(&slot->stop, 0) != 0) {
        slot->stop = NULL;
        return false;
    }
    return driver->record(slot->start, stream) == 0;
}

void att_event_timer_end(struct att_event_timer *timer, void *stream, const att_record_t *record)
{
    slot_t *slot = slot_of(timer, timer->head);
    if (record == NULL)
        return;
    slot->record = *record;
    slot->record.untimed =
        timer->driver->record(slot->stop, stream) == 0 ? ATT_UNTIMED_NO : ATT_UNTIMED_LOST;
    timer->head++;
}

/* The start, counted on from the one before it while that is near, else from the host's clock. */
static bool read_times(struct att_event_timer *timer, slot_t *slot)
{
    float ms = 0, since_ms = REBASE_MS;
    const slot_t *before = slot_of(timer, timer->tail + SLOTS - 1);
    if (timer->driver->elapsed(&ms, slot->start, slot->stop) != 0 || !(ms > 0))
        return false;
    if (timer->has_last && timer->driver->elapsed(&since_ms, before->start, slot->start) != 0)
        since_ms = REBASE_MS;
    slot->record.start_ns = since_ms > 0 && since_ms < REBASE_MS
                                ? timer->last_start_ns + (uint64_t)((double)since_ms * 1e6 + 0.5)
                                : slot->record.decided_ns;
    slot->record.stop_ns = slot->record.start_ns + (uint64_t)((double)ms * 1e6 + 0.5);
    return true;
}

static void collect(struct att_event_timer *timer, const att_sink_t *sink, bool all)
{
    while (timer->tail != timer->head) {
        slot_t *slot = slot_of(timer, timer->tail);
        int status = slot->record.untimed == ATT_UNTIMED_NO ? timer->driver->query(slot->stop) : 1;
        if (status == ATT_EVENT_NOT_READY && !all)
            return;
        timer->has_last = status == 0 && read_times(timer, slot);
        if (timer->has_last) {
            timer->last_start_ns = slot->record.start_ns;
            slot->record.seen_ns = att_clock_ns();
            slot->record.source = ATT_TIME_EVENT;
        } else {
            slot->record.start_ns = 0;
            slot->record.stop_ns = 0;
            slot->record.decided_ns = 0;
            slot->record.untimed = ATT_UNTIMED_LOST;
        }
        att_sink_put(sink, &slot->record);
        timer->tail++;
    }
}

/* To ask for an event while anybody captures in the default mode would end that capture. */
void att_event_timer_collect(struct att_event_timer *timer, const att_sink_t *sink, bool all)
{
    int mode = ATT_EVENT_RELAXED;
    if (timer->tail == timer->head)
        return;
    bool exchanged = timer->driver->capture_mode(&mode) == 0;
    collect(timer, sink, all);
    if (exchanged)
        timer->driver->capture_mode(&mode);
}
