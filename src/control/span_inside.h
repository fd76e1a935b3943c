/*
 * span inside: what span.c (groups) and branch.c (their tasks) share. Nobody else includes it.
 */
#ifndef ATT_CONTROL_SPAN_INSIDE_H
#define ATT_CONTROL_SPAN_INSIDE_H

#include "control/early.h"
#include "control/lease.h"
#include "control/span.h"
#include "control/voter.h"
#include "control/way.h"

/* One task of one group on this node: its branch of the group's tree. */
typedef struct att_branch {
    att_task_key_t key; /* first: the group's tree compares keys */
    struct att_branch *next;
    struct att_spanned *group;
    uint32_t index;          /* in the segment, ATT_NONE: no rank here has called it yet */
    struct att_task *leader; /* this agent leads it */
    uint32_t *lanes;
    uint32_t lane_count; /* = the place's ranks_here once ready */
    int ready;
    att_voter_t voter; /* unless this agent leads the group */
    struct att_aggregate *below; /* NULL: not ready, leads, or ended */
    att_aggregate_fates_t fates; /* once ended: what it came to */
    uint64_t flushed_ns;
    att_message_t outbox;                      /* PARTS to the parent */
    att_reported_t reported[ATT_TREE_FAN + 1]; /* by child; last: this node */
    uint32_t reported_mask;
    att_reported_t told; /* what the parent knows */
    uint64_t told_ns;
    uint32_t open; /* an outcome that an earlier sidecar left open here */
} att_branch_t;

typedef struct att_spanned {
    struct att_span *span;
    uint32_t index; /* in the segment */
    att_group_key_t key;
    uint32_t registered; /* members told to the owner */
    uint64_t placed_ns;
    att_place_t place; /* agents = 0: not known yet */
    att_early_t early;
    int retired, ended; /* told to the owner; tuning is over */
    int has_path;
    att_home_path_t path;
    att_way_t way;
    uint32_t reach_missing; /* bit per child; bit ATT_TREE_FAN: this node */
    uint32_t reach_agents, reach_failed;
    int reached; /* leader: by every node */
    int wanted;  /* stamps: as the leader wants (leader: as it has told) */
    att_lease_t lease;
    att_task_reach_t reach;
    att_branch_t *branches;
    void *branch_tree; /* the same */
    uint32_t branch_count;
} att_spanned_t;

struct att_span {
    att_task_shared_t *shared;
    struct att_node *node;
    att_segment_memory_t *memory;
    const att_span_ops_t *ops;
    void *context;
    uint32_t self, agents;
    att_spanned_t *groups[ATT_GROUPS]; /* NULL: not over several nodes */
    att_branch_t *branch_of[ATT_TASKS];
    int changed;
    uint64_t unused;        /* records, also in parts of others, that no branch took */
    att_spanned_t *testing; /* one way at a time */
    uint64_t now_ns;        /* of the last step */
};

/* This node's child number of an agent, ATT_TREE_FAN when it is none. */
uint32_t att_spanned_child(const att_spanned_t *group, uint32_t agent);
void att_spanned_send(att_spanned_t *group, uint32_t to, att_message_t *message);

/* Finds it, or makes it; NULL: no memory, or more than a segment holds. */
att_branch_t *att_branch_find(att_spanned_t *group, const att_task_key_t *key);
/* A task of the segment belongs to the branch. */
void att_branch_task(att_branch_t *branch, uint32_t index);
/* FACTS, PARTS, PREPARE, VOTE, OUTCOME, RECORDED. */
void att_branch_message(att_branch_t *branch, uint32_t from, const att_message_t *message);
void att_branch_record(att_branch_t *branch, const att_record_t *record);
void att_branch_step(att_branch_t *branch, uint64_t now_ns);
/* Adds the records that it holds, and those of calls that never became whole. */
void att_branch_coverage(const att_branch_t *branch, att_coverage_t *coverage);
/* What all ranks of the group report, at the leader: 1 when all do. */
int att_branch_reported(att_branch_t *branch, att_reported_t *reported);
/* The group is over: its window goes. */
void att_branch_end(att_branch_t *branch);
/* All of the group. */
void att_branch_free_all(att_spanned_t *group);

#endif
