#include "control/task_inside.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/names.h"
#include "base/step.h"
#include "control/kind.h"
#include "control/notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOTE_TIMEOUT_NS 500000000ull /* below W: the coordinator gives up before ranks have to */
#define TURN_NS         2000000000ull /* longest time a group keeps the node's turn without progress */
#define CHANNELS_NS     100000000ull  /* between two looks at who shares the device */
#define LEASE_NS        5000000000ull /* a list that does not play out in this time is expired */
#define ORDER_SLACK     32            /* calls by which records of a rank may overtake each other */

const char *att_task_state_name(att_task_state_t state)
{
    static const char *const names[] = {"new", "native", "tuning", "observed", "refused", "ended"};
    return state <= ATT_TASK_ENDED ? names[state] : "unknown";
}

/* --- switches --------------------------------------------------------------------------------- */

/* It is not on trial any more, whatever happens to the run from now on. */
static void note_over(struct att_task *t, uint32_t txn)
{
    t->noted = false;
    att_notes_over(t->shared->notes, t->index, txn);
}

static void release_turn(struct att_task *t)
{
    if (!t->holds_turn)
        return;
    t->holds_turn = 0;
    if (t->reach != NULL)
        t->reach->list(t->reach->context, -1);
    else
        att_node_turn_release(&t->shared->turn, t->task->group);
}

static void proposed(void *context, const att_schedule_t *schedule)
{
    struct att_task *t = context;
    att_identity_t task = att_task_identity(t);
    t->noted = true;
    att_notes_list(t->shared->notes, t->index, &task, schedule);
}

static void list_over(struct att_task *t)
{
    att_step_reached(ATT_STEP_PLAYED, t->index, t->sw.coordinator.txn, t->sw.list_end);
    t->plan_out = 0;
    t->channels_on_trial = 0;
    release_turn(t);
}

static void disagree(struct att_task *t, uint64_t call, uint32_t rank, uint32_t odd_rank)
{
    char reason[160];
    snprintf(reason, sizeof reason,
             "ranks %u and %u disagree at call %" PRIu64
             ": this program does not issue the same calls on every rank",
             rank, odd_rank, call);
    char text[64];
    att_log(ATT_LOG_WARN, "%s: %s", att_task_label(t, text), reason);
    att_task_refuse(t, ATT_TASK_REFUSED, reason);
}

/* Another communicator came to share the device: what was legal no longer is. */
static void give_up_channels(struct att_task *t)
{
    char text[64];
    static const char why[] = "another communicator now shares the device: its channels and this "
                              "task's together exceed the device";
    t->withdrawn = 1;
    att_optimizer_withdraw(t->optimizer, why);
    att_log(ATT_LOG_WARN, "%s goes back to NCCL's choice: %s", att_task_label(t, text), why);
}

static void done(void *context, const att_schedule_t *schedule, att_home_state_t state,
                 const att_ballot_t *ballot)
{
    struct att_task *t = context;
    if (state == ATT_HOME_COMMITTED) {
        t->list_since_ns = att_clock_ns();
        t->channels_on_trial = 0;
        for (uint32_t i = 0; i < schedule->count; i++)
            if (schedule->entries[i].setting.channels > t->channels_on_trial)
                t->channels_on_trial = schedule->entries[i].setting.channels;
        att_optimizer_committed(t->optimizer, t->plan.id, schedule->entries[0].first_call);
        if (schedule->count == 1) { /* a switch for good: there is nothing to play out */
            note_over(t, schedule->txn);
            list_over(t);
        }
    } else {
        t->plan_out = 0;
        note_over(t, schedule->txn);
        release_turn(t);
        att_optimizer_aborted(t->optimizer, t->plan.id);
        if (ballot->vote == ATT_VOTE_CHANNELS)
            give_up_channels(t);
        else if (ballot->vote == ATT_VOTE_DIFFERS)
            disagree(t, schedule->entries[0].first_call, ballot->seq_rank, ballot->no_rank);
        else if (ballot->vote == ATT_VOTE_GONE)
            att_task_refuse(t, ATT_TASK_ENDED, "its communicator is gone");
    }
}

