/*
 * switch: the leader's side of one task's switches: a plan becomes a list with a fence ahead of all
 * ranks, is proposed, decided and told. Owns the task's coordinator and the voter of the leader's
 * node; the agents below it in the group's tree are reached through ops.
 *
 * Free of MPI, NCCL and clocks.
 */
#ifndef ATT_CONTROL_SWITCH_H
#define ATT_CONTROL_SWITCH_H

#include "control/coordinator.h"
#include "control/voter.h"
#include "search/optimizer.h"

typedef struct att_switch_ops {
    /* About to be prepared anywhere. */
    void (*proposed)(void *context, const att_schedule_t *schedule);
    /* Decided; nobody is told yet. */
    void (*decided)(void *context, const att_schedule_t *schedule, att_home_state_t state,
                    const att_ballot_t *ballot);
    /* To child 0.. of the leader's node; not called when it has none. */
    void (*prepare)(void *context, uint32_t child, const att_schedule_t *schedule);
    void (*outcome)(void *context, uint32_t child, uint32_t txn, att_home_state_t state);
} att_switch_ops_t;

typedef struct att_switch {
    const att_switch_ops_t *ops;
    void *context;
    att_segment_memory_t *memory;
    uint32_t index; /* of the task in the segment */
    const uint32_t *lanes;
    uint32_t lane_count; /* of this node */
    att_coordinator_t coordinator;
    att_voter_t voter;
    uint64_t list_end;   /* first call after the list in force */
    uint64_t last_fence; /* of the list committed last; 0 = none, or nobody need have come there */
    uint64_t horizon, horizon_ns;
    double calls_per_ns; /* recent rate of the fastest rank here */
    uint64_t begin_ns;   /* of the vote going on */
    double vote_ns;      /* how long votes took lately */
    uint64_t ahead; /* how far ranks of other nodes were beyond those here, at the end of a vote */
    uint32_t lead_extra; /* grows when a fence was passed */
    uint64_t switches, aborts;
} att_switch_t;

/* `lanes` are the caller's. `reported_txn`: largest id that any node of the group knows. */
void att_switch_init(att_switch_t *sw, const att_switch_ops_t *ops, void *context,
                     att_segment_memory_t *memory, uint32_t index, const uint32_t *lanes,
                     uint32_t lane_count, uint32_t children, uint32_t reported_txn);
/* An earlier sidecar left `txn` open on a node: decide it and tell everybody. */
void att_switch_recover(att_switch_t *sw, uint32_t txn);
/* Nobody will step it any more: what is still being voted on is aborted now. */
void att_switch_give_up(att_switch_t *sw);
/* May a list be proposed: nothing is going on, and every rank here took over the last outcome. */
bool att_switch_ready(const att_switch_t *sw);
/* Propose the plan at a fence that all ranks should reach only after the vote. Returns 0 when it
 * could not be. */
int att_switch_propose(att_switch_t *sw, const att_plan_t *plan, uint64_t now_ns,
                       uint64_t timeout_ns);
void att_switch_tick(att_switch_t *sw, uint64_t now_ns);

#endif
