/*
 * pace: how long the agent may sleep before it looks again. Values only: no clock, no sleep.
 *
 * Three wishes pull on it. An idle agent must not be felt: it sleeps 10 ms a round. A ring must not
 * run full: the agent measures how fast the fullest one fills and is back before a quarter of it is
 * used. A switch must be quick: while something is searched the agent polls without sleep for a few
 * milliseconds after the last message, since a list of trials comes every few milliseconds.
 */
#ifndef ATT_CONTROL_PACE_H
#define ATT_CONTROL_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define ATT_PACE_IDLE_NS    10000000ull  /* nothing is searched */
#define ATT_PACE_BUSY_NS    50000ull     /* samples are awaited */
#define ATT_PACE_SPIN_NS    3000000ull   /* no sleep so long after a message, while searching */
#define ATT_PACE_RECENT_NS  100000000ull /* a search without records for longer is a paused job */
#define ATT_PACE_RING_SHARE 4            /* a ring may fill to 1/4 between two looks */

/* Zeroed at start. */
typedef struct att_pace {
    uint64_t round_ns;   /* last round */
    uint64_t record_ns;  /* last round that took records */
    uint64_t message_ns; /* last round that received or sent a message */
    double fill_per_ns;  /* records a nanosecond into the fullest ring; falls by half a round */
} att_pace_t;

/* What happened in a round. */
typedef struct att_pace_round {
    uint64_t now_ns;
    uint32_t fullest;  /* records that the fullest ring held */
    uint32_t messages; /* received or sent, to or from other agents */
    bool searching;    /* some task waits for samples or for an outcome */
    bool moved;        /* something was decided: look again at once */
} att_pace_round_t;

/* Nanoseconds until the next round; 0: at once (the caller yields the processor). `ring` is the
 * capacity of a ring in records. */
uint64_t att_pace_sleep_ns(att_pace_t *pace, const att_pace_round_t *round, uint32_t ring);

#endif
