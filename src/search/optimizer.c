#include "search/optimizer.h"

#include "base/log.h"
#include "base/names.h"
#include "search/cost.h"
#include "search/drift.h"
#include "search/guard.h"
#include "search/instance.h"
#include "search/kin.h"
#include "search/playlist.h"
#include "search/race.h"
#include "search/space.h"
#include "search/study.h"
#include "search/window.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP          5    /* first samples of a task: connections, caches, clocks */
#define BASELINE_SAMPLES 8    /* of the incumbent before the search */
#define STALE_LISTS      4    /* lists without a sample of the incumbent: run it on purpose */
#define CANDIDATE_LIMIT  1.03 /* slower than this times the incumbent is no candidate */

struct att_optimizer {
    att_space_t *space;
    att_optimizer_config_t config;
    char *strategy;
    struct att_strategy_host *host;
    att_trial_fn on_trial;
    void *context;

    att_phase_t phase;
    att_setting_t incumbent;
    att_playlist_t list;
    bool settling;  /* `next` is to become the incumbent, by a plan without entries */
    bool switching; /* that plan is out */
    bool withdrawn; /* NCCL's choice for good */
    bool resting;   /* the budget is used up: no list, and no stamps */
    att_setting_t next;
    att_kin_t kin;

    uint32_t warm_up; /* samples still to be dropped */
    att_window_t window;
    uint32_t lists_without; /* lists since the last sample of the incumbent */

    att_study_t study;
    att_cost_t cost;
    att_setting_t winner; /* KEEP until a search is won */
    att_setting_t before; /* winner of the search before */
    att_race_t *race;     /* of the final; NULL otherwise */
    att_guard_t guard;
    att_drift_t drift;
    uint32_t lines; /* of the trials log */
    att_optimizer_status_t status;
};

const char *att_phase_name(att_phase_t phase)
{
    static const char *const names[] = {"baseline", "search",  "final",
                                        "guard",    "settled", "failed"};
    return (unsigned)phase < sizeof names / sizeof *names ? names[phase] : "unknown";
}

/* ---- the trials log ---- */

static void log_line(struct att_optimizer *o, att_setting_t setting, uint64_t first_call,
                     uint32_t calls, const att_result_t *result)
{
    att_trial_t line = {.number = ++o->lines,
                        .phase = o->phase,
                        .setting = setting,
                        .first_call = first_call,
                        .calls = calls,
                        .result = *result};
    if (o->on_trial != NULL)
        o->on_trial(o->context, &line);
}

static void log_samples(struct att_optimizer *o, att_setting_t setting, uint64_t first_call,
                        uint32_t calls, const double *samples_us, uint32_t count)
{
    att_result_t result =
        att_result_of(count > 0 ? ATT_OUTCOME_OK : ATT_OUTCOME_LOSSY, samples_us, count, calls);
    result.baseline_median_us = att_window_median(&o->window);
    result.baseline_count = o->window.count;
    log_line(o, setting, first_call, calls, &result);
}

static void on_tell(void *context, const att_open_trial_t *trial, const att_result_t *result)
{
    struct att_optimizer *o = context;
    o->status.trials++;
    log_line(o, trial->setting, trial->first_call, trial->calls, result);
}

/* ---- life ---- */