static void prepare_child(void *context, uint32_t child, const att_schedule_t *schedule)
{
    struct att_task *t = context;
    t->reach->prepare(t->reach->context, t->task, child, schedule);
}

static void tell_child(void *context, uint32_t child, uint32_t txn, att_home_state_t state)
{
    struct att_task *t = context;
    t->reach->outcome(t->reach->context, t->task, child, txn, state);
}

const att_switch_ops_t att_task_switch_ops = {proposed, done, prepare_child, tell_child};

/* --- life ------------------------------------------------------------------------------------- */

int att_task_create(att_task_shared_t *shared, uint32_t index, const att_task_reach_t *reach,
                    struct att_task **out)
{
    att_segment_memory_t *memory = att_node_memory(shared->node);
    /* It holds a copy of an entry of the segment, which has a cache line of its own. */
    struct att_task *t = aligned_alloc(_Alignof(struct att_task), sizeof *t);
    if (t == NULL)
        return -ATT_ENOMEM;
    memset(t, 0, sizeof *t);
    t->shared = shared;
    t->index = index;
    att_kind_join(t);
    t->task = &memory->tasks[index];
    memcpy(&t->identity, &memory->groups[t->task->group % ATT_GROUPS], sizeof t->identity);
    t->group = &t->identity;
    t->reach = reach;
    att_source_init(&t->source, ATT_REDUCTION_NONE, false);
    t->last_call = calloc(t->group->ranks, sizeof *t->last_call);
    t->lanes = calloc(t->group->ranks, sizeof *t->lanes);
    if (t->last_call == NULL || t->lanes == NULL ||
        att_aggregate_create(t->group->ranks, &t->aggregate) != ATT_OK) {
        att_task_destroy(t);
        return -ATT_ENOMEM;
    }
    /* Ranks and children that are not there hold nobody up. */
    for (uint32_t i = 0; reach != NULL && i < t->group->ranks; i++)
        t->last_call[i] = UINT64_MAX;
    for (uint32_t c = 0; c < ATT_TREE_FAN; c++)
        t->child_low[c] = reach != NULL && c < reach->place->child_count ? 0 : UINT64_MAX;
    *out = t;
    return ATT_OK;
}

void att_task_destroy(struct att_task *t)
{
    if (t == NULL)
        return;
    att_kind_leave(t);
    att_optimizer_destroy(t->optimizer);
    att_space_destroy(t->space);
    att_aggregate_destroy(t->aggregate);
    free(t->last_call);
    free(t->lanes);
    free(t);
}

/* The window is the largest part of a task, and groups may come and go all day. */
static void drop_window(struct att_task *t)
{
    if (t->aggregate == NULL)
        return;
    t->lost = att_aggregate_lost(t->aggregate);
    t->fates = att_aggregate_end(t->aggregate);
    t->aggregate = NULL;
}

void att_task_refuse(struct att_task *t, att_task_state_t state, const char *reason)
{
    if (t->state >= ATT_TASK_OBSERVED && state <= t->state)
        return;
    if (t->state == ATT_TASK_TUNING)
        att_switch_give_up(&t->sw); /* nobody steps it from now on: no rank must wait for it */
    /* That a task ended says less than why it was not tuned. */
    if (t->state != ATT_TASK_REFUSED)
        snprintf(t->reason, sizeof t->reason, "%s", reason);
    t->state = state;
    release_turn(t);
    if (state >= ATT_TASK_REFUSED)
        drop_window(t);
    char text[64];
    if (state == ATT_TASK_REFUSED)
        att_log(ATT_LOG_INFO, "%s is not tuned: %s", att_task_label(t, text), reason);
}

/* --- records -> samples ------------------------------------------------------------------------
 */

