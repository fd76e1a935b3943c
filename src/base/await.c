/* A rank at an undecided fence, driven by this process's clock and sleep. */
#include "base/clock.h"
#include "base/fence.h"
#include "base/home.h"
#include "base/resolver.h"
#include "base/step.h"

#define SPINS    1000     /* a commit is usually microseconds away */
#define SHORT_NS 20000u   /* sleep while the sidecar is expected to decide */
#define LONG_NS  1000000u /* and beyond W */

static void pause_a_little(const att_lane_t *lane, const att_wait_t *wait, uint32_t round,
                           uint64_t now_ns)
{
    if (round < SPINS)
        att_clock_pause();
    else
        att_clock_sleep_ns(now_ns - wait->begin_ns < lane->header->wait_ns ? SHORT_NS : LONG_NS);
}

static void reached(const att_lane_t *lane, att_step_t step, uint32_t txn, uint64_t call)
{
    att_step_reached(step, lane->shared->task, txn, call);
}

static bool released(const att_lane_t *lane)
{
    return lane->gate != NULL &&
           atomic_load_explicit(&lane->gate->released, memory_order_relaxed) != 0;
}

static bool resolve(att_lane_t *lane, uint64_t call)
{
    att_wait_t wait;
    uint32_t before = atomic_load_explicit(&lane->shared->absorbed, memory_order_relaxed);
    bool held = atomic_load_explicit(&lane->shared->word, memory_order_relaxed) & 1;
    uint64_t now_ns = held ? att_clock_ns() : 0; /* not held: it will not wait */
    if (held)
        reached(lane, ATT_STEP_HELD, 0, call);
    att_wait_action_t action = att_lane_enter(lane, call, now_ns, &wait);
    if (action == ATT_WAIT_AGAIN)
        reached(lane, ATT_STEP_WAITING, wait.txn, call);
    bool late = false;
    for (uint32_t round = 0; action != ATT_WAIT_DONE; round++) {
        if (!late && now_ns - wait.begin_ns >= lane->header->wait_ns) {
            late = true;
            reached(lane, ATT_STEP_RESOLVING, wait.txn, call);
        }
        action = att_wait_step(lane, &wait, now_ns);
        if (action == ATT_WAIT_IN_DOUBT || (action != ATT_WAIT_DONE && released(lane)))
            return false;
        if (action == ATT_WAIT_ASK) {
            att_home_state_t state =
                att_resolver_ask(lane->memory, lane->task, wait.txn, &wait.seat, lane->gate);
            att_wait_answer(lane, &wait, state, att_clock_ns());
        } else if (action == ATT_WAIT_AGAIN) {
            pause_a_little(lane, &wait, round, now_ns);
        }
        now_ns = att_clock_ns();
    }
    uint32_t after = atomic_load_explicit(&lane->shared->absorbed, memory_order_relaxed);
    if (after != before)
        reached(lane, ATT_STEP_ABSORBED, after, call);
    return true;
}

bool att_lane_resolve(att_lane_t *lane, uint64_t call)
{
    if (lane->gate == NULL)
        return resolve(lane, call);
    atomic_fetch_add(&lane->gate->waiting, 1);
    bool known = resolve(lane, call);
    if (known)
        att_lane_leave(lane);
    return known;
}

void att_lane_leave(att_lane_t *lane)
{
    if (lane->gate != NULL)
        atomic_fetch_sub(&lane->gate->waiting, 1);
}
