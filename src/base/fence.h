/*
 * fence: the words that make all ranks switch at the same call (docs/architecture.md, "the fence").
 *
 * Everything here works on the segment alone: no MPI, no NCCL, no socket, no clock. Hooks use
 * att_lane_* and att_wait_*, the agent att_vote_* and att_home_*.
 *
 * A transaction proposes a schedule for one task. Its outcome is the home word, changed once from
 * OPEN to COMMITTED or ABORTED by compare-and-swap. The hold bit of a lane sends a rank's next
 * calls to the slow path, where it looks at the home word once it reaches the fence.
 *
 * Groups over several nodes: the home word is in the segment of rank 0's node. On every other node
 * task->home is a copy (task->copied), opened when the node prepares and changed once, to what the
 * home's holds: by the node's agent when the leader tells the outcome, or by a rank that asked.
 *
 * Invariants:
 *  - at most one transaction of a task is undecided;
 *  - the agent writes task->schedule only while every lane of the task has absorbed the outcome of
 *    the transaction before (lane->absorbed), so no hook can be reading it;
 *  - hold is set only while the lane's next call number is <= the fence, in one compare-and-swap
 *    with the number, so a rank cannot pass the fence unseen.
 */
#ifndef ATT_BASE_FENCE_H
#define ATT_BASE_FENCE_H

#include "base/segment.h"

typedef enum att_home_state {
    ATT_HOME_NONE = 0,
    ATT_HOME_OPEN = 1,
    ATT_HOME_COMMITTED = 2,
    ATT_HOME_ABORTED = 3
} att_home_state_t;

#define ATT_HOME_WORD(txn, state) (((uint64_t)(txn) << 2) | (uint64_t)(state))
#define ATT_HOME_TXN(word)        ((uint32_t)((word) >> 2))
#define ATT_HOME_STATE(word)      ((att_home_state_t)((word)&3))

/* Lets the calls of a communicator that stand at a fence go, because it is being taken down. */
typedef struct att_lane_gate {
    _Atomic uint32_t released; /* 1: a call that waits ends in doubt, at once */
    _Atomic uint32_t waiting;  /* calls at a fence right now */
} att_lane_gate_t;

/* The hook's private side of a lane: one per (tuner context, task), no sharing. */
typedef struct att_lane {
    att_segment_lane_t *shared;
    att_segment_task_t *task;
    const att_segment_header_t *header;
    const att_segment_memory_t *memory;
    att_segment_process_t *process;
    att_lane_gate_t *gate;   /* of its communicator, NULL none; set after att_lane_init */
    uint32_t current;        /* index of the entry in force in `schedule` */
    uint32_t pending_end;    /* 1 while `schedule` has entries after `current` */
    att_schedule_t schedule; /* copy of the list in force; txn 0 = one keep entry from call 0 */
} att_lane_t;

/* att_decision.trial */
enum {
    ATT_DECISION_INCUMBENT = 0, /* the list's last entry */
    ATT_DECISION_TRIAL = 1,
    ATT_DECISION_IN_DOUBT = 2 /* the call must fail: which setting it has could not be learnt */
};

/* A setting that no rank can apply (src/hook/tuner.c refuses it): the call fails. */
#define ATT_SETTING_NONE ((att_setting_t){.algorithm = INT8_MAX, .protocol = INT8_MAX})

/* What a call gets. */
typedef struct att_decision {
    uint64_t call;
    att_setting_t setting;
    uint32_t txn; /* of the list that gave it */
    uint32_t trial;
} att_decision_t;

/* What a rank that found its hold bit does next. */
typedef enum att_wait_action {
    ATT_WAIT_DONE = 0,    /* lane->schedule and lane->current are right for the call */
    ATT_WAIT_AGAIN = 1,   /* undecided: step again soon */
    ATT_WAIT_ASK = 2,     /* ask the home of wait->txn (base/home.h), then att_wait_answer() */
    ATT_WAIT_IN_DOUBT = 3 /* header->in_doubt_ns is over: the call fails */
} att_wait_action_t;

/* One call at an undecided fence. */
typedef struct att_wait {
    uint64_t call;
    uint64_t begin_ns;
    uint64_t ask_ns; /* not before */
    uint64_t backoff_ns;
    uint64_t seat; /* what this rank wrote into task->seat, 0 = it has not the seat */
    uint32_t txn;
} att_wait_t;

/* Start a private lane on a fresh shared one. */
void att_lane_init(att_lane_t *lane, att_segment_memory_t *memory, uint32_t lane_index,
                   uint32_t process_index);

/* The old word had hold, or the list in force has entries to come. DONE, or AGAIN with *wait begun
 * at now_ns: the call stands at an undecided fence. */
att_wait_action_t att_lane_enter(att_lane_t *lane, uint64_t call, uint64_t now_ns,
                                 att_wait_t *wait);