uint64_t att_task_watermark(const struct att_task *t)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t r = 0; r < t->group->ranks; r++)
        if (t->last_call[r] < low)
            low = t->last_call[r];
    for (uint32_t c = 0; c < ATT_TREE_FAN; c++)
        if (t->child_low[c] < low)
            low = t->child_low[c];
    return low;
}

static void take_sample(struct att_task *t, const att_part_t *whole)
{
    att_source_sample_t source;
    int there = att_source_sample(&t->source, whole, t->sw.list_end, &source);
    if (t->optimizer != NULL && isfinite(source.step_us) && !source.disturbed)
        att_optimizer_step(t->optimizer, source.before, source.step_us, t->source.rhythm.period);
    if (!there)
        return;
    att_sample_t sample = {.call = source.call, .duration_us = source.duration_us};
    if (t->source.step)
        sample.collective_us = source.collective_us;
    t->samples_seen++;
    att_recent_sample(&t->recent, sample.duration_us, t->stepped_ns);
    /* Another group's list is in force on this node: the sample may be disturbed by it. */
    int disturbed = whole->disturbed || (t->source.step && source.disturbed);
    t->disturbed += (uint64_t)disturbed;
    sample.usable = !disturbed;
    if (t->optimizer != NULL)
        att_optimizer_sample(t->optimizer, &sample);
}

static void take_part(struct att_task *t, const att_part_t *part)
{
    att_part_t whole;
    if (t->aggregate == NULL) {
        t->unused += part->ranks;
        return;
    }
    if (att_aggregate_add(t->aggregate, part, &whole) == 0)
        return;
    t->calls_seen++;
    if (whole.differs) {
        disagree(t, whole.call, whole.rank, whole.odd_rank);
        return;
    }
    if (t->source.reduction == ATT_REDUCTION_COMMON)
        att_recent_call(&t->recent, &whole);
    if (t->state == ATT_TASK_NATIVE || t->shared->config->observe)
        t->native_known |= att_source_watch(&t->source, &whole);
    take_sample(t, &whole);
}

void att_task_record(struct att_task *t, const att_record_t *record)
{
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    uint32_t rank = memory->members[record->member].rank;
    if (rank >= t->group->ranks) {
        t->unused++;
        return;
    }
    /* A call without a time is recorded when it is enqueued, a timed one when it has run: only the
     * latter tell how far the rank's device has come. */
    if (record->untimed == ATT_UNTIMED_NO && record->call + 1 > t->last_call[rank])
        t->last_call[rank] = record->call + 1;
    att_part_t part = att_part_of_record(record);
    part.rank = part.last_rank = rank;
    uint32_t turn = t->shared->turn.group;
    part.disturbed = turn != ATT_NONE && turn != t->task->group;
    if (part.untimed == ATT_UNTIMED_NO && t->lane_count > 0 &&
        record->member == memory->lanes[t->lanes[0]].member)
        att_voter_note(&t->sw.voter, part.call, part.nccl_seq, rank);
    take_part(t, &part);
}

void att_task_part(struct att_task *t, uint32_t child, const att_part_t *part)
{
    if (child >= ATT_TREE_FAN) {
        t->unused += part->ranks;
        return;
    }
    if (part->untimed == ATT_UNTIMED_NO && part->call + 1 > t->child_low[child])
        t->child_low[child] = part->call + 1;
    take_part(t, part);
}

att_switch_t *att_task_switch(struct att_task *t)
{
    return t->state == ATT_TASK_TUNING ? &t->sw : NULL;
}

/* --- plans -> switches --------------------------------------------------------------------------
 */

/* More than NCCL's choice, and more than the device has. A device that tells nothing, as when its
 * ranks have left, is no reason: where it never told, the space holds nothing above NCCL's choice.
 */
static int too_many_channels(const struct att_task *t, uint32_t channels)
{
    return channels > t->source.native.channels &&
           channels >
               att_facts_ceiling(t->shared->node, t->shared->config, t->task->group, UINT32_MAX);
}

