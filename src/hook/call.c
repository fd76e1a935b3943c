/* Hot path: no allocation, lock, system call or unbounded loop. */
#include "hook/call.h"

#include "base/clock.h"
#include "base/ring.h"
#include "hook/handle.h"

#define USER_ONE  ((uint64_t)1 << 8)
#define USER_MASK ((uint64_t)0xffff << 8)

static uint64_t make_tag(uint64_t serial, att_call_state_t state)
{
    return (serial & ATT_SERIAL_MASK) << 24 | (uint64_t)state;
}

static uint64_t serial_of(uint64_t tag)
{
    return tag >> 24;
}

static att_call_state_t state_of(uint64_t tag)
{
    return (att_call_state_t)(tag & 255);
}

static bool exchange(att_call_t *call, uint64_t *expected, uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit(&call->tag, expected, desired,
                                                   memory_order_acq_rel, memory_order_acquire);
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void att_sink_put(const att_sink_t *sink, att_record_t *record)
{
    if (!att_ring_put(sink->ring, record))
        record->untimed = ATT_UNTIMED_FULL;
    if (record->untimed == ATT_UNTIMED_NO)
        count(&sink->process->timed);
    else
        count(&sink->process->untimed[record->untimed]);
}

static void put_untimed(att_call_t *call, att_untimed_t reason, const att_sink_t *sink)
{
    call->record.start_ns = 0;
    call->record.stop_ns = 0;
    call->record.decided_ns = 0;
    call->record.seen_ns = 0;
    call->record.source = ATT_TIME_NONE;
    call->record.untimed = (uint8_t)reason;
    att_sink_put(sink, &call->record);
}

bool att_call_claim(att_call_t *call, uint64_t serial, const att_sink_t *sink)
{
    uint64_t tag = atomic_load_explicit(&call->tag, memory_order_acquire);
    if ((tag & USER_MASK) != 0 || state_of(tag) == ATT_CALL_FILLING)
        return false;
    uint64_t age = (serial - serial_of(tag)) & ATT_SERIAL_MASK;
    if (state_of(tag) == ATT_CALL_TIMING && age < ATT_CALL_PATIENCE)
        return false;
    if (!exchange(call, &tag, make_tag(serial, ATT_CALL_FILLING)))
        return false;
    if (state_of(tag) == ATT_CALL_DECIDED)
        put_untimed(call, ATT_UNTIMED_MISMATCH, sink);
    else if (state_of(tag) == ATT_CALL_TIMING)
        put_untimed(call, ATT_UNTIMED_LOST, sink);
    atomic_store_explicit(&call->spoiled, ATT_UNTIMED_NO, memory_order_relaxed);
    atomic_store_explicit(&call->started, 0, memory_order_relaxed);
    atomic_store_explicit(&call->stopped, 0, memory_order_relaxed);
    atomic_store_explicit(&call->last_stop, 0, memory_order_relaxed);
    return true;
}

void att_call_publish(att_call_t *call, uint64_t serial)
{
    atomic_store_explicit(&call->tag, make_tag(serial, ATT_CALL_DECIDED), memory_order_release);
}

bool att_call_take(att_call_t *call, uint64_t serial)
{
    uint64_t tag = make_tag(serial, ATT_CALL_DECIDED);
    return atomic_load_explicit(&call->tag, memory_order_relaxed) == tag &&
           exchange(call, &tag, make_tag(serial, ATT_CALL_FILLING));
}

uint64_t att_call_serial(const att_call_t *call)
{
    return serial_of(atomic_load_explicit(&call->tag, memory_order_relaxed));
}

void att_call_time(att_call_t *call, uint64_t serial, uint32_t channels)
{
    call->channels = channels;
    atomic_store_explicit(&call->tag, make_tag(serial, ATT_CALL_TIMING), memory_order_release);
}

void att_call_drop(att_call_t *call, uint64_t serial, att_untimed_t reason, const att_sink_t *sink)
{
    put_untimed(call, reason, sink);
    atomic_store_explicit(&call->tag, make_tag(serial, ATT_CALL_FREE), memory_order_release);
}

static void mark_spoiled(att_call_t *call, att_untimed_t reason)
{
    uint32_t none = ATT_UNTIMED_NO;
    atomic_compare_exchange_strong(&call->spoiled, &none, reason);
}

void att_call_spoil(att_call_t *call, uint64_t serial, att_untimed_t reason, const att_sink_t *sink)
{
    uint64_t tag = atomic_load_explicit(&call->tag, memory_order_acquire);
    if (serial_of(tag) != (serial & ATT_SERIAL_MASK) || state_of(tag) == ATT_CALL_FREE)
        return;
    mark_spoiled(call, reason);
    if (att_call_take(call, serial))
        att_call_drop(call, serial, reason, sink);
}

void att_call_abandon(att_call_t *call, const att_sink_t *sink)
{
    uint64_t tag = atomic_load_explicit(&call->tag, memory_order_acquire);
    if (state_of(tag) != ATT_CALL_TIMING || (tag & USER_MASK) != 0 ||
        !exchange(call, &tag, make_tag(serial_of(tag), ATT_CALL_FILLING)))
        return;
    att_call_drop(call, serial_of(tag), ATT_UNTIMED_LOST, sink);
}

/* Pin a call that is TIMING, so that it is not claimed anew under our hands. */
static bool enter(att_call_t *call, uint64_t serial)
{
    uint64_t tag = atomic_load_explicit(&call->tag, memory_order_acquire);
    for (int i = 0; i < 64; i++) {
        if (serial_of(tag) != serial || state_of(tag) != ATT_CALL_TIMING)
            return false;
        if (exchange(call, &tag, tag + USER_ONE))
            return true;
    }
    return false;
}

static void leave(att_call_t *call)
{
    atomic_fetch_sub_explicit(&call->tag, USER_ONE, memory_order_acq_rel);
}

bool att_call_start(att_call_t *call, uint64_t serial, uint32_t channel, uint64_t time_ns)
{
    if (!enter(call, serial))
        return false;
    bool good = channel < ATT_CALL_CHANNELS && time_ns != 0;
    if (channel < ATT_CALL_CHANNELS) {
        uint64_t bit = (uint64_t)1 << channel;
        if ((atomic_fetch_or(&call->started, bit) & bit) != 0)
            good = false;
        else
            atomic_store(&call->starts[channel], time_ns);
    }
    if (!good)
        mark_spoiled(call, ATT_UNTIMED_LOST);
    leave(call);
    return good;
}

/* All channels have stopped: the one caller that leaves TIMING writes the record. */
static void finish(att_call_t *call, uint64_t stopped, const att_sink_t *sink)
{
    uint64_t tag = atomic_load_explicit(&call->tag, memory_order_acquire);
    do {
        if (state_of(tag) != ATT_CALL_TIMING)
            return;
    } while (!exchange(call, &tag, (tag & ~(uint64_t)255) | ATT_CALL_FREE));
    uint64_t start = UINT64_MAX;
    for (uint64_t left = stopped; left != 0; left &= left - 1) {
        uint64_t one = atomic_load(&call->starts[__builtin_ctzll(left)]);
        if (one < start)
            start = one;
    }
    uint64_t stop = atomic_load(&call->last_stop);
    uint32_t spoiled = atomic_load(&call->spoiled);
    if (spoiled == ATT_UNTIMED_NO && (stop <= start || atomic_load(&call->started) != stopped))
        spoiled = ATT_UNTIMED_LOST;
    if (spoiled != ATT_UNTIMED_NO) {
        put_untimed(call, (att_untimed_t)spoiled, sink);
        return;
    }
    call->record.start_ns = start;
    call->record.stop_ns = stop;
    call->record.seen_ns = att_clock_ns();
    call->record.source = ATT_TIME_KERNEL;
    call->record.untimed = ATT_UNTIMED_NO;
    att_sink_put(sink, &call->record);
}

bool att_call_stop(att_call_t *call, uint64_t serial, uint32_t channel, uint64_t time_ns,
                   const att_sink_t *sink)
{
    if (!enter(call, serial))
        return false;
    bool good = false;
    uint64_t bit = channel < ATT_CALL_CHANNELS ? (uint64_t)1 << channel : 0;
    if ((atomic_load(&call->started) & bit) != 0) {
        uint64_t stopped = atomic_fetch_or(&call->stopped, bit);
        good =
            (stopped & bit) == 0 && time_ns != 0 && time_ns >= atomic_load(&call->starts[channel]);
        if (good) {
            uint64_t last = atomic_load(&call->last_stop);
            while (last < time_ns &&
                   !atomic_compare_exchange_weak(&call->last_stop, &last, time_ns))
                continue;
        } else {
            mark_spoiled(call, ATT_UNTIMED_LOST);
        }
        if ((uint32_t)__builtin_popcountll(stopped | bit) >= call->channels)
            finish(call, stopped | bit, sink);
    } else {
        mark_spoiled(call, ATT_UNTIMED_LOST);
    }
    leave(call);
    return good;
}
