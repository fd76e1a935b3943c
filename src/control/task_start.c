/* From what the ranks report to a search. */
#include "control/task_inside.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/names.h"
#include "control/applied.h"
#include "control/counting.h"
#include "control/kind.h"
#include "control/notes.h"
#include "control/quarantine.h"
#include "search/knobs.h"
#include "search/study.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *att_task_label(const struct att_task *t, char text[64])
{
    char bytes[24];
    snprintf(text, 64, "%s %s of group 0x%" PRIx64, att_collective_name((int)t->task->collective),
             att_bytes_text(t->task->bytes, bytes, sizeof bytes), t->group->hash);
    return text;
}

static void on_trial(void *context, const att_trial_t *trial)
{
    struct att_task *t = context;
    json_t *counted = att_counting_trial(t->shared->counting, t->index, trial->number);
    att_task_report_t report;
    att_task_report(t, &report);
    att_notes_trial(t->shared->notes, &report, trial, counted);
    json_decref(counted);
}

att_identity_t att_task_identity(const struct att_task *t)
{
    return att_identity_of(att_node_memory(t->shared->node), t->task, t->lanes[0]);
}

/* The applied run's setting for this task: 1 = use it, 0 = search, negative = refused. */
static int look_up_applied(struct att_task *t, att_setting_t *setting)
{
    if (t->shared->applied == NULL)
        return 0;
    att_error_t error;
    att_identity_t task = att_task_identity(t);
    int status = att_applied_find(t->shared->applied, &task, setting, &error);
    if (status != ATT_OK) {
        att_task_refuse(t, ATT_TASK_REFUSED, error.text);
        char text[64];
        att_log(ATT_LOG_WARN, "--apply: %s keeps NCCL's choice: %s", att_task_label(t, text),
                error.text);
        return status;
    }
    return 1;
}

uint32_t att_task_rank(const struct att_task *t, uint32_t lane)
{
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    return memory->members[memory->lanes[lane].member % ATT_MEMBERS].rank;
}

/* Of all ranks, when all have a lane: 1. */
int att_task_facts(struct att_task *t, att_reported_t *reported)
{
    if (t->reach != NULL)
        return t->reach->reported(t->reach->context, t->task, reported);
    t->lane_count = att_facts_lanes(t->shared->node, t->index, t->lanes, t->group->ranks);
    if (t->lane_count < t->group->ranks)
        return 0;
    att_facts_report(t->shared->node, t->shared->config, t->index, t->lanes, t->lane_count,
                     reported);
    return 1;
}

static void apply_quarantine(struct att_task *t)
{
    att_setting_t settings[ATT_STUDY_QUARANTINE];
    att_identity_t task = att_task_identity(t);
    uint32_t count =
        t->shared->quarantine == NULL
            ? 0
            : att_quarantine_find(t->shared->quarantine, &task, settings, ATT_STUDY_QUARANTINE);
    for (uint32_t i = 0; i < count; i++)
        att_optimizer_quarantine(t->optimizer, settings[i]);
}

/* --reproducible: 1, refused, when a knob that could be set would change the order of additions
 * (data/knobs.json: all of them or none of a collective's). */
static int refuse_reordering(struct att_task *t)
{
    char reason[160] = "--reproducible: these knobs can change the order of its additions:";
    const att_knobs_t *knobs = att_knobs_get(NULL);
    size_t used = strlen(reason), start = used;
    for (int knob = 0; knob < ATT_KNOB_COUNT; knob++)
        if (knobs == NULL || att_knobs_change_order(knobs, (int)t->task->collective, knob))
            used +=
                (size_t)snprintf(reason + used, sizeof reason - used, " %s", att_knob_name(knob));
    if (used == start)
        return 0;
    att_task_refuse(t, ATT_TASK_REFUSED, reason);
    return 1;
}