/* Now and then: communicators come without telling. */
static void check_channels(struct att_task *t, uint64_t now_ns)
{
    if (t->withdrawn || now_ns - t->channels_checked_ns < CHANNELS_NS)
        return;
    t->channels_checked_ns = now_ns;
    if (too_many_channels(t, t->task->incumbent.channels))
        give_up_channels(t);
}

static void propose(struct att_task *t, uint64_t now_ns)
{
    uint32_t most = t->plan.incumbent.channels;
    for (uint32_t i = 0; i < t->plan.count && i < ATT_PLAN_ENTRIES; i++)
        if (t->plan.entries[i].setting.channels > most)
            most = t->plan.entries[i].setting.channels;
    t->plan_out = 1;
    int legal = !too_many_channels(t, most);
    if (!legal || att_switch_propose(&t->sw, &t->plan, now_ns, VOTE_TIMEOUT_NS) == 0) {
        t->plan_out = 0;
        release_turn(t);
        att_optimizer_aborted(t->optimizer, t->plan.id);
    }
    if (!legal)
        give_up_channels(t);
}

/* One group of a node at a time has lists in force (control/turn.h). A group inside the node that
 * makes no progress loses its turn. */
static int may_take_turn(const struct att_task *t, uint64_t now_ns)
{
    if (t->reach != NULL)
        return t->reach->may(t->reach->context, now_ns);
    return att_node_turn_may(&t->shared->turn, t->task->group, now_ns);
}

static void take_turn(struct att_task *t, uint64_t now_ns)
{
    if (t->reach == NULL)
        att_node_turn_take(&t->shared->turn, t->task->group, t->holds_turn, now_ns + TURN_NS);
    else if (!t->holds_turn)
        t->reach->list(t->reach->context, 1);
    t->holds_turn = 1;
}

/* While the baseline is gathered nobody else may have trials here: with many groups some list is
 * always in force, and no sample would ever be usable. A task that is not called lets them. */
static void keep_quiet(struct att_task *t, uint64_t now_ns)
{
    att_optimizer_status_t status;
    att_optimizer_status(t->optimizer, &status);
    bool gathers = status.phase == ATT_PHASE_BASELINE && now_ns - t->list_since_ns <= TURN_NS;
    if (gathers && !t->holds_turn && may_take_turn(t, now_ns)) {
        take_turn(t, now_ns);
        t->quiet = 1;
    } else if (!gathers && t->quiet) {
        t->quiet = 0;
        release_turn(t);
    }
}

static void note_phase(struct att_task *t)
{
    att_optimizer_status_t status;
    att_optimizer_status(t->optimizer, &status);
    if (status.phase == t->phase_seen)
        return;
    t->phase_seen = status.phase;
    if (status.phase != ATT_PHASE_SETTLED && status.phase != ATT_PHASE_FAILED)
        return;
    char text[64], setting[ATT_SETTING_TEXT];
    if (att_task_disagrees(&status))
        att_log(ATT_LOG_WARN, "%s: %s makes the collective %.1f %% %s and its step %.1f %% %s%s",
                att_task_label(t, text), att_setting_text(status.best, setting, sizeof setting),
                100 * fabs(status.collective_gain),
                status.collective_gain > 0 ? "faster" : "slower", 100 * fabs(status.step_gain),
                status.step_gain > 0 ? "faster" : "slower",
                t->source.step ? "" : "; --objective step makes the step short");
    if (status.harms)
        att_log(ATT_LOG_WARN, "%s: %s", att_task_label(t, text), status.reason);
    att_step_reached(ATT_STEP_SETTLED, t->index, t->sw.coordinator.txn, t->sw.list_end);
    att_log(ATT_LOG_INFO, "%s: %s (%s), %u trials, %" PRIu64 " calls", att_task_label(t, text),
            status.kept_default ? "kept NCCL's choice"
                                : att_setting_text(status.best, setting, sizeof setting),
            status.reason, status.trials, status.calls);
}

