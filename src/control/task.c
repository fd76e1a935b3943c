#include "control/task.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/names.h"
#include "control/applied.h"
#include "control/device.h"
#include "control/facts.h"
#include "control/voter.h"
#include "control/run_folder.h"
#include "base/step.h"
#include "control/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOTE_TIMEOUT_NS 500000000ull /* below W: the coordinator gives up before ranks have to */
#define TURN_NS         2000000000ull /* longest time a group keeps the node's turn without progress */
#define LEASE_NS        5000000000ull /* a list that does not play out in this time is expired */
#define ORDER_SLACK     32            /* calls by which records of a rank may overtake each other */

struct att_task {
    att_task_shared_t *shared;
    uint32_t index;
    const att_segment_group_t *group;
    att_segment_task_t *task;
    att_task_state_t state;
    char reason[200];

    /* records -> samples */
    struct att_aggregate *aggregate;
    uint64_t *last_call; /* per rank, call + 1 of the latest timed record */
    uint64_t samples_seen, calls_seen, disturbed;
    att_source_t source;
    int native_known;

    /* plans -> switches */
    uint32_t *lanes; /* one a rank */
    struct att_space_owned *space;
    struct att_optimizer *optimizer;
    att_coordinator_t coordinator;
    att_voter_t voter; /* of this node; the coordinator's only participant */
    att_plan_t plan;
    int plan_out;           /* proposed or playing */
    uint64_t list_end;      /* first call after the list in force */
    uint64_t list_since_ns; /* last progress of the list in force */
    uint64_t last_fence;
    uint64_t low; /* calls below it have run on every rank */
    int holds_turn;
    uint64_t horizon, horizon_ns;
    double calls_per_ns; /* recent rate of the fastest rank */
    uint32_t lead_extra; /* grows when a fence was passed */
    uint64_t switches, aborts;
    uint16_t channels_on_trial;
    att_phase_t phase_seen;
};

const char *att_task_state_name(att_task_state_t state)
{
    static const char *const names[] = {"new", "native", "tuning", "observed", "refused", "ended"};
    return state <= ATT_TASK_ENDED ? names[state] : "unknown";
}

static const char *label(const struct att_task *t, char text[64])
{
    char bytes[24];
    snprintf(text, 64, "%s %s of group 0x%" PRIx64, att_collective_name((int)t->task->collective),
             att_bytes_text(t->task->bytes, bytes, sizeof bytes), t->group->hash);
    return text;
}

/* --- coordinator's ops ------------------------------------------------------------------------ */

static int open_home(void *context, uint32_t txn)
{
    struct att_task *t = context;
    return att_home_open(t->task, txn);
}

static att_home_state_t decide_home(void *context, uint32_t txn, att_home_state_t state)
{
    struct att_task *t = context;
    return att_home_decide(t->task, txn, state);
}

static void prepare(void *context, uint32_t participant, const att_schedule_t *schedule)
{
    struct att_task *t = context;
    if (t->shared->folder != NULL)
        att_run_folder_list(t->shared->folder, t->index, schedule);
    att_voter_prepare(&t->voter, schedule);
}

static void tell(void *context, uint32_t participant, uint32_t txn, att_home_state_t state)
{
    struct att_task *t = context;
    att_voter_outcome(&t->voter, txn, state);
}

static void release_turn(struct att_task *t)
{
    if (!t->holds_turn)
        return;
    t->holds_turn = 0;
    if (t->shared->turn_group == t->task->group && --t->shared->turn_lists == 0)
        t->shared->turn_group = ATT_NONE;
}

static void list_over(struct att_task *t)
{
    att_step_reached(ATT_STEP_PLAYED, t->index, t->coordinator.txn, t->list_end);
    t->plan_out = 0;
    t->channels_on_trial = 0;
    release_turn(t);
}

static void step(void *context, int reached, const att_schedule_t *schedule)
{
    struct att_task *t = context;
    att_step_reached((att_step_t)reached, t->index, schedule->txn, schedule->entries[0].first_call);
}

