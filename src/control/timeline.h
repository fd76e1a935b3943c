/*
 * timeline: this agent's part in the run's common time axis: its clock, the synchronisation with
 * the other agents, and the record stream. What the agent's loop calls; owns all three.
 */
#ifndef ATT_CONTROL_TIMELINE_H
#define ATT_CONTROL_TIMELINE_H

#include "base/config.h"
#include "control/node.h"

struct att_timeline;
struct att_pinger;

/* config, node and pinger must outlive it; pinger NULL: one agent alone. */
int att_timeline_create(const att_config_t *config, struct att_node *node,
                        struct att_pinger *pinger, uint32_t self, uint32_t agents,
                        struct att_timeline **timeline, att_error_t *error);
void att_timeline_destroy(struct att_timeline *timeline); /* NULL is fine */

/* Every record that was drained, marks included. */
void att_timeline_record(struct att_timeline *timeline, const att_record_t *record);
/* Once a round. Returns the longest sleep that it can bear, in nanoseconds. */
uint64_t att_timeline_step(struct att_timeline *timeline, uint64_t now_ns);
/* 1 while records are kept: kernel stamps are wanted. */
int att_timeline_recording(const struct att_timeline *timeline);

#endif
