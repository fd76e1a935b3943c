/*
 * tracer: writes this node's timing records into the run folder while --trace asks for it, or a
 * request of `attune trace start|stop` does.
 *
 * Files of RUN/trace/ (docs/trace.md): node-<agent>-<part>.records (profile/stream.h), request
 * (what a user asked for last: "MODE TOKEN") and node-<agent>.json (what this agent does, with the
 * token of the request that it has followed). Owns the stream; the segment belongs to the agent.
 */
#ifndef ATT_CONTROL_TRACER_H
#define ATT_CONTROL_TRACER_H

#include "base/config.h"
#include "control/node.h"
#include "control/node_clock.h"
#include "profile/stream.h"

struct att_tracer;

/* `self` of `agents`. Without a run folder nothing is ever recorded. config, node and clock must
 * outlive it. -ATT_EUSAGE: --trace is malformed. */
int att_tracer_create(const att_config_t *config, struct att_node *node,
                      const att_node_clock_t *clock, uint32_t self, uint32_t agents,
                      struct att_tracer **tracer, att_error_t *error);
/* Ends the recording; everything is on disk then. NULL is fine. */
void att_tracer_destroy(struct att_tracer *tracer);

/* Every record that was drained, marks included. */
void att_tracer_record(struct att_tracer *tracer, const att_record_t *record);
/* A point of the node's clock against the reference. Kept also while nothing is recorded. */
void att_tracer_clock(struct att_tracer *tracer, const att_stream_clock_t *point);
/* Follow requests, write what is new in the segment, hand over to the disk. */
void att_tracer_step(struct att_tracer *tracer, uint64_t now_ns);
/* 1 while recording: kernel stamps, marks and the common clock are wanted. */
int att_tracer_active(const struct att_tracer *tracer);

#endif