static void done(void *context, const att_schedule_t *schedule, att_home_state_t state,
                 const att_ballot_t *ballot)
{
    struct att_task *t = context;
    if (state == ATT_HOME_COMMITTED) {
        t->switches++;
        t->list_end = schedule->entries[schedule->count - 1].first_call;
        t->list_since_ns = att_clock_ns();
        t->last_fence = schedule->entries[0].first_call;
        t->task->incumbent = schedule->entries[schedule->count - 1].setting;
        t->channels_on_trial = 0;
        for (uint32_t i = 0; i < schedule->count; i++)
            if (schedule->entries[i].setting.channels > t->channels_on_trial)
                t->channels_on_trial = schedule->entries[i].setting.channels;
        if (t->lead_extra > 0 && t->switches % 16 == 0)
            t->lead_extra /= 2;
        att_optimizer_committed(t->optimizer, t->plan.id, schedule->entries[0].first_call);
        if (schedule->count == 1) /* a switch for good: there is nothing to play out */
            list_over(t);
    } else {
        t->aborts++;
        t->plan_out = 0;
        t->last_fence = 0;
        release_turn(t);
        if (ballot->vote == ATT_VOTE_PASSED && t->lead_extra < 4096)
            t->lead_extra = t->lead_extra * 2 + 2;
        att_optimizer_aborted(t->optimizer, t->plan.id);
    }
}

static const att_coordinator_ops_t coordinator_ops = {open_home, decide_home, prepare,
                                                      done,      tell,        step};

static void voted(void *context, const att_ballot_t *ballot)
{
    struct att_task *t = context;
    att_coordinator_vote(&t->coordinator, 0, ballot);
}

static void recorded(void *context, uint32_t txn)
{
    struct att_task *t = context;
    att_coordinator_recorded(&t->coordinator, 0, txn);
}

static const att_voter_ops_t voter_ops = {.vote = voted, .recorded = recorded, .step = step};

/* --- life ------------------------------------------------------------------------------------- */

int att_task_create(att_task_shared_t *shared, uint32_t index, struct att_task **out)
{
    att_segment_memory_t *memory = att_node_memory(shared->node);
    struct att_task *t = calloc(1, sizeof *t);
    if (t == NULL)
        return -ATT_ENOMEM;
    t->shared = shared;
    t->index = index;
    t->task = &memory->tasks[index];
    t->group = &memory->groups[t->task->group];
    att_source_init(&t->source, ATT_REDUCTION_NONE);
    t->last_call = calloc(t->group->ranks, sizeof *t->last_call);
    t->lanes = calloc(t->group->ranks, sizeof *t->lanes);
    if (t->last_call == NULL || t->lanes == NULL ||
        att_aggregate_create(t->group->ranks, &t->aggregate) != ATT_OK) {
        att_task_destroy(t);
        return -ATT_ENOMEM;
    }
    *out = t;
    return ATT_OK;
}

void att_task_destroy(struct att_task *t)
{
    if (t == NULL)
        return;
    att_optimizer_destroy(t->optimizer);
    att_space_destroy(t->space);
    att_aggregate_destroy(t->aggregate);
    free(t->last_call);
    free(t->lanes);
    free(t);
}

void att_task_refuse(struct att_task *t, att_task_state_t state, const char *reason)
{
    if (t->state >= ATT_TASK_OBSERVED && state <= t->state)
        return;
    t->state = state;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
    char text[64];
    if (state == ATT_TASK_REFUSED)
        att_log(ATT_LOG_INFO, "%s is not tuned: %s", label(t, text), reason);
}

/* --- records -> samples ------------------------------------------------------------------------
 */

static uint64_t watermark(const struct att_task *t)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t r = 0; r < t->group->ranks; r++)
        if (t->last_call[r] < low)
            low = t->last_call[r];
    return low;
}

static void disagree(struct att_task *t, const att_record_t *record, uint32_t rank)
{
    char reason[160];
    snprintf(reason, sizeof reason,
             "ranks disagree at call %" PRIu64 " (rank %u: NCCL sequence number %" PRIu64
             ", list %u): this program does not issue the same calls on every rank",
             record->call, rank, record->nccl_seq, record->txn);
    char text[64];
    att_log(ATT_LOG_WARN, "%s: %s", label(t, text), reason);
    att_task_refuse(t, ATT_TASK_REFUSED, reason);
}