void att_task_start(struct att_task *t)
{
    const struct att_config *config = t->shared->config;
    att_setting_t applied = ATT_SETTING_KEEP;
    int apply = look_up_applied(t, &applied);
    if (apply < 0)
        return;
    att_space_facts_t facts;
    att_reported_t reported;
    if (!att_task_facts(t, &reported)) {
        att_task_refuse(t, ATT_TASK_REFUSED, "ranks left before it could be tuned");
        return;
    }
    if (reported.odd_rank != ATT_NONE) {
        char reason[120];
        snprintf(reason, sizeof reason, "ranks %u and %u have different versions of NCCL or hook",
                 reported.rank, reported.odd_rank);
        char text[64];
        att_log(ATT_LOG_WARN, "%s is not tuned: %s", att_task_label(t, text), reason);
        att_task_refuse(t, ATT_TASK_REFUSED, reason);
        return;
    }
    if (config->reproducible && refuse_reordering(t))
        return;
    att_facts_gather(t->shared->node, config, t->index, &reported, t->source.native, &facts);
    uint32_t pairs = att_source_choose(&t->source, reported.whole_stamps != 0);
    if (pairs == 0) {
        att_task_refuse(t, ATT_TASK_REFUSED,
                        "--objective step: its calls do not follow each other one by one, so a "
                        "step has no length");
        return;
    }
    facts.legal_pairs &= pairs;
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
                                     .discard = (int)t->source.window,
                                     .max_slowdown = config->max_slowdown,
                                     .max_cost = config->max_cost,
                                     .max_trials = (int)config->max_trials,
                                     .apply = apply,
                                     .applied = applied};
    if (att_optimizer_create(att_space_view(t->space), &search, t->shared->host, on_trial, t,
                             &t->optimizer, &error) != ATT_OK) {
        char text[64];
        att_log(ATT_LOG_WARN, "%s keeps NCCL's choice: %s", att_task_label(t, text), error.text);
        att_task_refuse(t, ATT_TASK_REFUSED, error.text);
        return;
    }
    apply_quarantine(t);
    att_switch_init(&t->sw, &att_task_switch_ops, t, att_node_memory(t->shared->node), t->index,
                    t->lanes, t->lane_count, t->reach != NULL ? t->reach->place->child_count : 0,
                    reported.prepared);
    t->state = ATT_TASK_TUNING;
    if (reported.open != 0)
        att_switch_recover(&t->sw, reported.open);
    att_kind_begin(t, att_clock_ns());
}

void att_task_give_up_stamps(struct att_task *t)
{
    static const struct {
        uint32_t why;
        const char *text;
    } reasons[] = {
        {ATT_UNSTAMPED_UNTOLD,
         "it is not known before a call whether it goes into a CUDA graph: "
         "NCCL's calls do not pass through the preload (--no-graphs: none do)"},
        {ATT_UNSTAMPED_GRAPH, "the job captures CUDA graphs: calls cannot be timed any more"},
        {ATT_UNSTAMPED_GATHERS, "the job broadcasts from several roots in one group: NCCL cannot "
                                "time calls after that (NCCL_ALLGATHERV_ENABLE=0 does without)"},
        {ATT_UNSTAMPED_ROOM, "/dev/shm has no room for what NCCL needs to time calls"}};
    att_optimizer_status_t status = {.phase = ATT_PHASE_BASELINE};
    if (t->state == ATT_TASK_TUNING)
        att_optimizer_status(t->optimizer, &status);
    for (size_t i = 0; status.phase < ATT_PHASE_SETTLED && i < sizeof reasons / sizeof *reasons;
         i++)
        if (t->unstamped & reasons[i].why) {
            /* A winner that is in force stays, as a restarted sidecar leaves it. */
            bool kept = att_setting_is_keep(t->task->incumbent);
            att_task_refuse(t, kept ? ATT_TASK_REFUSED : ATT_TASK_OBSERVED, reasons[i].text);
            return;
        }
}
