/*
 * registry: groups whose ranks live on several nodes.
 *
 * Every agent registers the members it sees of an incomplete group with the agent numbered
 * hash mod agents, which answers all of them once ranks 0..n-1 are there: who leads (the agent of
 * rank 0) and how many agents there are. Such groups are observed: each agent reduces the records
 * of its ranks and sends one part a call to the leader. Groups inside one node never come here.
 */
#ifndef ATT_CONTROL_REGISTRY_H
#define ATT_CONTROL_REGISTRY_H

#include "control/node.h"
#include "control/task.h"

struct att_registry;
struct att_messenger;

int att_registry_create(struct att_messenger *messenger, struct att_node *node,
                        struct att_registry **registry, att_error_t *error);
void att_registry_destroy(struct att_registry *registry); /* NULL is fine */

/* Register what is new, send, receive. Returns how many messages came that somebody waits
 * for: parts of calls do not count. */
uint32_t att_registry_step(struct att_registry *registry, uint64_t now_ns);
/* A record of a task that is not led as a local task. */
void att_registry_record(struct att_registry *registry, const att_record_t *record);
/* Agents that hold ranks of the group: 0 while unknown. */
uint32_t att_registry_spans(const struct att_registry *registry, uint32_t group);
int att_registry_wants_timing(const struct att_registry *registry);
/* Rows for the tasks that this agent leads as observed. Returns how many. */
uint32_t att_registry_report(const struct att_registry *registry, att_task_report_t *rows,
                             uint32_t capacity);

#endif