static void take_sample(struct att_task *t, const att_part_t *whole)
{
    att_sample_t sample;
    if (!att_source_sample(&t->source, whole, &sample.call, &sample.duration_us))
        return;
    t->samples_seen++;
    /* Another group's list is in force on this node: the sample may be disturbed by it. */
    int disturbed = t->shared->turn_group != ATT_NONE && t->shared->turn_group != t->task->group;
    t->disturbed += (uint64_t)disturbed;
    sample.usable = !disturbed;
    if (t->optimizer != NULL)
        att_optimizer_sample(t->optimizer, &sample);
}

void att_task_record(struct att_task *t, const att_record_t *record)
{
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    uint32_t rank = memory->members[record->member].rank;
    if (rank >= t->group->ranks)
        return;
    /* A call without a time is recorded when it is enqueued, a timed one when it has run: only the
     * latter tell how far the rank's device has come. */
    if (record->untimed == ATT_UNTIMED_NO && record->call + 1 > t->last_call[rank])
        t->last_call[rank] = record->call + 1;
    att_part_t part = att_part_of_record(record), whole;
    if (att_aggregate_add(t->aggregate, &part, &whole) == 0)
        return;
    t->calls_seen++;
    if (whole.differs) {
        disagree(t, record, rank);
        return;
    }
    if (t->state == ATT_TASK_NATIVE)
        t->native_known |= att_source_watch(&t->source, &whole);
    take_sample(t, &whole);
}

/* --- facts -> space -> optimizer ----------------------------------------------------------------
 */

static void on_trial(void *context, const att_trial_t *trial)
{
    struct att_task *t = context;
    if (t->shared->folder == NULL)
        return;
    att_task_report_t report;
    att_task_report(t, &report);
    att_run_folder_trial(t->shared->folder, &report, trial);
}

/* The applied run's setting for this task: 1 = use it, 0 = search, negative = refused. */
static int look_up_applied(struct att_task *t, att_setting_t *setting)
{
    if (t->shared->applied == NULL)
        return 0;
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    const att_segment_member_t *member = &memory->members[memory->lanes[t->lanes[0]].member];
    att_error_t error;
    char device[ATT_DEVICE_TEXT];
    int status = att_applied_find(
        t->shared->applied, member->nccl_version, att_device_text(member, device, sizeof device),
        t->task->collective, t->task->bytes, t->group->ranks, t->group->nodes, setting, &error);
    if (status != ATT_OK) {
        att_task_refuse(t, ATT_TASK_REFUSED, error.text);
        char text[64];
        att_log(ATT_LOG_WARN, "--apply: %s keeps NCCL's choice: %s", label(t, text), error.text);
        return status;
    }
    return 1;
}

static void start_tuning(struct att_task *t)
{
    const struct att_config *config = t->shared->config;
    att_setting_t applied = ATT_SETTING_KEEP;
    int apply = look_up_applied(t, &applied);
    if (apply < 0)
        return;
    att_space_facts_t facts;
    att_facts_gather(t->shared->node, config, t->index, t->lanes, t->source.native, &facts);
    facts.legal_pairs &= att_source_choose(
        &t->source, att_facts_whole_stamps(t->shared->node, t->lanes, t->group->ranks));
    att_error_t error;
    if (att_space_build(&facts, &t->space, &error) != ATT_OK) {
        att_task_refuse(t, ATT_TASK_REFUSED, error.text);
        return;
    }
    if (apply && !att_setting_is_keep(applied) &&
        !att_space_contains(att_space_view(t->space), applied)) {
        char setting[ATT_SETTING_TEXT], reason[160];
        snprintf(reason, sizeof reason, "the applied setting %s is not legal here",
                 att_setting_text(applied, setting, sizeof setting));
        att_task_refuse(t, ATT_TASK_REFUSED, reason);
        return;
    }
    att_optimizer_config_t search = {.strategy = config->strategy,
                                     .seed = (uint64_t)config->seed,
                                     .samples = (int)config->samples,
                                     .discard = 1,
                                     .max_slowdown = config->max_slowdown,
                                     .max_cost = config->max_cost,
                                     .max_trials = (int)config->max_trials,
                                     .apply = apply,
                                     .applied = applied};
    if (att_optimizer_create(att_space_view(t->space), &search, t->shared->host, on_trial, t,
                             &t->optimizer, &error) != ATT_OK) {
        char text[64];
        att_log(ATT_LOG_WARN, "%s keeps NCCL's choice: %s", label(t, text), error.text);
        att_task_refuse(t, ATT_TASK_REFUSED, error.text);
        return;
    }
    uint32_t open;
    att_voter_init(&t->voter, &voter_ops, t, att_node_memory(t->shared->node), t->task, t->lanes,
                   t->group->ranks, 0);
    uint32_t last_txn = att_voter_recover(&t->voter, true, &open);
    att_coordinator_init(&t->coordinator, &coordinator_ops, t, 1, last_txn);
    t->state = ATT_TASK_TUNING;
}

