/*
 * voter: an agent's side of the switches of one task: holds the lanes of its node, votes, records
 * outcomes, and does the same on behalf of the agents below it in the group's tree.
 *
 * Free of MPI, NCCL and clocks; see control/protocol.h. A group inside one node has one voter
 * without children. Per transaction:
 *
 *     IDLE --PREPARE--> VOTING --own and children's votes are in--> VOTED --OUTCOME--> RECORDING
 *     --own segment and all children have recorded--> IDLE
 *
 * A late, repeated or stale message never changes an outcome: the segment's home word (on other
 * nodes than the home's: the copy of it) goes from OPEN to a decision once, and ids only grow.
 */
#ifndef ATT_CONTROL_VOTER_H
#define ATT_CONTROL_VOTER_H

#include "control/protocol.h"

#define ATT_VOTER_SEEN 64 /* latest calls whose sequence numbers are kept */

/* NCCL's sequence number at a call, as the ranks of this node agree. */
typedef struct att_seen {
    uint64_t call; /* + 1; 0 = none */
    uint64_t seq;
    uint32_t rank; /* one of those that say so */
    uint32_t reserved;
} att_seen_t;

typedef struct att_voter_ops {
    /* To child 0..children-1. */
    void (*prepare)(void *context, uint32_t child, const att_schedule_t *schedule);
    void (*outcome)(void *context, uint32_t child, uint32_t txn, att_home_state_t state);
    /* To the parent (at the root: the coordinator). */
    void (*vote)(void *context, const att_ballot_t *ballot);
    void (*recorded)(void *context, uint32_t txn);
    /* YES, or why this node cannot run the list (channels of a device, ranks that left). NULL: yes
     * to everything. */
    att_vote_t (*permits)(void *context, const att_schedule_t *schedule);
    /* A step was reached (log, fault injection). NULL: nobody cares. */
    void (*step)(void *context, int step, const att_schedule_t *schedule);
} att_voter_ops_t;

typedef struct att_voter {
    const att_voter_ops_t *ops;
    void *context;
    att_segment_memory_t *memory;
    att_segment_task_t *task;
    const uint32_t *lanes; /* one a rank of this node; the caller's */
    uint32_t lane_count;
    uint32_t children;
    att_group_key_t group;
    att_task_key_t key;
    uint32_t txn;     /* latest one prepared or told of */
    uint32_t voting;  /* bit per child whose vote is missing; bit ATT_TREE_FAN: one's own */
    uint32_t telling; /* bit per child that has not recorded the outcome; same bit: oneself */
    int voted;        /* the vote went up */
    att_ballot_t ballot;
    att_seen_t latest;               /* of the calls noted */
    att_seen_t seen[ATT_VOTER_SEEN]; /* by call % ATT_VOTER_SEEN */
} att_voter_t;

void att_voter_init(att_voter_t *voter, const att_voter_ops_t *ops, void *context,
                    att_segment_memory_t *memory, att_segment_task_t *task, const uint32_t *lanes,
                    uint32_t lane_count, uint32_t children);
/* A new agent takes over this node. Marks lanes that the one before never held and returns the
 * largest id known here; *open is set to the id whose outcome this node's copy still lacks, 0 =
 * none: it must be asked of the home (att_home_decide there with ABORTED) and given to
 * att_voter_outcome(). `home`: the home word itself is here: what is open is aborted at once. */
uint32_t att_voter_recover(att_voter_t *voter, bool home, uint32_t *open);

/* A call that all ranks of this node have timed: votes carry the latest one. */
void att_voter_note(att_voter_t *voter, uint64_t call, uint64_t seq, uint32_t rank);

/* From the parent (root: from the coordinator). */
void att_voter_prepare(att_voter_t *voter, const att_schedule_t *schedule);
void att_voter_outcome(att_voter_t *voter, uint32_t txn, att_home_state_t state);
/* From child 0..children-1. */
void att_voter_child_vote(att_voter_t *voter, uint32_t child, const att_ballot_t *ballot);
void att_voter_child_recorded(att_voter_t *voter, uint32_t child, uint32_t txn);

#endif
