/*
 * call: the timing of one call in flight. Hot path: no allocation, lock, system call or unbounded
 * loop.
 *
 * A call is claimed by the thread that decides (getCollInfo), told what really ran by the thread
 * that launches (Coll event) and stamped by NCCL's proxy thread (KernelCh events). Its tag, one
 * atomic word {serial, users, state}, says whose it is: each callback names the serial of the call
 * it means, so what comes late or twice finds another serial or state and is refused.
 *
 *     FREE -> FILLING -> DECIDED -> FILLING -> TIMING -> FREE
 *             (decide)              (Coll)     (last stop writes the record)
 *
 * Every call that was claimed yields exactly one record.
 */
#ifndef ATT_HOOK_CALL_H
#define ATT_HOOK_CALL_H

#include "attune/record.h"
#include "base/segment.h"

#include <stdatomic.h>
#include <stdbool.h>

#define ATT_CALL_CHANNELS 64   /* NCCL's MAXCHANNELS since 2.25.1 */
#define ATT_CALL_PATIENCE 4096 /* batches after which stamps are taken for lost */

typedef enum att_call_state {
    ATT_CALL_FREE = 0,
    ATT_CALL_FILLING = 1, /* one thread owns it */
    ATT_CALL_DECIDED = 2, /* waits for its Coll event */
    ATT_CALL_TIMING = 3   /* waits for its stamps */
} att_call_state_t;

typedef struct att_call {
    _Alignas(64) _Atomic uint64_t tag; /* serial << 24 | users << 8 | state */
    _Atomic uint32_t spoiled;          /* att_untimed_t: not usable whatever comes */
    uint32_t channels;                 /* stamps to wait for */
    _Atomic uint64_t started, stopped; /* a bit per channel */
    _Atomic uint64_t last_stop;
    att_setting_t setting;
    att_record_t record;
    _Atomic uint64_t starts[ATT_CALL_CHANNELS];
} att_call_t;

/* Where records and counts go. */
typedef struct att_sink {
    att_segment_process_t *process;
    att_ring_t *ring;
} att_sink_t;

/* Write the record and count it; record->untimed decides as what. */
void att_sink_put(const att_sink_t *sink, att_record_t *record);

/* Take the entry for a new call; false: still in use. What was left in it is written as untimed. */
bool att_call_claim(att_call_t *call, uint64_t serial, const att_sink_t *sink);
/* FILLING -> DECIDED. */
void att_call_publish(att_call_t *call, uint64_t serial);
/* DECIDED -> FILLING; false when it is not `serial` or not DECIDED. */
bool att_call_take(att_call_t *call, uint64_t serial);
/* Whose it is; stable while the caller owns it (FILLING). */
uint64_t att_call_serial(const att_call_t *call);
/* FILLING -> TIMING: wait for the stamps of so many channels (1..ATT_CALL_CHANNELS). */
void att_call_time(att_call_t *call, uint64_t serial, uint32_t channels);
/* FILLING -> FREE, with an untimed record. */
void att_call_drop(att_call_t *call, uint64_t serial, att_untimed_t reason, const att_sink_t *sink);
/* Make sure that `serial` is never used as a time; when it is DECIDED it ends now. */
void att_call_spoil(att_call_t *call, uint64_t serial, att_untimed_t reason,
                    const att_sink_t *sink);
/* End a call that is TIMING: its stamps will not come any more. */
void att_call_abandon(att_call_t *call, const att_sink_t *sink);

/* Stamps of one channel. False when the callback was impossible: unknown or finished call, unknown
 * channel, stop before start, repeated, zero or reversed time. The call is then spoiled. */
bool att_call_start(att_call_t *call, uint64_t serial, uint32_t channel, uint64_t time_ns);
bool att_call_stop(att_call_t *call, uint64_t serial, uint32_t channel, uint64_t time_ns,
                   const att_sink_t *sink);

#endif
