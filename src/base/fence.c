#include "base/fence.h"

#include "base/clock.h"

#include <string.h>

void att_lane_init(att_lane_t *lane, att_segment_memory_t *memory, uint32_t lane_index,
                   uint32_t process_index)
{
    memset(lane, 0, sizeof *lane);
    lane->shared = &memory->lanes[lane_index];
    lane->task = &memory->tasks[lane->shared->task];
    lane->header = &memory->header;
    lane->process = &memory->processes[process_index];
    lane->schedule.count = 1;
    lane->schedule.entries[0].setting = ATT_SETTING_KEEP;
}

/* Wait for the outcome of txn; after W the waiter aborts it itself. Spins briefly (a commit is
 * usually microseconds away), then sleeps in short steps. */
static att_home_state_t await_outcome(att_lane_t *lane, uint32_t txn)
{
    att_home_state_t state = att_home_state(lane->task, txn);
    if (state != ATT_HOME_OPEN)
        return state;
    uint64_t begin = att_clock_ns();
    uint64_t waited = 0;
    for (uint32_t i = 0; state == ATT_HOME_OPEN; i++) {
        if (i < 1000)
            __builtin_ia32_pause();
        else
            att_clock_sleep_ns(20000);
        waited = att_clock_ns() - begin;
        state = waited >= lane->header->wait_ns ? att_home_decide(lane->task, txn, ATT_HOME_ABORTED)
                                                : att_home_state(lane->task, txn);
    }
    atomic_fetch_add(&lane->process->waited, 1);
    uint64_t longest = atomic_load(&lane->process->longest_wait_ns);
    while (waited > longest &&
           !atomic_compare_exchange_weak(&lane->process->longest_wait_ns, &longest, waited))
        continue;
    return state;
}

static void release_hold(att_lane_t *lane, uint32_t txn, uint64_t call)
{
    atomic_store(&lane->shared->switched, call);
    /* Hold first, absorbed second: once absorbed is seen, the agent may write the next schedule and
     * set hold for it, which must not be undone here. */
    atomic_fetch_and_explicit(&lane->shared->word, ~(uint64_t)1, memory_order_acq_rel);
    atomic_store_explicit(&lane->shared->absorbed, txn, memory_order_release);
}

void att_lane_resolve(att_lane_t *lane, uint64_t call)
{
    uint32_t txn = (uint32_t)atomic_load_explicit(&lane->task->prepared, memory_order_acquire);
    uint32_t absorbed = atomic_load_explicit(&lane->shared->absorbed, memory_order_relaxed);
    bool held = atomic_load_explicit(&lane->shared->word, memory_order_acquire) & 1;
    if (held && txn != absorbed) {
        uint64_t fence = lane->task->schedule.entries[0].first_call;
        if (call >= fence) {
            if (await_outcome(lane, txn) == ATT_HOME_COMMITTED) {
                lane->schedule = lane->task->schedule;
                lane->current = 0;
            }
            release_hold(lane, txn, call);
        } else if (att_home_state(lane->task, txn) == ATT_HOME_ABORTED) {
            release_hold(lane, txn, call);
        }
    }
    while (lane->current + 1 < lane->schedule.count &&
           lane->schedule.entries[lane->current + 1].first_call <= call)
        lane->current++;
    lane->pending_end = lane->current + 1 < lane->schedule.count;
}

int att_home_open(att_segment_task_t *task, uint32_t txn)
{
    uint64_t word = atomic_load(&task->home);
    if (ATT_HOME_STATE(word) == ATT_HOME_OPEN || ATT_HOME_TXN(word) >= txn)
        return -ATT_EBUSY;
    return atomic_compare_exchange_strong(&task->home, &word, ATT_HOME_WORD(txn, ATT_HOME_OPEN))
               ? ATT_OK
               : -ATT_EBUSY;
}

att_home_state_t att_home_decide(att_segment_task_t *task, uint32_t txn, att_home_state_t state)
{
    uint64_t word = ATT_HOME_WORD(txn, ATT_HOME_OPEN);
    if (atomic_compare_exchange_strong(&task->home, &word, ATT_HOME_WORD(txn, state)))
        return state;
    if (ATT_HOME_TXN(word) == txn)
        return ATT_HOME_STATE(word);
    /* An id that the home does not know is recorded as aborted. */
    while (ATT_HOME_TXN(word) < txn)
        if (atomic_compare_exchange_weak(&task->home, &word, ATT_HOME_WORD(txn, ATT_HOME_ABORTED)))
            return ATT_HOME_ABORTED;
    return ATT_HOME_TXN(word) == txn ? ATT_HOME_STATE(word) : ATT_HOME_ABORTED;
}

att_home_state_t att_home_state(const att_segment_task_t *task, uint32_t txn)
{
    uint64_t word = atomic_load_explicit(&task->home, memory_order_acquire);
    return ATT_HOME_TXN(word) == txn ? ATT_HOME_STATE(word) : ATT_HOME_OPEN;
}

bool att_vote_ready(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count,
                    const att_segment_task_t *task)
{
    uint32_t prepared = (uint32_t)atomic_load(&task->prepared);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&memory->lanes[lanes[i]].absorbed, memory_order_acquire) !=
            prepared)
            return false;
    return true;
}

att_vote_t att_vote_prepare(att_segment_memory_t *memory, att_segment_task_t *task,
                            const uint32_t *lanes, uint32_t count, const att_schedule_t *schedule)
{
    if (!att_vote_ready(memory, lanes, count, task))
        return ATT_VOTE_BUSY;
    task->schedule = *schedule;
    atomic_store_explicit(&task->prepared, schedule->txn, memory_order_release);
    uint64_t fence = schedule->entries[0].first_call;
    att_vote_t vote = ATT_VOTE_YES;
    for (uint32_t i = 0; i < count; i++) {
        att_segment_lane_t *lane = &memory->lanes[lanes[i]];
        uint64_t word = atomic_load_explicit(&lane->word, memory_order_relaxed);
        bool set = false;
        while (vote == ATT_VOTE_YES && !set && (word >> 1) <= fence)
            set = atomic_compare_exchange_weak_explicit(&lane->word, &word, word | 1,
                                                        memory_order_acq_rel, memory_order_relaxed);
        if (!set) {
            vote = ATT_VOTE_PASSED;
            /* Never held, so its hook will not look: it has nothing to absorb but the abort. */
            atomic_store_explicit(&lane->absorbed, schedule->txn, memory_order_release);
        }
    }
    return vote;
}

uint32_t att_vote_recover(att_segment_memory_t *memory, att_segment_task_t *task,
                          const uint32_t *lanes, uint32_t count)
{
    uint32_t prepared = (uint32_t)atomic_load(&task->prepared);
    uint32_t opened = ATT_HOME_TXN(atomic_load(&task->home));
    uint32_t last = opened > prepared ? opened : prepared;
    if (last == 0)
        return 0;
    att_home_decide(task, last, ATT_HOME_ABORTED);
    for (uint32_t i = 0; i < count; i++) {
        att_segment_lane_t *lane = &memory->lanes[lanes[i]];
        /* Without hold its hook does not look at the task: it is ours to mark. */
        if ((atomic_load_explicit(&lane->word, memory_order_acquire) & 1) == 0)
            atomic_store_explicit(&lane->absorbed, prepared, memory_order_release);
    }
    return last;
}

uint64_t att_vote_horizon(att_segment_memory_t *memory, const uint32_t *lanes, uint32_t count)
{
    uint64_t horizon = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t next = atomic_load(&memory->lanes[lanes[i]].word) >> 1;
        if (next > horizon)
            horizon = next;
    }
    return horizon;
}