static int step_tuning(struct att_task *t, uint64_t now_ns)
{
    att_switch_tick(&t->sw, now_ns);
    if (att_coordinator_busy(&t->sw.coordinator))
        return 0;
    uint64_t low = att_task_watermark(t);
    if (low > t->low) {
        t->low = low;
        t->list_since_ns = now_ns;
        if (t->holds_turn && t->reach == NULL)
            t->shared->turn.until_ns = now_ns + TURN_NS;
        if (low > ORDER_SLACK)
            att_optimizer_advance(t->optimizer, low - ORDER_SLACK);
    }
    if (t->plan_out && low >= t->sw.list_end) {
        note_over(t, t->sw.coordinator.txn);
        list_over(t);
    }
    if (t->plan_out && now_ns - t->list_since_ns > LEASE_NS) {
        att_optimizer_expire(t->optimizer);
        list_over(t);
        t->sw.last_fence = 0; /* no record will tell: look at the lanes themselves */
    }
    if (t->unstamped != 0) {
        if (t->plan_out && t->least_calls >= t->sw.list_end) { /* no record will say so */
            note_over(t, t->sw.coordinator.txn);
            att_optimizer_expire(t->optimizer);
            list_over(t);
        }
        if (!t->plan_out)
            att_task_give_up_stamps(t);
        if (t->state != ATT_TASK_TUNING)
            return 0;
    }
    check_channels(t, now_ns);
    note_phase(t);
    if (t->pinned) {
        if (t->quiet)
            release_turn(t);
        t->quiet = 0;
        return 0;
    }
    double run_us = (double)(now_ns - t->shared->started_ns) * 1e-3;
    const struct att_config *config = t->shared->config;
    if (config->max_cost > 0)
        run_us -= t->shared->timing_us / config->max_cost;
    if (!t->withdrawn && config->max_cost > 0 && t->shared->lost_us > config->max_cost * run_us) {
        run_us = 0; /* all tasks together have used the budget up: no list now */
        if (t->plan_waiting)
            att_optimizer_aborted(t->optimizer, t->plan.id);
        t->plan_waiting = 0;
    }
    /* Records show when every rank is beyond the last fence; only then its lanes are looked at. */
    if (low <= t->sw.last_fence && t->sw.last_fence != 0 && t->unstamped == 0)
        return 0;
    if (!att_switch_ready(&t->sw) || att_kind_waits(t, now_ns))
        return 0;
    if (!t->plan_waiting && att_optimizer_plan(t->optimizer, run_us, &t->plan) == 0) {
        keep_quiet(t, now_ns);
        return 0;
    }
    t->plan_waiting = 1;
    if (t->quiet) { /* the baseline is there: others may have waited for the turn */
        t->quiet = 0;
        release_turn(t);
    }
    if ((t->plan.count > 0 && att_notes_full(t->shared->notes)) || !may_take_turn(t, now_ns))
        return 0;
    t->plan_waiting = 0;
    take_turn(t, now_ns);
    propose(t, now_ns);
    return 1;
}

static bool wants_step(const struct att_config *config)
{
    return config->objective != NULL && strcmp(config->objective, "step") == 0;
}

/* What an earlier sidecar committed last, whether or not it lived to note it. */
static void adopt_incumbent(struct att_task *t)
{
    uint64_t home = atomic_load(&t->task->home);
    const att_schedule_t *schedule = &t->task->schedule;
    if (ATT_HOME_STATE(home) == ATT_HOME_COMMITTED && ATT_HOME_TXN(home) == schedule->txn &&
        schedule->count > 0 && schedule->count <= ATT_SCHEDULE)
        t->task->incumbent = schedule->entries[schedule->count - 1].setting;
    if (!att_setting_is_keep(t->task->incumbent))
        att_task_refuse(t, ATT_TASK_OBSERVED, "an earlier sidecar settled it");
}

