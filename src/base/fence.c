#include "base/fence.h"

#include <string.h>

#define SEAT_NS          400000000u /* who asks keeps it several times meanwhile */
#define BACKOFF_FIRST_NS 10000000u
#define BACKOFF_MOST_NS  1000000000u

void att_lane_init(att_lane_t *lane, att_segment_memory_t *memory, uint32_t lane_index,
                   uint32_t process_index)
{
    memset(lane, 0, sizeof *lane);
    lane->shared = &memory->lanes[lane_index];
    lane->task = &memory->tasks[lane->shared->task % ATT_TASKS]; /* never outside */
    lane->header = &memory->header;
    lane->memory = memory;
    lane->process = &memory->processes[process_index];
    lane->schedule.count = 1;
    lane->schedule.entries[0].setting = ATT_SETTING_KEEP;
}

static void release_hold(att_lane_t *lane, uint32_t txn, uint64_t call)
{
    atomic_store(&lane->shared->switched, call);
    /* Hold first, absorbed second: once absorbed is seen, the agent may write the next schedule and
     * set hold for it, which must not be undone here. */
    atomic_fetch_and_explicit(&lane->shared->word, ~(uint64_t)1, memory_order_acq_rel);
    atomic_store_explicit(&lane->shared->absorbed, txn, memory_order_release);
}

/* The list in force at `call`. */
static void advance(att_lane_t *lane, uint64_t call)
{
    while (lane->current + 1 < lane->schedule.count &&
           lane->schedule.entries[lane->current + 1].first_call <= call)
        lane->current++;
    lane->pending_end = lane->current + 1 < lane->schedule.count;
}

static void take_over(att_lane_t *lane, uint32_t txn, att_home_state_t state, uint64_t call)
{
    if (state == ATT_HOME_COMMITTED) {
        lane->schedule = lane->task->schedule;
        lane->current = 0;
        /* What was agreed is not to be read any more: its calls must fail, not guess. */
        if (lane->schedule.count == 0 || lane->schedule.count > ATT_SCHEDULE) {
            lane->schedule.count = 1;
            lane->schedule.entries[0].setting = ATT_SETTING_NONE;
        }
    }
    release_hold(lane, txn, call);
    advance(lane, call);
}

att_wait_action_t att_lane_enter(att_lane_t *lane, uint64_t call, uint64_t now_ns, att_wait_t *wait)
{
    uint32_t txn = (uint32_t)atomic_load_explicit(&lane->task->prepared, memory_order_acquire);
    uint32_t absorbed = atomic_load_explicit(&lane->shared->absorbed, memory_order_relaxed);
    bool held = atomic_load_explicit(&lane->shared->word, memory_order_acquire) & 1;
    if (!held || txn == absorbed) {
        advance(lane, call);
        return ATT_WAIT_DONE;
    }
    att_home_state_t state = att_home_state(lane->task, txn);
    if (call < lane->task->schedule.entries[0].first_call) {
        if (state == ATT_HOME_ABORTED)
            release_hold(lane, txn, call);
        advance(lane, call);
        return ATT_WAIT_DONE;
    }
    if (state != ATT_HOME_OPEN) {
        take_over(lane, txn, state, call);
        return ATT_WAIT_DONE;
    }
    *wait = (att_wait_t){.call = call, .begin_ns = now_ns, .txn = txn};
    return ATT_WAIT_AGAIN;
}

static void note_wait(att_lane_t *lane, uint64_t waited)
{
    atomic_fetch_add(&lane->process->waited, 1);
    uint64_t longest = atomic_load(&lane->process->longest_wait_ns);
    while (waited > longest &&
           !atomic_compare_exchange_weak(&lane->process->longest_wait_ns, &longest, waited))
        continue;
}

/* One rank a task and node asks at a time; a seat whose holder died or stopped soon falls free by
 * itself. */
