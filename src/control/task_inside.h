/*
 * task inside: what the files of a task share: task.c (samples, plans, life) and task_start.c (from
 * what the ranks report to a search). Nobody else includes it.
 */
#ifndef ATT_CONTROL_TASK_INSIDE_H
#define ATT_CONTROL_TASK_INSIDE_H

#include "control/identity.h"
#include "control/pulse.h"
#include "control/source.h"
#include "control/task.h"
#include "profile/recent.h"

struct att_task {
    att_task_shared_t *shared;
    uint32_t index;
    const att_segment_group_t *group; /* `identity`: the segment's own may be damaged later */
    att_segment_group_t identity;
    att_segment_task_t *task;
    att_task_state_t state;
    char reason[200];

    /* records -> samples */
    struct att_aggregate *aggregate; /* NULL: refused or ended */
    att_aggregate_fates_t fates;     /* then: what it came to */
    uint64_t lost;
    uint64_t *last_call; /* per rank, call + 1 of the latest timed record */
    uint64_t samples_seen, calls_seen, disturbed;
    uint64_t unused; /* records of ranks that the group does not have */
    att_source_t source;
    att_recent_t recent;
    uint64_t stepped_ns; /* time of the last round */
    att_pulse_t pulse;
    uint32_t unstamped;   /* ATT_UNSTAMPED_* of its processes */
    uint64_t least_calls; /* of this node's lanes, when the pulse was felt */
    int native_known;

    /* plans -> switches */
    uint32_t *lanes; /* one a rank of this node */
    uint32_t lane_count;
    const att_task_reach_t *reach;    /* NULL: all ranks are on this node */
    uint64_t child_low[ATT_TREE_FAN]; /* like last_call, of the nodes below a child */
    struct att_space_owned *space;
    struct att_optimizer *optimizer;
    att_switch_t sw;
    att_plan_t plan;
    int plan_waiting;       /* made, waits for the turn */
    int plan_out;           /* proposed or playing */
    bool noted;             /* the latest list, and not that it is over */
    uint64_t list_since_ns; /* last progress of the list in force */
    uint64_t low;           /* calls below it have run on every rank */
    int holds_turn;
    int quiet; /* it holds the turn to gather its baseline */
    uint16_t channels_on_trial;
    uint64_t channels_checked_ns;
    bool pinned;   /* by the user */
    int withdrawn; /* its channels were too many: NCCL's choice for good */
    att_phase_t phase_seen;

    /* control/kind.h */
    struct att_task *next;                    /* of the agent's */
    struct att_task *awaited;                 /* of the same kind, being searched; NULL: none */
    uint64_t awaited_since_ns, awaited_calls; /* `calls_seen` then */
};

extern const att_switch_ops_t att_task_switch_ops;

/* "AllReduce 4M of group 0x..." for messages. */
const char *att_task_label(const struct att_task *task, char text[64]);
/* Rank of a lane of this node. */
uint32_t att_task_rank(const struct att_task *task, uint32_t lane);
att_identity_t att_task_identity(const struct att_task *task);
/* Calls below it have run on every rank, those of other nodes too. */
uint64_t att_task_watermark(const struct att_task *task);
/* What all ranks report, when all have a lane: 1. */
int att_task_facts(struct att_task *task, att_reported_t *reported);
/* Build the space and begin the search, or refuse. */
void att_task_start(struct att_task *task);

/* No call will be timed any more: tuning ends, with the reason; what has settled stays. */
void att_task_give_up_stamps(struct att_task *t);

#endif
