/*
 * pulse: does the job still call a task? Values only: no clock.
 *
 * Counted from the lanes, which count without stamps too. A task that is called once, as what a job
 * exchanges while it starts, must not keep the stamps of all others on for good; one that is called
 * every ten seconds must still get its samples.
 */
#ifndef ATT_CONTROL_PULSE_H
#define ATT_CONTROL_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#define ATT_PULSE_LOOK_NS 10000000ull   /* often enough to look at the lanes */
#define ATT_PULSE_REST_NS 2000000000ull /* without a call, */
#define ATT_PULSE_BEATS   4             /* and so many of its intervals: not called any more */

/* Zeroed at start. */
typedef struct att_pulse {
    uint64_t calls, first_calls; /* latest and first count seen */
    uint64_t first_ns, last_ns;  /* when they were first seen */
    uint64_t looked_ns;
} att_pulse_t;

/* `calls` so far, at a time that never goes back. */
void att_pulse_note(att_pulse_t *pulse, uint64_t calls, uint64_t now_ns);
/* Called lately, for its rhythm; also true in the first ATT_PULSE_REST_NS of its life. */
bool att_pulse_beats(const att_pulse_t *pulse, uint64_t now_ns);

#endif
