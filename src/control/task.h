/*
 * task: the leader's side of one tuned task: facts -> space -> optimizer, records -> samples,
 * plans -> switches.
 *
 * Life: NEW (lanes of some ranks are missing) -> NATIVE (NCCL's own choice is being observed) ->
 * TUNING -> SETTLED, or REFUSED / OBSERVED / ENDED with a reason.
 */
#ifndef ATT_CONTROL_TASK_H
#define ATT_CONTROL_TASK_H

#include "control/facts.h"
#include "control/node.h"
#include "control/node_turn.h"
#include "control/switch.h"
#include "profile/aggregate.h"
#include "search/optimizer.h"
#include "search/space.h"

typedef enum att_task_state {
    ATT_TASK_NEW = 0,
    ATT_TASK_NATIVE = 1,
    ATT_TASK_TUNING = 2,
    ATT_TASK_OBSERVED = 3, /* --observe, or a group over several nodes: timed, never switched */
    ATT_TASK_REFUSED = 4,  /* cannot be tuned: reason */
    ATT_TASK_ENDED = 5     /* its communicator is gone */
} att_task_state_t;
const char *att_task_state_name(att_task_state_t state);

struct att_task;

/* What all tasks of an agent share. */
typedef struct att_task_shared {
    struct att_node *node;
    struct att_strategy_host *host;
    const struct att_config *config;
    const struct att_notes *notes;           /* for the run folder; may be NULL */
    struct att_counting *counting;           /* may be NULL */
    const struct att_applied *applied;       /* --apply; may be NULL */
    const struct att_quarantine *quarantine; /* --quarantine; may be NULL */
    att_node_turn_t turn;                    /* who may have lists in force on this node */
    uint64_t started_ns;
    double lost_us;         /* over all tasks */
    double timing_us;       /* what timing their calls has cost a rank, as config says */
    struct att_task *tasks; /* control/kind.h */
} att_task_shared_t;

/* How the leader of a group over several nodes reaches the others. */
typedef struct att_task_reach {
    const att_place_t *place; /* of this agent: the root of the group's tree */
    void *context;
    /* What all of its ranks report about a task: 1, or 0: not all have a lane. */
    int (*reported)(void *context, const att_segment_task_t *task, att_reported_t *reported);
    void (*prepare)(void *context, const att_segment_task_t *task, uint32_t child,
                    const att_schedule_t *schedule);
    void (*outcome)(void *context, const att_segment_task_t *task, uint32_t child, uint32_t txn,
                    att_home_state_t state);
    int (*may)(void *context,
               uint64_t now_ns);             /* 1: the group has the turn; else it is asked for */
    void (*list)(void *context, int change); /* +1 a list begins, -1 it has ended */
} att_task_reach_t;

/* reach: NULL for a group inside the node; else it must outlive the task. */
int att_task_create(att_task_shared_t *shared, uint32_t index, const att_task_reach_t *reach,
                    struct att_task **task);
void att_task_destroy(struct att_task *task); /* NULL is fine */

/* Stop tuning for good. The job keeps the incumbent in force. */
void att_task_refuse(struct att_task *task, att_task_state_t state, const char *reason);
/* One record of a rank of this node. */
void att_task_record(struct att_task *task, const att_record_t *record);
/* A call as the nodes below child 0.. of the group's tree have reduced it. */
void att_task_part(struct att_task *task, uint32_t child, const att_part_t *part);
/* For votes and records of children; NULL while nothing is switched. */
att_switch_t *att_task_switch(struct att_task *task);
/* Advance: build the space, plan, propose. Returns 1 when something was done. */
int att_task_step(struct att_task *task, uint64_t now_ns);
/* `attune pin`: no new list, what is in force stays; false: go on. */
void att_task_pin(struct att_task *task, bool pinned);
/* To be called now and then, after the records were taken. A list that was in force when the
 * communicator went is noted as over when it went in order: every rank of this node has left by
 * itself, and every call has run on every rank. */
void att_task_note_end(struct att_task *task);
/* True while kernel stamps are of use. */
int att_task_wants_timing(const struct att_task *task);
/* How long stamps have to be on in a row for a sample that begins in there, or 0: each call that is
 * timed is one. */
uint64_t att_task_sample_ns(const struct att_task *task);
/* Largest channel count in force or on trial. */
uint32_t att_task_channels(const struct att_task *task);

/* For reports. */
typedef struct att_task_report {
    uint64_t hash;
    uint32_t ranks, nodes, collective, legal_pairs;
    uint64_t bytes;
    att_task_state_t state;
    att_optimizer_status_t status; /* phase, medians, counts */
    att_setting_t native, tuned;
    uint64_t samples_seen, calls_seen, lost, switches, aborts, disturbed;
    att_reduction_t reduction;
    double lost_us;
    double now_us, now_age_s; /* median of the last samples, 0 = none; age of the last one */
    uint32_t late_rank;       /* ATT_NONE: nobody (profile/recent.h) */
    double late_us, late_share;
    const char *reason;
    bool pinned;
    bool step_objective;
    bool disagrees; /* att_task_disagrees */
    bool observed;  /* timed and not tuned: all calls are NCCL's choice, which nothing is beside */
} att_task_report_t;
/* Median of the tuned setting, of NCCL's choice while that is kept; 0: there is none. */
double att_task_tuned_us(const att_task_report_t *report);
/* It has settled on a winner that is faster in one measure and slower in the other. */
bool att_task_disagrees(const att_optimizer_status_t *status);
void att_task_report(const struct att_task *task, att_task_report_t *report);
/* Adds what became of the records that it was given (incomplete, waiting). */
void att_task_coverage(const struct att_task *task, att_coverage_t *coverage);

#endif