/* --- plans -> switches --------------------------------------------------------------------------
 */

static void measure_rate(struct att_task *t, uint64_t now_ns, uint64_t horizon)
{
    if (t->horizon_ns != 0 && now_ns > t->horizon_ns && horizon > t->horizon) {
        double rate = (double)(horizon - t->horizon) / (double)(now_ns - t->horizon_ns);
        t->calls_per_ns = t->calls_per_ns == 0 ? rate : 0.7 * t->calls_per_ns + 0.3 * rate;
    }
    t->horizon = horizon;
    t->horizon_ns = now_ns;
}

/* Another communicator came to share the device: what was legal no longer is. */
static void give_up_channels(struct att_task *t)
{
    t->plan_out = 0;
    release_turn(t);
    att_optimizer_aborted(t->optimizer, t->plan.id);
    att_task_refuse(t, ATT_TASK_REFUSED,
                    "another communicator now shares the device: its channels and the trial's "
                    "together exceed the device");
}

/* Propose the plan: the fence lies as many calls ahead as the ranks make in 100 us. */
static void propose(struct att_task *t, uint64_t now_ns)
{
    att_segment_memory_t *memory = att_node_memory(t->shared->node);
    uint64_t horizon = att_vote_horizon(memory, t->lanes, t->group->ranks);
    measure_rate(t, now_ns, horizon);
    uint64_t fence = horizon + 1 + (uint64_t)(t->calls_per_ns * 100000) + t->lead_extra;
    if (fence < t->list_end)
        fence = t->list_end;
    att_schedule_entry_t entries[ATT_SCHEDULE];
    uint32_t count = 0;
    uint64_t first = fence;
    uint32_t most = t->plan.incumbent.channels;
    for (; count < t->plan.count && count < ATT_PLAN_ENTRIES; count++) {
        if (t->plan.entries[count].setting.channels > most)
            most = t->plan.entries[count].setting.channels;
        entries[count] = (att_schedule_entry_t){first, t->plan.entries[count].setting};
        first += t->plan.entries[count].calls;
    }
    entries[count++] = (att_schedule_entry_t){first, t->plan.incumbent};
    t->plan_out = 1;
    if (most > t->source.native.channels &&
        most > att_facts_ceiling(t->shared->node, t->shared->config, t->task->group,
                                 t->source.native.channels)) {
        give_up_channels(t);
        return;
    }
    att_step_reached(ATT_STEP_PLANNED, t->index, t->coordinator.txn + 1, fence);
    if (att_coordinator_begin(&t->coordinator, entries, count, now_ns, VOTE_TIMEOUT_NS) == 0) {
        t->plan_out = 0;
        release_turn(t);
        att_optimizer_aborted(t->optimizer, t->plan.id);
    }
}

/* The node's turn: one group at a time has lists in force, so that the trial of one does not spoil
 * the samples of another. A group that makes no progress loses it. */
static int may_take_turn(const struct att_task *t, uint64_t now_ns)
{
    const att_task_shared_t *shared = t->shared;
    return shared->turn_group == ATT_NONE || shared->turn_group == t->task->group ||
           now_ns >= shared->turn_until_ns;
}

static void take_turn(struct att_task *t, uint64_t now_ns)
{
    att_task_shared_t *shared = t->shared;
    if (shared->turn_group != t->task->group) {
        shared->turn_group = t->task->group;
        shared->turn_lists = 0;
        t->holds_turn = 0;
    }
    shared->turn_lists += !t->holds_turn;
    t->holds_turn = 1;
    shared->turn_until_ns = now_ns + TURN_NS;
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
    att_step_reached(ATT_STEP_SETTLED, t->index, t->coordinator.txn, t->list_end);
    att_log(ATT_LOG_INFO, "%s: %s (%s), %u trials, %" PRIu64 " calls", label(t, text),
            status.kept_default ? "kept NCCL's choice"
                                : att_setting_text(status.incumbent, setting, sizeof setting),
            status.reason, status.trials, status.calls);
}

