/*
 * resolver: the asking side of a home on another node: one request, one reply, one connection.
 *
 * Used by a waiting rank (att_resolver_ask, blocks for at most two seconds) and by the agent for
 * its test before the first vote (start, then step without blocking). Every descriptor is closed on
 * exec; nothing outlives the call.
 */
#ifndef ATT_BASE_RESOLVER_H
#define ATT_BASE_RESOLVER_H

#include "base/home.h"

typedef struct att_resolver {
    int fd; /* -1: not in use */
    uint32_t sent, received;
    bool connected;
    att_home_request_t request;
    att_home_reply_t reply;
} att_resolver_t;

/* Begin to connect. -ATT_EINPUT: not a numeric address; -ATT_ESYSTEM: cannot be reached at all. */
int att_resolver_start(const char *address, uint32_t port, const att_home_request_t *request,
                       att_resolver_t *resolver);
/* Go on for at most timeout_ms (0: only what is possible at once). ATT_OK: resolver->reply is
 * there; -ATT_EBUSY: not yet; -ATT_ESYSTEM: failed. Closed by itself unless busy. */
int att_resolver_step(att_resolver_t *resolver, int timeout_ms);
void att_resolver_stop(att_resolver_t *resolver);

struct att_lane_gate;

/* Ask the home of the task's group, as its segment names it, to resolve txn. NONE: no answer, or
 * the gate was released meanwhile (NULL: there is none). `seat` is kept (att_seat_keep). */
att_home_state_t att_resolver_ask(const att_segment_memory_t *memory, att_segment_task_t *task,
                                  uint32_t txn, uint64_t *seat, const struct att_lane_gate *gate);

#endif
