/*
 * node turn: whose lists may be in force on one node (control/turn.h says why and how).
 */
#ifndef ATT_CONTROL_NODE_TURN_H
#define ATT_CONTROL_NODE_TURN_H

#include "base/segment.h"

/* A node's turn. Groups are indices of its segment. Zero-initialise with att_node_turn_init. */
#define ATT_TURN_QUEUE 64
typedef struct att_node_turn {
    uint32_t group;    /* that has it, ATT_NONE = nobody */
    uint32_t lists;    /* of its tasks, in force (groups inside the node) */
    uint64_t until_ns; /* a local group that makes no progress loses it then */
    bool spanning;     /* `group` is over several nodes: it ends by att_node_turn_end only */
    uint32_t waiting[ATT_TURN_QUEUE]; /* granted groups, in order */
    uint32_t waiting_count;
} att_node_turn_t;

void att_node_turn_init(att_node_turn_t *turn);
/* May a list of this local group begin? */
bool att_node_turn_may(const att_node_turn_t *turn, uint32_t group, uint64_t now_ns);
/* It begins (may was true). `holds`: the task has a list in force already. */
void att_node_turn_take(att_node_turn_t *turn, uint32_t group, bool holds, uint64_t until_ns);
/* A list of a local group ended. */
void att_node_turn_release(att_node_turn_t *turn, uint32_t group);
/* A granted group over several nodes wants it. */
void att_node_turn_request(att_node_turn_t *turn, uint32_t group);
/* The next granted group if the turn is free (it has it then), or ATT_NONE. */
uint32_t att_node_turn_next(att_node_turn_t *turn, uint64_t now_ns);
void att_node_turn_end(att_node_turn_t *turn, uint32_t group);

#endif
