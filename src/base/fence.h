/*
 * fence: the words that make all ranks switch at the same call (docs/architecture.md, "the fence").
 *
 * Everything here works on the segment alone: no MPI, no NCCL. Hooks use att_lane_*, the agent
 * att_vote_* and att_home_*.
 *
 * A transaction proposes a schedule for one task. Its outcome is the home word, changed once from
 * OPEN to COMMITTED or ABORTED by compare-and-swap. The hold bit of a lane sends a rank's next
 * calls to the slow path, where it looks at the home word once it reaches the fence.
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

/* The hook's private side of a lane: one per (tuner context, task), no sharing. */
typedef struct att_lane {
    att_segment_lane_t *shared;
    att_segment_task_t *task;
    const att_segment_header_t *header;
    att_segment_process_t *process;
    uint32_t current;        /* index of the entry in force in `schedule` */
    uint32_t pending_end;    /* 1 while `schedule` has entries after `current` */
    att_schedule_t schedule; /* copy of the list in force; txn 0 = one keep entry from call 0 */
} att_lane_t;

/* What a call gets. */
typedef struct att_decision {
    uint64_t call;
    att_setting_t setting;
    uint32_t txn;   /* of the list that gave it */
    uint32_t trial; /* 1 unless the setting is the list's last entry (the incumbent) */
} att_decision_t;

/* Start a private lane on a fresh shared one. */
void att_lane_init(att_lane_t *lane, att_segment_memory_t *memory, uint32_t lane_index,
                   uint32_t process_index);

/* Slow path: the old word had hold, or the list in force has entries to come. */
void att_lane_resolve(att_lane_t *lane, uint64_t call);

/*
 * Take the next call number and the setting in force. Hot path: one atomic add, no lock, no system
 * call. With hold set and the fence reached it waits for the outcome, at most header->wait_ns, then
 * aborts the transaction itself and goes on.
 */
static inline att_decision_t att_lane_next(att_lane_t *lane)
{
    uint64_t old = atomic_fetch_add_explicit(&lane->shared->word, 2, memory_order_acq_rel);
    uint64_t call = old >> 1;
    if (__builtin_expect((old & 1) | lane->pending_end, 0))
        att_lane_resolve(lane, call);
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

/* Try OPEN -> COMMITTED or ABORTED for txn; returns the state the word then holds for txn. */
att_home_state_t att_home_decide(att_segment_task_t *task, uint32_t txn, att_home_state_t state);

/* The state of txn: NONE when the word is still at an earlier one, COMMITTED/ABORTED/OPEN when it
 * is at txn. (The home moves on only after every lane has absorbed txn.) */
att_home_state_t att_home_state(const att_segment_task_t *task, uint32_t txn);

/* Why a vote was no. */
typedef enum att_vote {
    ATT_VOTE_YES = 0,
    ATT_VOTE_BUSY = 1,   /* a lane has not absorbed the transaction before */
    ATT_VOTE_PASSED = 2, /* a rank is beyond the fence already */
    ATT_VOTE_GONE = 3    /* a member retired or the lane set is incomplete */
} att_vote_t;

/* True when every lane has absorbed every decided transaction up to task->prepared. */
bool att_vote_ready(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count,
                    const att_segment_task_t *task);

/* Write the schedule into the task and set hold on every lane; on PASSED some lanes keep hold and
 * resolve to ABORTED by themselves (the coordinator aborts the home word). */
att_vote_t att_vote_prepare(att_segment_memory_t *memory, att_segment_task_t *task,
                            const uint32_t *lanes, uint32_t count, const att_schedule_t *schedule);

/* After the death of an agent: decide what it left OPEN (ABORTED) and mark the lanes that it never
 * held. The next transaction's id must be greater than the returned one. Only while no other agent
 * runs. */
uint32_t att_vote_recover(att_segment_memory_t *memory, att_segment_task_t *task,
                          const uint32_t *lanes, uint32_t count);

/* Largest next call number over the lanes. Reads the hooks' lines: to vote, never to poll. */
uint64_t att_vote_horizon(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count);

#endif
