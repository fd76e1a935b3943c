#include "control/switch.h"

#include "base/step.h"

#include <string.h>

#define LEAD_NS 100000 /* least distance of a fence, in time at the ranks' pace */

static void step(void *context, int reached, const att_schedule_t *schedule)
{
    att_switch_t *sw = context;
    att_step_reached((att_step_t)reached, sw->index, schedule->txn,
                     schedule->entries[0].first_call);
}

/* --- the coordinator's ops -------------------------------------------------------------------- */

static int open_home(void *context, uint32_t txn)
{
    att_switch_t *sw = context;
    return att_home_open(&sw->memory->tasks[sw->index], txn);
}

static att_home_state_t decide_home(void *context, uint32_t txn, att_home_state_t state)
{
    att_switch_t *sw = context;
    return att_home_decide(&sw->memory->tasks[sw->index], txn, state);
}

static void prepare(void *context, uint32_t participant, const att_schedule_t *schedule)
{
    att_switch_t *sw = context;
    if (sw->ops->proposed != NULL)
        sw->ops->proposed(sw->context, schedule);
    att_voter_prepare(&sw->voter, schedule);
}

static void tell(void *context, uint32_t participant, uint32_t txn, att_home_state_t state)
{
    att_switch_t *sw = context;
    att_voter_outcome(&sw->voter, txn, state);
}

static void done(void *context, const att_schedule_t *schedule, att_home_state_t state,
                 const att_ballot_t *ballot)
{
    att_switch_t *sw = context;
    uint64_t ahead = ballot->horizon > sw->horizon ? ballot->horizon - sw->horizon : 0;
    sw->ahead = ahead > sw->ahead ? ahead : sw->ahead - sw->ahead / 8;
    if (state == ATT_HOME_COMMITTED) {
        sw->switches++;
        sw->list_end = schedule->entries[schedule->count - 1].first_call;
        sw->last_fence = schedule->entries[0].first_call;
        sw->memory->tasks[sw->index].incumbent = schedule->entries[schedule->count - 1].setting;
        if (sw->lead_extra > 0 && sw->switches % 16 == 0)
            sw->lead_extra /= 2;
    } else {
        sw->aborts++;
        sw->last_fence = 0;
        if (ballot->vote == ATT_VOTE_PASSED && sw->lead_extra < 4096)
            sw->lead_extra = sw->lead_extra * 2 + 2;
    }
    sw->ops->decided(sw->context, schedule, state, ballot);
}

static const att_coordinator_ops_t coordinator_ops = {open_home, decide_home, prepare,
                                                      done,      tell,        step};

/* --- the voter's ops -------------------------------------------------------------------------- */

static void voted(void *context, const att_ballot_t *ballot)
{
    att_switch_t *sw = context;
    att_coordinator_vote(&sw->coordinator, 0, ballot);
}

static void recorded(void *context, uint32_t txn)
{
    att_switch_t *sw = context;
    att_coordinator_recorded(&sw->coordinator, 0, txn);
}

static void prepare_child(void *context, uint32_t child, const att_schedule_t *schedule)
{
    att_switch_t *sw = context;
    sw->ops->prepare(sw->context, child, schedule);
}

static void tell_child(void *context, uint32_t child, uint32_t txn, att_home_state_t state)
{
    att_switch_t *sw = context;
    sw->ops->outcome(sw->context, child, txn, state);
}

static const att_voter_ops_t voter_ops = {.prepare = prepare_child,
                                          .outcome = tell_child,
                                          .vote = voted,
                                          .recorded = recorded,
                                          .step = step};

/* --- public ----------------------------------------------------------------------------------- */

void att_switch_init(att_switch_t *sw, const att_switch_ops_t *ops, void *context,
                     att_segment_memory_t *memory, uint32_t index, const uint32_t *lanes,
                     uint32_t lane_count, uint32_t children, uint32_t reported_txn)
{
    memset(sw, 0, sizeof *sw);
    sw->ops = ops;
    sw->context = context;
    sw->memory = memory;
    sw->index = index;
    sw->lanes = lanes;
    sw->lane_count = lane_count;
    uint32_t open;
    att_voter_init(&sw->voter, &voter_ops, sw, memory, &memory->tasks[index], lanes, lane_count,
                   children);
    uint32_t here = att_voter_recover(&sw->voter, true, &open);
    att_coordinator_init(&sw->coordinator, &coordinator_ops, sw, 1,
                         here > reported_txn ? here : reported_txn);
}

void att_switch_recover(att_switch_t *sw, uint32_t txn)
{
    att_home_state_t state = att_home_decide(&sw->memory->tasks[sw->index], txn, ATT_HOME_ABORTED);
    att_coordinator_tell(&sw->coordinator, txn);
    att_voter_outcome(&sw->voter, txn, state);
}

void att_switch_give_up(att_switch_t *sw)
{
    att_coordinator_tick(&sw->coordinator, UINT64_MAX);
}

bool att_switch_ready(const att_switch_t *sw)
{
    return !att_coordinator_busy(&sw->coordinator) &&
           att_vote_ready(sw->memory, sw->lanes, sw->lane_count, &sw->memory->tasks[sw->index]);
}

static void measure_rate(att_switch_t *sw, uint64_t now_ns, uint64_t horizon)
{
    if (sw->horizon_ns != 0 && now_ns > sw->horizon_ns && horizon > sw->horizon) {
        double rate = (double)(horizon - sw->horizon) / (double)(now_ns - sw->horizon_ns);
        sw->calls_per_ns = sw->calls_per_ns == 0 ? rate : 0.7 * sw->calls_per_ns + 0.3 * rate;
    }
    sw->horizon = horizon;
    sw->horizon_ns = now_ns;
}

/* As many calls ahead as the ranks make while the vote goes round. */
static uint64_t choose_fence(const att_switch_t *sw)
{
    double ns = 1.5 * sw->vote_ns > LEAD_NS ? 1.5 * sw->vote_ns : LEAD_NS;
    uint64_t lead = (uint64_t)(sw->calls_per_ns * ns);
    if (sw->ahead > lead)
        lead = sw->ahead;
    uint64_t fence = sw->horizon + 1 + lead + sw->lead_extra;
    return fence < sw->list_end ? sw->list_end : fence;
}

int att_switch_propose(att_switch_t *sw, const att_plan_t *plan, uint64_t now_ns,
                       uint64_t timeout_ns)
{
    measure_rate(sw, now_ns, att_vote_horizon(sw->memory, sw->lanes, sw->lane_count));
    uint64_t first = choose_fence(sw);
    att_schedule_entry_t entries[ATT_SCHEDULE];
    uint32_t count = 0;
    for (; count < plan->count && count < ATT_PLAN_ENTRIES; count++) {
        entries[count] = (att_schedule_entry_t){first, plan->entries[count].setting};
        first += plan->entries[count].calls;
    }
    entries[count++] = (att_schedule_entry_t){first, plan->incumbent};
    att_step_reached(ATT_STEP_PLANNED, sw->index, sw->coordinator.txn + 1, entries[0].first_call);
    sw->begin_ns = now_ns;
    return att_coordinator_begin(&sw->coordinator, entries, count, now_ns, timeout_ns) != 0;
}

void att_switch_tick(att_switch_t *sw, uint64_t now_ns)
{
    if (sw->begin_ns != 0 && !sw->coordinator.voting) {
        double took = (double)(now_ns - sw->begin_ns);
        sw->vote_ns = sw->vote_ns == 0 ? took : 0.8 * sw->vote_ns + 0.2 * took;
        sw->begin_ns = 0;
    }
    att_coordinator_tick(&sw->coordinator, now_ns);
}
