/*
 * turn: who may have trials in force, so that one group's trial does not spoil another's sample.
 *
 * Two parts, both free of MPI and clocks: the keeper here, and control/node_turn.h.
 *
 * The keeper (on agent ATT_KEEPER) grants turns to groups over several nodes: one at a time of
 * those that share a node, in the order in which they asked. A later one whose nodes are free may
 * pass one that waits and shares a node with it, once: then the nodes of the one that waits are
 * kept for it, so nobody starves, and groups that lie side by side (pipelines over nodes {0,2} and
 * {1,3}) have their turns together.
 *
 * A node's turn belongs to one group: a group inside the node (which asks nobody else, and never
 * touches MPI), or one over several nodes. A granted group takes the turn of each of its nodes at
 * once, down its tree; a node gives it as soon as the lists of the group that has it have ended,
 * and lets no new one begin before.
 *
 * Why nothing locks up, whatever sets of nodes overlap: groups over several nodes wait for each
 * other at the keeper only, where all nodes of a grant are taken in one step and nothing is held
 * while waiting. A granted group is alone among them on each of its nodes, so there it waits only
 * for groups inside that node; these wait for nobody while their lists run, and a list ends (it is
 * played out or its lease expires). The graph of who waits for whom has no cycle.
 */
#ifndef ATT_CONTROL_TURN_H
#define ATT_CONTROL_TURN_H

#include "control/message.h"

typedef struct att_turn_ops {
    /* The turn is this group's until att_turn_return. */
    void (*grant)(void *context, uint32_t leader, const att_group_key_t *group);
} att_turn_ops_t;

struct att_turn_keeper;

int att_turn_keeper_create(const att_turn_ops_t *ops, void *context, uint32_t agents,
                           struct att_turn_keeper **keeper);
void att_turn_keeper_destroy(struct att_turn_keeper *keeper); /* NULL is fine */
/* NODES (from the registry's owner), ASK and RETURN (from a leader), ENDED. */
void att_turn_message(struct att_turn_keeper *keeper, uint32_t from, const att_message_t *message);
/* Groups that have the turn, and that wait for it. */
void att_turn_counts(const struct att_turn_keeper *keeper, uint32_t *granted, uint32_t *waiting);

#endif
