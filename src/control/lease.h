/*
 * lease: one agent's part in the turn of one group over several nodes (control/turn.h).
 *
 * The leader asks the keeper, and once granted has the turn of every node taken down the group's
 * tree. It holds it for a budget of lists, or until it has nothing to propose, and gives it back.
 * Every other agent gives its node's turn when it is free and answers for the agents below it.
 * Free of MPI and clocks.
 */
#ifndef ATT_CONTROL_LEASE_H
#define ATT_CONTROL_LEASE_H

#include "control/message.h"
#include "control/node_turn.h"

#define ATT_LEASE_LISTS   16       /* begun in one turn */
#define ATT_LEASE_IDLE_NS 5000000u /* without a list: given back, ... */
#define ATT_LEASE_IDLE                                                                             \
    8 /* ... or 1/8 of what a list lasts, when that is longer: a handover costs                    \
         calls, and on busy cores the next list takes its time */

typedef enum att_lease_state {
    ATT_LEASE_NONE = 0,
    ATT_LEASE_ASKED = 1,  /* leader: the keeper knows */
    ATT_LEASE_TAKING = 2, /* nodes at and below this one are being taken */
    ATT_LEASE_HELD = 3    /* all of them are */
} att_lease_state_t;

typedef struct att_lease {
    att_lease_state_t state;
    uint32_t missing;   /* bit per child; bit ATT_TREE_FAN: this node */
    uint32_t lists;     /* leader: in force */
    uint32_t begun;     /* leader: in this turn */
    uint64_t used_ns;   /* leader: last time a list was in force or began */
    uint64_t list_ns;   /* leader: when the latest list began */
    uint64_t lasted_ns; /* leader: from there to its end */
    uint64_t turns;     /* taken so far */
} att_lease_t;

typedef struct att_lease_ops {
    void (*send)(void *context, uint32_t to, uint32_t type);
    void (*step)(void *context, int step);
} att_lease_ops_t;

/* What a lease acts on: the group's place, its index in this node's segment, the node's turn. */
typedef struct att_lease_view {
    const att_lease_ops_t *ops;
    void *context;
    const att_place_t *place;
    att_node_turn_t *turn;
    uint32_t group;
    uint32_t self;   /* this agent */
    uint32_t keeper; /* the keeper's agent */
} att_lease_view_t;

/* Leader: may a list begin now? Asks for the turn when the group has none. */
int att_lease_may(att_lease_t *lease, const att_lease_view_t *view, uint64_t now_ns);
/* Leader: a list begins (+1) or has ended (-1). */
void att_lease_list(att_lease_t *lease, int change, uint64_t now_ns);
/* GRANT, TAKE, TAKEN from child 0.., GIVE. */
void att_lease_message(att_lease_t *lease, const att_lease_view_t *view, uint32_t type,
                       uint32_t child);
/* The node's turn came to this group (att_node_turn_next). */
void att_lease_yielded(att_lease_t *lease, const att_lease_view_t *view);
/* Leader: give back what is not used any more. */
void att_lease_step(att_lease_t *lease, const att_lease_view_t *view, uint64_t now_ns);
/* The group has ended: nothing is held from now on. */
void att_lease_end(att_lease_t *lease, const att_lease_view_t *view);

#endif
