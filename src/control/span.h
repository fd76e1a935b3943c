/*
 * span: the groups over several nodes as one agent sees them: registers their ranks, learns its
 * place in their trees, tests the way to their homes, votes and records for its node, reduces what
 * comes from below and passes it on. The leader's tasks (control/task.h) reach the other nodes
 * through it. All that it knows of MPI is a send function.
 */
#ifndef ATT_CONTROL_SPAN_H
#define ATT_CONTROL_SPAN_H

#include "control/message.h"
#include "control/node.h"
#include "control/task.h"

typedef struct att_span_ops {
    void (*send)(void *context, uint32_t to, const att_message_t *message);
    /* The group is not tuned: one line. */
    void (*refuse)(void *context, uint32_t group, const char *why);
    /* That agent takes no more for now: what can wait is not sent to it. May be NULL. */
    bool (*is_full)(void *context, uint32_t to);
} att_span_ops_t;

struct att_span;

/* `shared` is the agent's; self of `agents`. */
int att_span_create(att_task_shared_t *shared, uint32_t self, uint32_t agents,
                    const att_span_ops_t *ops, void *context, struct att_span **span);
void att_span_destroy(struct att_span *span); /* NULL is fine */

/* PLACE, ENDED, GRANT and what travels along the trees. */
void att_span_message(struct att_span *span, uint32_t from, const att_message_t *message);
/* Register what is new, retire what is gone, go on with tests, turns and parts. Returns 1 when
 * something is under way. */
int att_span_step(struct att_span *span, uint64_t now_ns);
/* A record of a task that this agent does not lead. */
void att_span_record(struct att_span *span, const att_record_t *record);

/* Adds what became of the records that it was given (unused, incomplete, waiting). */
void att_span_coverage(const struct att_span *span, att_coverage_t *coverage);

/* Groups got their place, their way or their end since the last call. */
int att_span_changed(struct att_span *span);
/* Agents of the group, 0 while it is not known to be over several nodes. */
uint32_t att_span_agents(const struct att_span *span, uint32_t group);
/* Ranks that live on this node according to the registry. */
uint32_t att_span_ranks_here(const struct att_span *span, uint32_t group);
/* Not NULL when this agent leads the group and every node has reached its home. */
const att_task_reach_t *att_span_reach(struct att_span *span, uint32_t group);
/* The leader's task `index`; NULL: it is gone. */
void att_span_lead(struct att_span *span, uint32_t index, struct att_task *task);
/* Leader: its tasks want stamps (1) or not. */
void att_span_want(struct att_span *span, uint32_t group, int on);
/* A leader elsewhere wants stamps on this node. */
int att_span_wants_timing(const struct att_span *span);
/* Leader: a fault that ends tuning of the group on every node; kept settings stay. */
void att_span_end(struct att_span *span, uint32_t group, const char *why);

#endif
