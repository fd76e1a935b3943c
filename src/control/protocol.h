/*
 * protocol: the contract between the parts of the fence over several nodes, and what their driver
 * must provide.
 *
 * Five state machines, none of which knows MPI, NCCL, sockets, sleep or a clock. Each is driven by
 * calls (a message came, a time is reached) and acts through an ops table:
 *
 *   leader     control/coordinator.h   one a task: opens the home word, has it prepared, decides
 *   agent      control/voter.h         one a task and node: holds lanes, votes, records outcomes,
 *                                      passes both on to the agents below it in the group's tree
 *   rank       base/fence.h            att_lane_enter / att_wait_*: a call that found the hold bit
 *   home       base/home.h             att_home_answer: request in, reply out
 *   registry   control/registry.h      who leads a group and where each agent stands in its tree;
 *              control/turn.h          who has the turn
 *
 * What a driver must provide:
 *   - one att_segment_memory_t a node, zeroed, made with att_segment_add_process, _group,
 *     _add_member, _publish_member, _task and _add_lane (base/segment.h); ranks of a node share it;
 *   - transport between agents: messages below, each delivered at most once, in any order and after
 *     any time, or never when an agent dies (then the whole sidecar is dead). Correctness needs no
 *     order; MPI keeps it between two agents;
 *   - transport from a waiting rank to its group's home: att_home_request_t bytes out, the answer
 * of att_home_answer() in the process of rank 0 back; may be lost, late or repeated;
 *   - time: nanoseconds that only grow, given to att_coordinator_tick, att_lane_enter and
 *     att_wait_step. No two processes' times are ever compared, except that ranks of one node share
 *     the resolver's seat (segment, task->seat): there skew costs a second request, never safety;
 *   - death: a dead agent or rank is simply never called again. A new sidecar calls
 *     att_voter_recover() on every node before its first vote and starts its coordinators above the
 *     largest id that any of them returns.
 * Memory ordering is the C11 one: everything shared is atomic, or written before it is published.
 *
 * The agents of a group form a tree with the leader as root (control/tree.h). What goes down is
 * passed on as it comes; what goes up is put together first, so that an agent talks to at most
 * ATT_TREE_FAN + 1 others however large the group is. The leader's coordinator has one participant,
 * the voter of its own node.
 */
#ifndef ATT_CONTROL_PROTOCOL_H
#define ATT_CONTROL_PROTOCOL_H

#include "base/fence.h"
#include "control/tree.h"

#define ATT_TREE_FAN      ATT_TREE_FAN_OUT
#define ATT_RANKS_A_SLICE 900 /* ranks or agents in one message */
#define ATT_PARTS_A_SLICE 36

typedef enum att_message_type {
    /* agent -> registry owner (agent number hash mod agents) and back */
    ATT_MESSAGE_REGISTER = 1, /* ranks of the group here */
    ATT_MESSAGE_RETIRE = 2,   /* they are gone */
    ATT_MESSAGE_PLACE = 3,    /* who leads, your place in the tree */
    ATT_MESSAGE_ENDED = 4,    /* the group is gone; also owner -> turn keeper */
    /* registry owner -> turn keeper (agent 0), leader <-> turn keeper */
    ATT_MESSAGE_NODES = 5, /* the group's agents */
    ATT_MESSAGE_ASK = 6,   /* leader wants the turn */
    ATT_MESSAGE_GRANT = 7,
    ATT_MESSAGE_RETURN = 8,
    /* down the tree */
    ATT_MESSAGE_PATH = 9,    /* where the home words are served */
    ATT_MESSAGE_TIMING = 10, /* stamps wanted or not */
    ATT_MESSAGE_TAKE = 11,   /* give this group your node's turn */
    ATT_MESSAGE_GIVE = 12,   /* the turn is over */
    ATT_MESSAGE_PREPARE = 13,
    ATT_MESSAGE_OUTCOME = 14,
    ATT_MESSAGE_END = 15, /* this group is not tuned any more */
    /* up the tree, put together on the way */
    ATT_MESSAGE_REACHED = 16, /* test resolves */
    ATT_MESSAGE_FACTS = 17,   /* what the ranks below can do with a task */
    ATT_MESSAGE_PARTS = 18,   /* reduced calls */
    ATT_MESSAGE_TAKEN = 19,
    ATT_MESSAGE_VOTE = 20,
    ATT_MESSAGE_RECORDED = 21,
    /* leader -> agent 0, for the run folder */
    ATT_MESSAGE_REPORT = 22,
    ATT_MESSAGE_COVERAGE = 23,
    ATT_MESSAGE_LIST = 24, /* about to be voted on */
    ATT_MESSAGE_OVER = 25, /* it has played out */
    ATT_MESSAGE_TRIAL = 26,
    ATT_MESSAGE_TYPES = 27
} att_message_type_t;

/* A group, the same on all nodes. commHash alone is no identity. */
typedef struct att_group_key {
    uint64_t hash;
    uint32_t ranks;
    uint32_t reserved;
} att_group_key_t;

/* A task of a group, the same on all nodes. */
typedef struct att_task_key {
    uint64_t bytes;
    uint32_t collective;
    uint32_t legal_pairs;
} att_task_key_t;
_Static_assert(sizeof(att_task_key_t) == 16, "keys are compared as bytes");

/* An agent's place in the tree of a group. */
typedef struct att_place {
    uint32_t agents; /* of the group; 0 = not known yet */
    uint32_t leader; /* agent numbers */
    uint32_t parent; /* of the leader: ATT_TREE_NOBODY */
    uint32_t child_count;
    uint32_t children[ATT_TREE_FAN];
    uint32_t ranks_here;  /* of this node */
    uint32_t ranks_below; /* of this node and its subtree */
    uint32_t agents_below;
} att_place_t;

/* A vote, of one node or of a whole subtree. */
typedef struct att_ballot {
    uint32_t txn;
    uint32_t vote;    /* att_vote_t: YES only when all said yes, else the first no */
    uint64_t horizon; /* largest next call number of any rank */
    uint64_t digest;  /* att_schedule_digest() of what was prepared; differs: the tree differs */
    /* The latest call that every rank here has timed, and NCCL's sequence number of it. */
    uint64_t seq_call; /* call + 1; 0 = none */
    uint64_t seq;
    uint32_t seq_rank; /* a rank that says so */
    uint32_t no_rank;  /* a rank that made it a no, ATT_NONE */
} att_ballot_t;

/* FNV-1a over the group, the task and the list: votes are compared by it. */
uint64_t att_schedule_digest(const att_group_key_t *group, const att_task_key_t *task,
                             const att_schedule_t *schedule);

#endif