/* Look at the outcome. After W (header->wait_ns): where the home word is here, OPEN is swapped to
 * ABORTED; elsewhere one rank a task and node is told to ASK, again and again with growing pauses.
 * What the word then holds is obeyed. */
att_wait_action_t att_wait_step(att_lane_t *lane, att_wait_t *wait, uint64_t now_ns);
/* Who asks calls this at least four times a second until it has the answer: `seat` is that of its
 * wait. A seat that is not kept falls free after 0.4 s, and another rank of the node asks. */
void att_seat_keep(att_segment_task_t *task, uint64_t *seat, uint64_t now_ns);
/* The home's answer to ASK: COMMITTED or ABORTED, or NONE when there was none. Step again then. */
void att_wait_answer(att_lane_t *lane, att_wait_t *wait, att_home_state_t state, uint64_t now_ns);

/* Drives the above with the clock, sleep and sockets of this process (base/await.c). False: in
 * doubt, or the gate was released; then the call still counts as waiting until att_lane_leave,
 * after which the lane may go. */
bool att_lane_resolve(att_lane_t *lane, uint64_t call);
void att_lane_leave(att_lane_t *lane);

/*
 * Take the next call number and the setting in force. Hot path: one atomic add, no lock, no system
 * call. With hold set and the fence reached it waits for the outcome, at most header->wait_ns, then
 * has the transaction aborted at home and obeys what the home word then holds.
 */
static inline att_decision_t att_lane_next(att_lane_t *lane)
{
    uint64_t old = atomic_fetch_add_explicit(&lane->shared->word, 2, memory_order_acq_rel);
    uint64_t call = old >> 1;
    if (__builtin_expect((old & 1) | lane->pending_end, 0) && !att_lane_resolve(lane, call))
        return (att_decision_t){
            .call = call, .setting = ATT_SETTING_KEEP, .trial = ATT_DECISION_IN_DOUBT};
    const att_schedule_entry_t *entry = &lane->schedule.entries[lane->current];
    return (att_decision_t){.call = call,
                            .setting = entry->setting,
                            .txn = lane->schedule.txn,
                            .trial = lane->current + 1 < lane->schedule.count};
}

/* The agent's side. All take the segment's task and the indices of its lanes on this node. */

/* Open transaction `txn` (greater than every earlier one): home word becomes (txn, OPEN).
 * -ATT_EBUSY when the word is OPEN for another one. */
int att_home_open(att_segment_task_t *task, uint32_t txn);

/* Try OPEN -> COMMITTED or ABORTED for txn; returns the state the word then holds for txn, NONE
 * when it is at a later one: then every node has recorded the outcome of txn. An id that the word
 * does not know yet is recorded as ABORTED. */
att_home_state_t att_home_decide(att_segment_task_t *task, uint32_t txn, att_home_state_t state);

/* The state of txn: OPEN while the word is at another one. (The home moves on only after every lane
 * has absorbed txn.) */
att_home_state_t att_home_state(const att_segment_task_t *task, uint32_t txn);

/* Why a vote was no. */
typedef enum att_vote {
    ATT_VOTE_YES = 0,
    ATT_VOTE_BUSY = 1,     /* a lane has not absorbed the transaction before */
    ATT_VOTE_PASSED = 2,   /* a rank is beyond the fence already */
    ATT_VOTE_GONE = 3,     /* a member retired or the lane set is incomplete */
    ATT_VOTE_CHANNELS = 4, /* a device has not so many channels left */
    ATT_VOTE_DIFFERS = 5,  /* ranks number their calls differently, or another list was prepared */
    ATT_VOTE_SILENT = 6    /* no answer in time */
} att_vote_t;
const char *att_vote_name(att_vote_t vote);

/* True when every lane has absorbed every decided transaction up to task->prepared. */
bool att_vote_ready(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count,
                    const att_segment_task_t *task);

/* Write the schedule into the task and set hold on every lane; on PASSED some lanes keep hold and
 * resolve to ABORTED by themselves (the coordinator aborts the home word). */
att_vote_t att_vote_prepare(att_segment_memory_t *memory, att_segment_task_t *task,
                            const uint32_t *lanes, uint32_t count, const att_schedule_t *schedule);

/* After the death of an agent: mark the lanes that it prepared but never held as having absorbed
 * what was prepared (a list that not every lane holds was never agreed to). */
void att_vote_mark(att_segment_memory_t *memory, const att_segment_task_t *task,
                   const uint32_t *lanes, uint32_t count);

/* After the death of an agent: decide what it left OPEN (ABORTED) and mark the lanes that it never
 * held. The next transaction's id must be greater than the returned one. Only while no other agent
 * runs. */
uint32_t att_vote_recover(att_segment_memory_t *memory, att_segment_task_t *task,
                          const uint32_t *lanes, uint32_t count);

/* Largest next call number over the lanes. Reads the hooks' lines: to vote, never to poll. */
uint64_t att_vote_horizon(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count);

#endif