/* How far the lanes of this node are, and whether calls are still stamped, anywhere. */
static void feel_pulse(struct att_task *t, uint64_t now_ns)
{
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    const att_index_list_t *lanes = att_node_lanes(t->shared->node, t->index);
    uint64_t calls = 0;
    t->least_calls = UINT64_MAX;
    for (uint32_t i = 0; i < lanes->count; i++) {
        uint64_t next = atomic_load(&memory->lanes[lanes->items[i]].word) >> 1;
        calls = next > calls ? next : calls;
        t->least_calls = next < t->least_calls ? next : t->least_calls;
        t->unstamped |= att_facts_unstamped(t->shared->node, lanes->items[i]);
    }
    att_pulse_note(&t->pulse, calls, now_ns);
    att_reported_t reported;
    if (t->reach != NULL && t->reach->reported(t->reach->context, t->task, &reported))
        t->unstamped |= reported.unstamped;
}

int att_task_step(struct att_task *t, uint64_t now_ns)
{
    t->stepped_ns = now_ns;
    if (t->state <= ATT_TASK_TUNING && now_ns - t->pulse.looked_ns >= ATT_PULSE_LOOK_NS)
        feel_pulse(t, now_ns);
    if (t->unstamped != 0 && t->state == ATT_TASK_NATIVE) {
        att_task_give_up_stamps(t);
        return 0;
    }
    switch (t->state) {
    case ATT_TASK_NEW: {
        att_reported_t reported;
        if (!att_task_facts(t, &reported))
            return 0;
        t->lane_count = att_facts_lanes(t->shared->node, t->index, t->lanes, t->group->ranks);
        for (uint32_t i = 0; i < t->lane_count; i++)
            t->last_call[att_task_rank(t, t->lanes[i])] = 0;
        att_reduction_t reduction =
            att_reduction_choose((int)t->task->collective, reported.clock_id != 0);
        if (reduction == ATT_REDUCTION_NONE) {
            att_task_refuse(t, ATT_TASK_REFUSED,
                            "the ranks' stamps are on different clocks, and this collective does "
                            "not wait for every rank");
            return 0;
        }
        if (t->task->bytes < (uint64_t)t->shared->config->min_bytes) {
            att_task_refuse(t, ATT_TASK_REFUSED, "the message is smaller than --min-bytes");
            return 0;
        }
        att_source_init(&t->source, reduction, wants_step(t->shared->config));
        if (t->shared->config->observe) {
            att_task_refuse(t, ATT_TASK_OBSERVED, "--observe: timed, not changed");
            return 0;
        }
        adopt_incumbent(t);
        if (t->state == ATT_TASK_NEW)
            t->state = ATT_TASK_NATIVE;
        return 1;
    }
    case ATT_TASK_NATIVE:
        if (!t->native_known || t->pinned)
            return 0;
        att_task_start(t);
        return 1;
    case ATT_TASK_TUNING:
        return step_tuning(t, now_ns);
    default:
        return 0;
    }
}

void att_task_pin(struct att_task *t, bool pinned)
{
    char text[64];
    if (t->pinned != pinned)
        att_log(ATT_LOG_INFO, "%s: %s", att_task_label(t, text), pinned ? "pinned" : "unpinned");
    t->pinned = pinned;
}

uint64_t att_task_sample_ns(const struct att_task *t)
{
    if (t->state != ATT_TASK_TUNING || t->source.reduction != ATT_REDUCTION_INTERVAL)
        return 0;
    /* From any point in a step on: the rest of it, a window of whole ones, the next one's start. */
    return (uint64_t)((t->source.window + 2) * att_recent_duration_us(&t->recent) * 1000);
}

int att_task_wants_timing(const struct att_task *t)
{
    if ((t->pinned && !t->plan_out) || !att_pulse_beats(&t->pulse, t->stepped_ns))
        return 0;
    switch (t->state) {
    case ATT_TASK_NEW:
    case ATT_TASK_NATIVE:
        return 1;
    case ATT_TASK_TUNING:
        return att_optimizer_wants_timing(t->optimizer);
    default:
        return 0;
    }
}

uint32_t att_task_channels(const struct att_task *t)
{
    uint32_t in_force = t->task->incumbent.channels;
    return t->channels_on_trial > in_force ? t->channels_on_trial : in_force;
}