static int step_tuning(struct att_task *t, uint64_t now_ns)
{
    att_coordinator_tick(&t->coordinator, now_ns);
    if (att_coordinator_busy(&t->coordinator))
        return 0;
    uint64_t low = watermark(t);
    if (low > t->low) {
        t->low = low;
        t->list_since_ns = now_ns;
        if (t->holds_turn)
            t->shared->turn_until_ns = now_ns + TURN_NS;
        if (low > ORDER_SLACK)
            att_optimizer_advance(t->optimizer, low - ORDER_SLACK);
    }
    if (t->plan_out && low >= t->list_end)
        list_over(t);
    if (t->plan_out && now_ns - t->list_since_ns > LEASE_NS) {
        att_optimizer_expire(t->optimizer);
        list_over(t);
        t->last_fence = 0; /* no record will tell: look at the lanes themselves */
    }
    note_phase(t);
    double run_us = (double)(now_ns - t->shared->started_ns) * 1e-3;
    const struct att_config *config = t->shared->config;
    if (config->max_cost > 0 && t->shared->lost_us > config->max_cost * run_us)
        return 0;
    /* Records show when every rank is beyond the last fence; only then its lanes are looked at. */
    if (low <= t->last_fence && t->last_fence != 0)
        return 0;
    if (!may_take_turn(t, now_ns) ||
        !att_vote_ready(att_node_memory(t->shared->node), t->lanes, t->group->ranks, t->task) ||
        att_optimizer_plan(t->optimizer, run_us, &t->plan) == 0)
        return 0;
    take_turn(t, now_ns);
    propose(t, now_ns);
    return 1;
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

int att_task_step(struct att_task *t, uint64_t now_ns)
{
    switch (t->state) {
    case ATT_TASK_NEW: {
        if (!att_facts_lanes(t->shared->node, t->index, t->lanes))
            return 0;
        att_reduction_t reduction =
            att_reduction_choose((int)t->task->collective,
                                 att_facts_one_clock(t->shared->node, t->lanes, t->group->ranks));
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
        if (t->shared->config->observe) {
            att_task_refuse(t, ATT_TASK_OBSERVED, "--observe: timed, not changed");
            return 0;
        }
        att_source_init(&t->source, reduction);
        adopt_incumbent(t);
        if (t->state == ATT_TASK_NEW)
            t->state = ATT_TASK_NATIVE;
        return 1;
    }
    case ATT_TASK_NATIVE:
        if (!t->native_known)
            return 0;
        start_tuning(t);
        return 1;
    case ATT_TASK_TUNING:
        return step_tuning(t, now_ns);
    default:
        return 0;
    }
}

int att_task_wants_timing(const struct att_task *t)
{
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

void att_task_report(const struct att_task *t, att_task_report_t *report)
{
    memset(report, 0, sizeof *report);
    report->hash = t->group->hash;
    report->ranks = t->group->ranks;
    report->nodes = t->group->nodes;
    report->collective = t->task->collective;
    report->legal_pairs = t->task->legal_pairs;
    report->bytes = t->task->bytes;
    report->state = t->state;
    report->native = t->source.native;
    report->samples_seen = t->samples_seen;
    report->calls_seen = t->calls_seen;
    report->lost = att_aggregate_lost(t->aggregate);
    report->switches = t->switches;
    report->aborts = t->aborts;
    report->disturbed = t->disturbed;
    report->reduction = t->source.reduction;
    report->status.kept_default = 1;
    report->tuned = t->source.native;
    report->reason = t->reason;
    if (t->optimizer == NULL)
        return;
    att_optimizer_status(t->optimizer, &report->status);
    report->lost_us = report->status.lost_us;
    if (!report->status.kept_default)
        report->tuned = report->status.incumbent;
    if (t->state == ATT_TASK_TUNING || report->status.phase >= ATT_PHASE_SETTLED)
        report->reason = report->status.reason;
}