static bool take_seat(att_lane_t *lane, att_wait_t *wait, uint64_t now_ns)
{
    uint64_t until = atomic_load(&lane->task->seat);
    uint64_t mine = now_ns + SEAT_NS;
    if (until > now_ns || !atomic_compare_exchange_strong(&lane->task->seat, &until, mine))
        return false;
    wait->seat = mine;
    return true;
}

att_wait_action_t att_wait_step(att_lane_t *lane, att_wait_t *wait, uint64_t now_ns)
{
    uint64_t waited = now_ns > wait->begin_ns ? now_ns - wait->begin_ns : 0;
    att_home_state_t state = att_home_state(lane->task, wait->txn);
    bool copied = atomic_load_explicit(&lane->task->copied, memory_order_relaxed) != 0;
    if (state == ATT_HOME_OPEN && waited >= lane->header->wait_ns && !copied)
        state = att_home_decide(lane->task, wait->txn, ATT_HOME_ABORTED);
    if (state == ATT_HOME_COMMITTED || state == ATT_HOME_ABORTED) {
        note_wait(lane, waited);
        take_over(lane, wait->txn, state, wait->call);
        return ATT_WAIT_DONE;
    }
    if (waited >= lane->header->in_doubt_ns && waited >= lane->header->wait_ns) {
        note_wait(lane, waited);
        atomic_fetch_add(&lane->process->in_doubt, 1);
        return ATT_WAIT_IN_DOUBT;
    }
    if (waited < lane->header->wait_ns || now_ns < wait->ask_ns || !copied ||
        !take_seat(lane, wait, now_ns))
        return ATT_WAIT_AGAIN;
    return ATT_WAIT_ASK;
}

void att_seat_keep(att_segment_task_t *task, uint64_t *seat, uint64_t now_ns)
{
    uint64_t mine = *seat;
    if (mine != 0 && atomic_compare_exchange_strong(&task->seat, &mine, now_ns + SEAT_NS))
        *seat = now_ns + SEAT_NS;
}

void att_wait_answer(att_lane_t *lane, att_wait_t *wait, att_home_state_t state, uint64_t now_ns)
{
    if (state == ATT_HOME_COMMITTED || state == ATT_HOME_ABORTED)
        att_home_decide(lane->task, wait->txn, state);
    wait->backoff_ns = wait->backoff_ns == 0                ? BACKOFF_FIRST_NS
                       : wait->backoff_ns < BACKOFF_MOST_NS ? wait->backoff_ns * 2
                                                            : BACKOFF_MOST_NS;
    wait->ask_ns = now_ns + wait->backoff_ns;
    uint64_t mine = wait->seat;
    atomic_compare_exchange_strong(&lane->task->seat, &mine, 0);
    wait->seat = 0;
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
    return ATT_HOME_TXN(word) == txn ? ATT_HOME_STATE(word) : ATT_HOME_NONE;
}

att_home_state_t att_home_state(const att_segment_task_t *task, uint32_t txn)
{
    uint64_t word = atomic_load_explicit(&task->home, memory_order_acquire);
    return ATT_HOME_TXN(word) == txn ? ATT_HOME_STATE(word) : ATT_HOME_OPEN;
}

const char *att_vote_name(att_vote_t vote)
{
    static const char *const names[] = {
        "yes",         "not ready", "fence passed",     "ranks left",
        "no channels", "disagree",  "no answer in time"};
    return (unsigned)vote <= ATT_VOTE_SILENT ? names[vote] : "unknown";
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

void att_vote_mark(att_segment_memory_t *memory, const att_segment_task_t *task,
                   const uint32_t *lanes, uint32_t count)
{
    uint32_t prepared = (uint32_t)atomic_load(&task->prepared);
    for (uint32_t i = 0; i < count; i++) {
        att_segment_lane_t *lane = &memory->lanes[lanes[i]];
        /* Without hold its hook does not look at the task: it is ours to mark. */
        if ((atomic_load_explicit(&lane->word, memory_order_acquire) & 1) == 0)
            atomic_store_explicit(&lane->absorbed, prepared, memory_order_release);
    }
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
    att_vote_mark(memory, task, lanes, count);
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
