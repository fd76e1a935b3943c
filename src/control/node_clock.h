/*
 * node clock: the clock that this agent's records and clock messages are on: CLOCK_MONOTONIC.
 *
 * ATTUNE_CLOCK_INJECT=<offset in seconds>:<drift in ppm> adds an error to it, for tests on one
 * machine that play several nodes: what is measured can then be compared with what was injected.
 */
#ifndef ATT_CONTROL_NODE_CLOCK_H
#define ATT_CONTROL_NODE_CLOCK_H

#include "base/status.h"

#include <stdint.h>

typedef struct att_node_clock {
    int64_t injected_offset_ns;
    double injected_drift; /* seconds a second */
} att_node_clock_t;

/* -ATT_EUSAGE for a malformed variable. */
int att_node_clock_init(att_node_clock_t *clock, att_error_t *error);
/* CLOCK_MONOTONIC to the node's clock; 0 stays 0. */
int64_t att_node_clock_of(const att_node_clock_t *clock, uint64_t monotonic_ns);
int64_t att_node_clock_now(const att_node_clock_t *clock);

#endif