int att_optimizer_create(const att_space_t *space, const att_optimizer_config_t *config,
                         struct att_strategy_host *host, att_trial_fn on_trial, void *context,
                         struct att_optimizer **out, att_error_t *error)
{
    if (config->samples < 1 || config->samples > ATT_TRIAL_SAMPLES || config->discard < 0 ||
        config->discard > 16)
        return att_fail(error, ATT_EUSAGE,
                        "samples of a trial must be 1 to %d, discarded ones 0 to 16",
                        ATT_TRIAL_SAMPLES);
    if (config->apply && !att_setting_is_keep(config->applied) &&
        !att_space_contains(space, config->applied)) {
        char text[ATT_SETTING_TEXT];
        return att_fail(error, ATT_EILLEGAL, "%s is not legal here",
                        att_setting_text(config->applied, text, sizeof text));
    }
    struct att_optimizer *o = calloc(1, sizeof *o);
    if (o == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for an optimizer");
    o->space = att_space_copy(space);
    o->strategy = strdup(config->strategy != NULL ? config->strategy : "");
    if (o->space == NULL || o->strategy == NULL) {
        att_optimizer_destroy(o);
        return att_fail(error, ATT_ENOMEM, "no memory for an optimizer");
    }
    o->config = *config;
    o->host = host;
    o->on_trial = on_trial;
    o->context = context;
    o->incumbent = o->winner = o->before = ATT_SETTING_KEEP;
    o->warm_up = WARM_UP;
    att_cost_init(&o->cost);
    o->list.discard = (uint32_t)config->discard;
    o->study.samples = (uint32_t)config->samples;
    o->study.max_trials = config->max_trials > 0 ? (uint32_t)config->max_trials : 0;
    o->study.on_tell = on_tell;
    o->study.context = o;
    o->status.best = ATT_SETTING_KEEP;
    if (config->apply) {
        o->phase = ATT_PHASE_SETTLED;
        o->winner = o->next = o->status.best = config->applied;
        o->settling = !att_setting_is_keep(config->applied);
        o->status.kept_default = !o->settling;
        snprintf(o->status.reason, sizeof o->status.reason, "applied from a finished run");
    }
    *out = o;
    return ATT_OK;
}

void att_optimizer_destroy(struct att_optimizer *o)
{
    if (o == NULL)
        return;
    att_study_end(&o->study);
    free(o->race);
    free(o->strategy);
    free(o->space);
    free(o);
}

void att_optimizer_quarantine(struct att_optimizer *o, att_setting_t setting)
{
    att_study_quarantine(&o->study, setting);
}

static att_yardstick_t yardstick(const struct att_optimizer *o)
{
    const att_ranking_t *ranking = &o->study.ranking;
    bool faster = ranking->count > 0 && ranking->entries[0].score < 1;
    return (att_yardstick_t){.incumbent_us = att_window_median(&o->window),
                             .incumbent_mid_us = att_window_midmean(&o->window),
                             .incumbent_count = o->window.count,
                             .best = faster ? ranking->entries[0].score : 1,
                             .spread = att_window_spread(&o->window),
                             .max_slowdown = o->config.max_slowdown};
}

/* ---- how a search ends ---- */

static void settle(struct att_optimizer *o, att_setting_t setting)
{
    att_study_end(&o->study);
    o->phase = ATT_PHASE_SETTLED;
    o->winner = o->next = o->status.best = setting;
    o->settling = !att_setting_equal(o->incumbent, setting);
    o->resting = false;
    o->status.kept_default = att_setting_is_keep(setting);
    att_drift_settle(&o->drift);
}

/* `baseline` samples of NCCL's choice are the last word on its duration. */
__attribute__((format(printf, 4, 5))) static void keep_default(struct att_optimizer *o,
                                                               const double *baseline_us,
                                                               uint32_t count, const char *format,
                                                               ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(o->status.reason, sizeof o->status.reason, format, args);
    va_end(args);
    settle(o, ATT_SETTING_KEEP);
    o->status.baseline_us = o->status.tuned_us = att_median(baseline_us, count);
    o->status.baseline_samples = o->status.tuned_samples = count;
}

static void fail(struct att_optimizer *o)
{
    snprintf(o->status.reason, sizeof o->status.reason, "%.*s", (int)sizeof o->status.reason - 1,
             o->study.why.text);
    att_study_end(&o->study);
    o->phase = ATT_PHASE_FAILED;
    o->list.abandoned = true;
    o->status.kept_default = att_setting_is_keep(o->incumbent);
    o->status.baseline_us = o->status.tuned_us = att_window_median(&o->window);
    o->status.baseline_samples = o->status.tuned_samples = o->window.count;
}

static void begin_guard(struct att_optimizer *o, att_setting_t winner, uint32_t calls_before)
{
    o->phase = ATT_PHASE_GUARD;
    o->status.best = winner;
    att_guard_begin(&o->guard, winner, calls_before);
}

static void end_race(struct att_optimizer *o)
{
    free(o->race);
    o->race = NULL;
}

/* The strategy has finished: who runs in the final? */
static void begin_final(struct att_optimizer *o)
{
    att_setting_t extra[2] = {att_study_best(&o->study), o->before};
    att_ranking_t ranking = o->study.ranking;
    uint32_t told = o->study.told;
    double fastest = ranking.count > 0 ? ranking.entries[0].score : 0;
    att_study_end(&o->study);
    while (ranking.count > 0 && ranking.entries[ranking.count - 1].score > CANDIDATE_LIMIT)
        ranking.count--;
    for (uint32_t i = 0; i < 2; i++)
        if (att_study_quarantined(&o->study, extra[i]))
            extra[i] = ATT_SETTING_KEEP;
    o->phase = ATT_PHASE_FINAL;
    o->race = malloc(sizeof *o->race);
    if (o->race == NULL) {
        keep_default(o, o->window.values, o->window.count, "no memory for the final");
        return;
    }
    att_race_begin(o->race, &ranking, extra, 2, o->study.calls);
    if (o->race->count == 2) /* the guard is the final of a single one */
        begin_guard(o, o->race->runners[1].setting, o->study.calls);
    else if (o->race->count < 2 && fastest > 0)
        keep_default(o, o->window.values, o->window.count,
                     "the fastest of %u settings tried is %.1f %% slower", told,
                     100 * (fastest - 1));
    else if (o->race->count < 2)
        keep_default(o, o->window.values, o->window.count,
                     "none of %u settings tried gave usable samples", told);
    if (o->phase != ATT_PHASE_FINAL)
        end_race(o);
}

static void decide_race(struct att_optimizer *o)
{
    const att_race_t *race = o->race;
    for (uint32_t i = 0; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        log_samples(o, r->setting, r->first_call, r->calls, r->samples_us, r->count);
    }
    uint32_t winner = att_race_winner(race);
    const att_runner_t *keep = &race->runners[0];
    if (winner > 0)
        begin_guard(o, race->runners[winner].setting, o->study.calls + race->calls);
    else
        keep_default(o, keep->samples_us, keep->count, "%s",
                     keep->count < ATT_RACE_LEAST
                         ? "too few usable samples to compare with NCCL's choice"
                         : "NCCL's choice was the fastest when the best settings ran beside it");
    end_race(o);
}

static void guard_ran(struct att_optimizer *o, const att_playlist_t *list)
{
    att_verdict_t verdict = att_guard_ran(&o->guard, list);
    const att_guard_side_t *side = o->guard.sides;
    att_guard_status(&o->guard, verdict, &o->status);
    if (verdict == ATT_VERDICT_OPEN)
        return;
    for (uint32_t i = 0; i < 2; i++)
        log_samples(o, side[i].setting, side[i].first_call, side[i].calls, side[i].samples_us,
                    side[i].count);
    bool followed = att_kin_end(&o->kin);
    if (followed && verdict != ATT_VERDICT_WIN && o->kin.baseline_us > 0) { /* not alike: search */
        att_guard_forget(&o->status);
        o->phase = ATT_PHASE_BASELINE;
        return;
    }
    char text[160];
    att_guard_text(&o->guard, verdict, text, sizeof text);
    o->status.followed = followed;
    if (verdict != ATT_VERDICT_WIN) {
        keep_default(o, side[0].samples_us, side[0].count, "%s", text);
        return;
    }
    snprintf(o->status.reason, sizeof o->status.reason, "%.120s%s", text,
             followed ? "; found by a task of the same kind" : "");
    settle(o, side[1].setting);
}

/* ---- progress ---- */

/* The strategy knows best what to believe of noisy samples; without its word the ranking counts. */
static void note_best(struct att_optimizer *o)
{
    const att_ranking_t *ranking = &o->study.ranking;
    o->status.best = att_study_best(&o->study);
    if (att_setting_is_keep(o->status.best) && ranking->count > 0 && ranking->entries[0].score < 1)
        o->status.best = ranking->entries[0].setting;
}

/* Every entry of the list in force has ended. A baseline comes first in it. */
static void finish_list(struct att_optimizer *o)
{
    att_playlist_t list = o->list;
    att_playlist_clear(&o->list);
    o->lists_without += !list.abandoned;
    for (uint32_t i = 0; i < list.count; i++) {
        const att_play_t *play = &list.plays[i];
        if (play->owner == ATT_PLAY_BASELINE && !list.abandoned) {
            for (uint32_t k = 0; k < play->count; k++)
                att_window_add(&o->window, play->samples_us[k]);
            if (play->count > 0)
                o->lists_without = 0;
        } else if (!att_setting_equal(play->setting, o->incumbent))
            att_cost_add(&o->cost, play, att_window_median(&o->window));
    }
    if (list.abandoned)
        return;
    for (uint32_t i = 0; i < list.count; i++) {
        const att_play_t *play = &list.plays[i];
        att_yardstick_t y = yardstick(o);
        if (play->owner == ATT_PLAY_TRIAL)
            att_study_ran(&o->study, play, &y);
        else if (play->owner == ATT_PLAY_FINALIST)
            att_race_ran(o->race, play);
    }
    if (o->phase == ATT_PHASE_FINAL)
        att_race_judge(o->race);
    else if (o->phase == ATT_PHASE_GUARD)
        guard_ran(o, &list);
    else if (o->phase == ATT_PHASE_SEARCH)
        note_best(o);
}

/* The baseline is there: what a task of the same kind found comes before a search. */
static void follow(struct att_optimizer *o)
{
    att_kin_choice_t choice =
        att_kin_choose(&o->kin, o->space, &o->study, att_window_median(&o->window));
    o->status.followed = choice == ATT_KIN_KEEP;
    if (choice == ATT_KIN_TRY)
        begin_guard(o, o->kin.setting, 0);
    else if (choice == ATT_KIN_KEEP)
        keep_default(o, o->window.values, o->window.count,
                     "a task of the same kind found nothing faster");
}

static void progress(struct att_optimizer *o)
{
    if (att_playlist_done(&o->list))
        finish_list(o);
    bool based = o->phase == ATT_PHASE_BASELINE && o->window.count >= BASELINE_SAMPLES &&
                 o->kin.state != ATT_KIN_AWAITED;
    if (based && o->kin.state == ATT_KIN_KNOWN) {
        log_samples(o, o->incumbent, 0, 0, o->window.values, o->window.count);
        follow(o);
    }
    if (based && o->phase == ATT_PHASE_BASELINE) {
        if (att_study_begin(&o->study, o->host, o->strategy, o->space,
                            o->config.seed + o->drift.searches) == -ATT_EBUSY)
            return;
        log_samples(o, o->incumbent, 0, 0, o->window.values, o->window.count);
        o->phase = ATT_PHASE_SEARCH;
    }
    if (o->phase != ATT_PHASE_SEARCH)
        return;
    att_yardstick_t y = yardstick(o);
    att_study_state_t state = att_study_converse(&o->study, &y);
    if (state == ATT_STUDY_FINISHED)
        begin_final(o);
    else if (state == ATT_STUDY_FAILED)
        fail(o);
}

int att_optimizer_plan(struct att_optimizer *o, double run_us, att_plan_t *plan)
{
    if (o->list.state != ATT_PLAYLIST_EMPTY || o->switching)
        return 0;
    progress(o);
    if (o->phase == ATT_PHASE_FINAL && att_race_over(o->race))
        decide_race(o);
    if (o->settling) {
        o->switching = true;
        *plan = (att_plan_t){.id = ++o->list.id, .incumbent = o->next};
        return 1;
    }
    double allowance =
        o->config.max_cost > 0 ? o->config.max_cost * run_us - o->cost.lost_us : INFINITY;
    bool broke = allowance <= 0;
    if (!broke && o->phase == ATT_PHASE_SEARCH && o->study.open_count > 0) {
        bool baseline = o->window.stale || o->lists_without >= STALE_LISTS;
        uint32_t samples = o->window.stale ? BASELINE_SAMPLES : 2;
        if (baseline)
            att_playlist_add(&o->list, o->incumbent, o->list.discard + samples, ATT_PLAY_BASELINE,
                             0);
        att_study_list(&o->study, &o->list, att_window_median(&o->window), o->cost.excess,
                       allowance);
        broke = o->list.count == baseline;
    } else if (!broke && o->phase == ATT_PHASE_FINAL) {
        att_race_list(o->race, &o->list);
    } else if (!broke && o->phase == ATT_PHASE_GUARD) {
        att_guard_list(&o->guard, &o->list);
    }
    o->resting = broke && o->phase > ATT_PHASE_BASELINE && o->phase < ATT_PHASE_SETTLED;
    o->window.stale |= o->resting;
    if (broke || o->list.count == 0) {
        o->list.count = 0;
        return 0;
    }
    *plan = (att_plan_t){.incumbent = o->incumbent};
    att_playlist_propose(&o->list, plan);
    return 1;
}

void att_optimizer_committed(struct att_optimizer *o, uint32_t plan_id, uint64_t fence)
{
    if (plan_id != o->list.id)
        return;
    if (o->switching) {
        o->switching = o->settling = false;
        o->incumbent = o->next;
        o->window = (att_window_t){0};
        o->list.quiet_from = fence + o->list.discard;
    } else if (o->list.state == ATT_PLAYLIST_PROPOSED) {
        att_playlist_commit(&o->list, fence);
        o->status.calls += o->list.end - fence;
    }
    progress(o);
}

void att_optimizer_aborted(struct att_optimizer *o, uint32_t plan_id)
{
    if (plan_id != o->list.id)
        return;
    if (o->switching) {
        o->switching = false;
    } else if (o->list.state == ATT_PLAYLIST_PROPOSED) {
        att_study_unlist(&o->study);
        if (o->phase == ATT_PHASE_FINAL && !o->list.abandoned)
            o->race->lists--;
        att_playlist_clear(&o->list);
    }
}

/* ---- tasks of one kind ---- */

void att_optimizer_await(struct att_optimizer *o, bool on)
{
    if (!on)
        att_kin_waited(&o->kin, &o->window);
    o->kin.state = on && o->phase == ATT_PHASE_BASELINE ? ATT_KIN_AWAITED : ATT_KIN_NONE;
    progress(o);
}

void att_optimizer_follow(struct att_optimizer *o, att_setting_t setting, double baseline_us)
{
    att_kin_waited(&o->kin, &o->window);
    if (o->phase == ATT_PHASE_BASELINE)
        o->kin = (att_kin_t){ATT_KIN_KNOWN, setting, baseline_us};
    progress(o);
}

/* ---- what was measured ---- */

void att_optimizer_restart(struct att_optimizer *o, const char *why)
{
    att_study_end(&o->study);
    end_race(o);
    o->list.abandoned = true;
    o->settling = false;
    att_kin_end(&o->kin);
    o->status.followed = 0;
    o->before = o->winner;
    att_cost_renew(&o->cost);
    att_guard_forget(&o->status);
    o->phase = ATT_PHASE_BASELINE;
    o->window = (att_window_t){0};
    o->lists_without = 0;
    snprintf(o->status.reason, sizeof o->status.reason, "searching again: %s", why);
    att_log(ATT_LOG_INFO, "%s", o->status.reason);
}

void att_optimizer_withdraw(struct att_optimizer *o, const char *why)
{
    end_race(o);
    o->list.abandoned = true;
    o->withdrawn = true;
    att_kin_end(&o->kin);
    att_guard_forget(&o->status);
    snprintf(o->status.reason, sizeof o->status.reason, "%s", why);
    settle(o, ATT_SETTING_KEEP);
    o->status.tuned_us = o->status.baseline_us;
    o->status.tuned_samples = o->status.baseline_samples;
}

static void incumbent_ran(struct att_optimizer *o, double duration_us)
{
    if (o->warm_up > 0) {
        o->warm_up--;
        return;
    }
    att_window_add(&o->window, duration_us);
    o->lists_without = 0;
    if (o->phase != ATT_PHASE_SETTLED || o->settling || o->config.apply || o->withdrawn ||
        !att_drift_sample(&o->drift, duration_us))
        return;
    char why[96];
    snprintf(why, sizeof why, "calls take %.1f us, it was %.1f us after the last search",
             o->drift.latest_us, o->drift.reference_us);
    att_optimizer_restart(o, why);
}

void att_optimizer_sample(struct att_optimizer *o, const att_sample_t *sample)
{
    att_sample_t checked = *sample;
    bool sane = isfinite(sample->duration_us) && sample->duration_us > 0;
    checked.usable = sane && sample->usable;
    checked.duration_us = sane ? sample->duration_us : att_window_median(&o->window);
    if (att_playlist_sample(&o->list, &checked) == ATT_PLAY_INCUMBENT && checked.usable)
        incumbent_ran(o, checked.duration_us);
    progress(o);
}

void att_optimizer_step(struct att_optimizer *o, uint64_t call, double step_us, uint32_t period)
{
    if (isfinite(step_us))
        att_playlist_step(&o->list, call, step_us, period);
}

void att_optimizer_advance(struct att_optimizer *o, uint64_t call)
{
    att_playlist_advance(&o->list, call);
    progress(o);
}

void att_optimizer_expire(struct att_optimizer *o)
{
    if (o->list.state != ATT_PLAYLIST_COMMITTED || o->list.abandoned)
        return;
    /* The list stays out until the job has played it, but nobody waits for it any more. */
    o->list.abandoned = true;
    att_yardstick_t y = yardstick(o);
    att_study_timeout(&o->study, &y);
    for (uint32_t i = 0; o->phase == ATT_PHASE_FINAL && i < o->list.count; i++)
        att_race_ran(o->race, &o->list.plays[i]);
    if (o->phase == ATT_PHASE_GUARD)
        guard_ran(o, &o->list);
    progress(o);
}

void att_optimizer_status(const struct att_optimizer *o, att_optimizer_status_t *status)
{
    *status = o->status;
    status->phase = o->phase;
    status->incumbent = o->incumbent;
    status->lost_us = o->cost.lost_us;
    if (o->phase <= ATT_PHASE_SEARCH && att_setting_is_keep(o->incumbent)) {
        status->baseline_us = att_window_median(&o->window);
        status->baseline_samples = o->window.count;
    }
    if (o->config.apply && !o->settling) {
        status->tuned_us = att_window_median(&o->window);
        status->tuned_samples = o->window.count;
    }
}

int att_optimizer_wants_timing(const struct att_optimizer *o)
{
    bool unknown = o->window.count < BASELINE_SAMPLES, watched = !o->config.apply && !o->withdrawn;
    if (o->phase == ATT_PHASE_SETTLED && !o->settling)
        return watched ? o->drift.reference_us == 0 : unknown;
    if (o->phase == ATT_PHASE_BASELINE && o->kin.state == ATT_KIN_AWAITED)
        return unknown;
    return o->phase <= ATT_PHASE_SETTLED && !o->resting;
}
