/*
 * tree: which agent passes a group's messages on to whom.
 *
 * The agents of a group, in ascending order, form a complete tree of ATT_TREE_FAN_OUT children an
 * agent with the leader as root. What goes down (a list to prepare, an outcome) is passed on by
 * each agent to its children; what comes up (votes, parts of a call) is reduced by each agent over
 * itself and its children before one message goes to its parent. So the leader sends and receives
 * at most ATT_TREE_FAN_OUT messages however many agents there are, and a message passes at most
 * att_tree_depth() agents. Values only: nothing is allocated, sent or remembered here.
 */
#ifndef ATT_CONTROL_TREE_H
#define ATT_CONTROL_TREE_H

#include <stdint.h>

#define ATT_TREE_FAN_OUT 8
#define ATT_TREE_NOBODY  UINT32_MAX

/* An agent's place. */
typedef struct att_tree_place {
    uint32_t parent; /* ATT_TREE_NOBODY at the root */
    uint32_t child_count;
    uint32_t children[ATT_TREE_FAN_OUT]; /* agents */
    uint32_t below;                      /* agents in the subtree, this one included */
} att_tree_place_t;

/* The place of agents[self] in the tree over agents[0..count) with the root agents[root]; 0 <=
 * root, self < count. Equal lists give trees that fit together. */
att_tree_place_t att_tree_place(const uint32_t *agents, uint32_t count, uint32_t root,
                                uint32_t self);

/* For each agent the sum of `values` over its subtree: sums[i] belongs to agents[i]. */
void att_tree_sums(const uint32_t *values, uint32_t count, uint32_t root, uint32_t *sums);

/* Most agents on the way from the root to another, both ends included: 1 for a lone agent. */
uint32_t att_tree_depth(uint32_t count);

#endif
