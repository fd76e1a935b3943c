/*
 * coordinator: one switch of one task as a two-phase transaction with a home word.
 *
 * Free of MPI, NCCL and clocks: driven by votes and ticks, it acts through an ops table. The leader
 * owns one coordinator a task; participants are numbered 0..n-1, each asked once and voting once a
 * transaction. The sidecar gives it one participant: the voter of the leader's node, which speaks
 * for the whole tree of the group's agents (control/protocol.h).
 *
 *     IDLE --begin--> VOTING --all yes--> home word OPEN -> COMMITTED --\
 *                        \----one no, or time is up--> ABORTED -----------> TELLING
 *     TELLING --every participant has recorded the outcome--> IDLE
 *
 * The next transaction begins only in IDLE, so the home keeps an outcome until every node has it.
 */
#ifndef ATT_CONTROL_COORDINATOR_H
#define ATT_CONTROL_COORDINATOR_H

#include "control/protocol.h"

#define ATT_PARTICIPANTS 64

typedef struct att_coordinator_ops {
    /* Open and decide the home word (see fence.h). */
    int (*open)(void *context, uint32_t txn);
    att_home_state_t (*decide)(void *context, uint32_t txn, att_home_state_t state);
    /* Ask a participant to prepare; its vote comes by att_coordinator_vote, maybe before this
     * returns. */
    void (*prepare)(void *context, uint32_t participant, const att_schedule_t *schedule);
    /* The transaction is decided; nobody is told yet. `ballot` has the first no and the largest
     * horizon; its vote is SILENT on time-out. */
    void (*done)(void *context, const att_schedule_t *schedule, att_home_state_t state,
                 const att_ballot_t *ballot);
    /* Tell a participant; it answers by att_coordinator_recorded, maybe before this returns. */
    void (*outcome)(void *context, uint32_t participant, uint32_t txn, att_home_state_t state);
    /* A step was reached (log, fault injection); `step` is an att_step_t. */
    void (*step)(void *context, int step, const att_schedule_t *schedule);
} att_coordinator_ops_t;

typedef struct att_coordinator {
    const att_coordinator_ops_t *ops;
    void *context;
    uint32_t participants;
    uint32_t txn;     /* last id used */
    int voting;       /* 1 between begin and the outcome */
    int deciding;     /* 1 while the outcome is being written */
    uint64_t waiting; /* bit per participant that has not voted, later: not recorded */
    uint64_t telling;
    att_ballot_t ballot;
    uint64_t deadline_ns;
    att_schedule_t schedule;
} att_coordinator_t;

void att_coordinator_init(att_coordinator_t *c, const att_coordinator_ops_t *ops, void *context,
                          uint32_t participants, uint32_t last_txn);
/* Propose entries[0..count); returns the id, or 0 when a transaction is still going on (or not
 * recorded everywhere) or the home word cannot be opened. */
uint32_t att_coordinator_begin(att_coordinator_t *c, const att_schedule_entry_t *entries,
                               uint32_t count, uint64_t now_ns, uint64_t timeout_ns);
/* Votes of other transactions, repeated votes and strangers' votes are ignored. */
void att_coordinator_vote(att_coordinator_t *c, uint32_t participant, const att_ballot_t *ballot);
/* The latest id, of a coordinator before this one, is decided and being told: nothing begins before
 * every participant has recorded it. */
void att_coordinator_tell(att_coordinator_t *c, uint32_t txn);
void att_coordinator_recorded(att_coordinator_t *c, uint32_t participant, uint32_t txn);
void att_coordinator_tick(att_coordinator_t *c, uint64_t now_ns);
/* True from begin until every participant has recorded the outcome. */
static inline bool att_coordinator_busy(const att_coordinator_t *c)
{
    return c->voting || c->telling != 0;
}

#endif
