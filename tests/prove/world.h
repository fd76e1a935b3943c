/*
 * world: the simulated job and its sidecar: four nodes, eight ranks, two overlapping groups, the
 * oracle that compares all ranks, and the faults of a schedule.
 *
 * The world owns the nodes' segments. Everything in them is changed by the real code only.
 */
#ifndef ATT_PROVE_WORLD_H
#define ATT_PROVE_WORLD_H

#include "actor.h"

#include "base/fence.h"
#include "base/home.h"
#include "base/step.h"
#include "control/coordinator.h"
#include "control/voter.h"

#define NODES     4
#define RANKS     8
#define GROUPS    2
#define CALLS     4096         /* most calls of a task in a schedule */
#define PROPOSALS 64           /* most transactions of a task */
#define WAIT_NS   1000000000u  /* W */
#define DOUBT_NS  20000000000u /* in-doubt limit */
/* W, plus what the simulation adds to it: two polls that oversleep, two requests and two replies,
 * slow operations. */
#define BOUND_NS    (WAIT_NS + 500000000u)
#define NET_MOST_NS 20000000u /* longest delay of a request or reply of the home */

/* Processes: ranks 0..7, agents of the first sidecar 8..11, of the second 12..15. */
#define FIRST_AGENT RANKS
#define SUPERVISOR  (RANKS + 2 * NODES)

/* A communicator and its one task. */
typedef struct sim_group {
    uint32_t size;
    uint32_t rank_of[RANKS]; /* world rank -> its rank here, ATT_NONE: no member */
    uint32_t home_rank;      /* world rank that is rank 0 */
    uint32_t home_node;
    uint32_t nodes[NODES]; /* that hold ranks, home first: positions in the tree */
    uint32_t node_count;
    uint32_t parent[NODES]; /* by position */
    uint32_t group[NODES];  /* indices in each node's segment */
    uint32_t task[NODES];
    uint32_t lanes[NODES][RANKS], lane_count[NODES];
    uint32_t lane_of[RANKS]; /* by world rank */
    uint8_t key[16];
} sim_group_t;

/* What happened to a step, for the table of hits. */
typedef enum sim_event {
    SIM_TAKEN = 0,   /* a process came there */
    SIM_KILLED = 1,  /* it died there */
    SIM_STOPPED = 2, /* it was stopped there for a while */
    SIM_PEER = 3,    /* another process died at that moment */
    SIM_EVENTS = 4
} sim_event_t;

typedef struct sim_world {
    att_segment_memory_t *memory[NODES];
    uint32_t node_of[RANKS];
    sim_group_t groups[GROUPS];
    uint64_t seed;
    bool trace;
    bool failed;
    char failure[256];
    uint32_t generation; /* of the sidecar: 0, 1 */
    uint64_t restart_ns; /* when the second starts; SIM_NEVER */
    bool finished;       /* no more switches: ranks run to `last_call` and end */
    uint64_t last_call;
    uint64_t progress[RANKS]; /* iterations done */
    bool ended[RANKS];
    uint32_t window;      /* calls by which a rank may be ahead of the slowest */
    uint32_t quiet_calls; /* since an agent took a step */
    uint32_t fences;      /* transactions opened */
    uint32_t kills, stops;
} sim_world_t;
extern sim_world_t world;

/* Counted over all schedules. */
typedef struct sim_totals {
    uint64_t hits[ATT_STEP_COUNT][SIM_EVENTS];
    uint64_t fences, commits, calls, messages, resolves, waits, in_doubt;
    uint64_t schedules, crashed, restarts;
    uint64_t fewest_fences;
    uint64_t longest_wait_ns; /* undisturbed, with the home reachable */
} sim_totals_t;
extern sim_totals_t totals;

/* A fresh world of this seed, with its faults drawn; actors are not yet there. */
void sim_world_build(uint64_t seed, bool trace);
/* All ranks ended, or died; settings are what the committed lists say. */
void sim_world_verify(void);
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The group of a task of a node's segment. */
uint32_t sim_group_of(uint32_t node, uint32_t task);

/* The oracle. */
void sim_proposed(uint32_t group, const att_schedule_t *schedule);
void sim_launched(uint32_t group, uint32_t rank, const att_decision_t *decision);
void sim_wait_begin(uint32_t rank, uint32_t group);
void sim_wait_end(uint32_t rank, bool in_doubt);
/* A wait that is going on there is not held against the bound. */
void sim_disturb(uint32_t process);
/* A request of a rank is lost: the home is out of reach from its node until the asker gives up. */
void sim_cut_off(uint32_t process, uint64_t until_ns);
uint64_t sim_list_end(uint32_t group); /* first call after all committed trials */

/* The faults. sim_step_reached is what the simulated files call for att_step_reached. */
void sim_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call);
/* The faults that did not find their step yet happen now. */
void sim_late_faults(void);

/* agent_process.c: the sidecar's process on a node; its agents. */
void sim_agents_start(uint32_t generation);
bool sim_agents_done(void);
/* rank_process.c: the ranks, and the helper threads of those that are rank 0. */
void sim_ranks_start(void);
void sim_rank_moved(void); /* ranks that are too far ahead may look again */
/* Ask the home of a group on behalf of the running actor, as base/resolver.h does: blocks.
 * `task` and `seat`: of the rank that asks, NULL for an agent. */
att_home_state_t sim_ask(const att_home_request_t *request, uint32_t node, att_segment_task_t *task,
                         uint64_t *seat);
att_home_state_t sim_resolver_ask(const att_segment_memory_t *memory, att_segment_task_t *task,
                                  uint32_t txn, uint64_t *seat, const struct att_lane_gate *gate);

#endif
