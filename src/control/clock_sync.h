/*
 * clock sync: brings this agent's clock onto that of agent 0, after HCA3: a binomial tree over the
 * agents, in which a child measures against its parent's clock as the parent has already
 * synchronised it.
 *
 * A measurement is a burst of pings, for which both sides answer at once for a few milliseconds;
 * the ping with the shortest round trip gives one point. A point counts only if that round trip is
 * near the lowest of the pair (profile/clock_model.h); else the burst is repeated soon, and after
 * some tries the best is kept with the uncertainty that its round trip has. Bursts go on as long as somebody wants the clock, so that drift is re-estimated. Without MPI: messages go
 * through ops, which a test can play.
 */
#ifndef ATT_CONTROL_CLOCK_SYNC_H
#define ATT_CONTROL_CLOCK_SYNC_H

#include "control/pinger.h"
#include "profile/clock_model.h"

typedef struct att_clock_ops {
    int (*send)(void *context, uint32_t to, const att_ping_t *ping);
    int (*receive)(void *context, uint32_t *from, att_ping_t *ping);
    int64_t (*now)(void *context);                                 /* the node's clock */
    void (*point)(void *context, const att_stream_clock_t *point); /* a point that counts */
} att_clock_ops_t;

struct att_clock_sync;

int att_clock_sync_create(uint32_t self, uint32_t agents, const att_clock_ops_t *ops, void *context,
                          struct att_clock_sync **sync);
void att_clock_sync_destroy(struct att_clock_sync *sync); /* NULL is fine */

/* Answer, and measure when it is time. `wanted`: this agent needs the clock itself. Returns the
 * longest time until the next step in nanoseconds. A burst takes up to 20 ms of it. */
uint64_t att_clock_sync_step(struct att_clock_sync *sync, int wanted);

/* Agent that `self` (not 0) measures against. */
uint32_t att_clock_parent(uint32_t self);

typedef struct att_clock_counts {
    uint64_t bursts, points, rejected, refused;
    uint32_t lowest_ns;
} att_clock_counts_t;
void att_clock_sync_counts(const struct att_clock_sync *sync, att_clock_counts_t *counts);

#endif
