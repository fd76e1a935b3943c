#include "search/study.h"

#include "search/statistics.h"

int att_study_begin(att_study_t *study, struct att_strategy_host *host, const char *strategy,
                    const att_space_t *space, uint64_t seed)
{
    study->told = 0;
    study->calls = 0;
    study->ranking = (att_ranking_t){0};
    int rc = att_search_begin(host, strategy, space, seed, &study->search, &study->why);
    if (rc == ATT_OK)
        study->state = ATT_STUDY_OPEN;
    else if (rc != -ATT_EBUSY)
        study->state = ATT_STUDY_FAILED;
    return rc;
}

void att_study_end(att_study_t *study)
{
    att_search_end(study->search);
    study->search = NULL;
    study->asking = false;
    study->open_count = 0;
    study->state = ATT_STUDY_IDLE;
}

att_setting_t att_study_best(att_study_t *study)
{
    att_setting_t best = ATT_SETTING_KEEP;
    if (study->search == NULL || att_search_best(study->search, &best, NULL) != ATT_OK)
        return ATT_SETTING_KEEP;
    return best;
}

void att_study_quarantine(att_study_t *study, att_setting_t setting)
{
    if (study->quarantined < ATT_STUDY_QUARANTINE)
        study->quarantine[study->quarantined++] = setting;
}

bool att_study_quarantined(const att_study_t *study, att_setting_t setting)
{
    for (uint32_t i = 0; i < study->quarantined; i++)
        if (att_setting_equal(study->quarantine[i], setting))
            return true;
    return false;
}

/* Takes the trial out of the open ones; the last one moves to its place. */
static void tell(att_study_t *study, uint32_t index, att_outcome_t outcome,
                 const att_yardstick_t *y)
{
    att_open_trial_t *trial = &study->open[index];
    att_result_t result;
    att_trial_result(trial, outcome, y->incumbent_us, y->incumbent_count, &result);
    study->told++;
    if (outcome == ATT_OUTCOME_OK && y->incumbent_us > 0)
        att_ranking_add(&study->ranking, trial->setting,
                        att_midmean(trial->samples_us, trial->count) / y->incumbent_mid_us);
    study->on_tell(study->context, trial, &result);
    if (att_search_tell(study->search, &trial->setting, &result, &study->why) != ATT_OK)
        study->state = ATT_STUDY_FAILED;
    *trial = study->open[--study->open_count];
}

static bool ask(att_study_t *study)
{
    uint32_t most = ATT_PLAN_ENTRIES;
    if (study->max_trials > 0) {
        uint32_t left = study->told < study->max_trials ? study->max_trials - study->told : 0;
        most = left < most ? left : most;
    }
    if (most == 0)
        study->state = ATT_STUDY_FINISHED;
    else if (att_search_ask(study->search, most, &study->why) != ATT_OK)
        study->state = ATT_STUDY_FAILED;
    else
        study->asking = true;
    return study->asking;
}

att_study_state_t att_study_converse(att_study_t *study, const att_yardstick_t *yardstick)
{
    if (study->state != ATT_STUDY_OPEN || study->open_count > 0 || (!study->asking && !ask(study)))
        return study->state;
    att_setting_t settings[ATT_PLAN_ENTRIES];
    uint32_t count;
    int rc = att_search_poll(study->search, settings, &count, &study->why);
    if (rc == 0)
        return study->state;
    study->asking = false;
    if (rc < 0)
        return study->state = ATT_STUDY_FAILED;
    if (count == 0)
        return study->state = ATT_STUDY_FINISHED;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t samples = att_search_samples(study->search, i);
        att_trial_open(&study->open[study->open_count++], settings[i],
                       samples > 0 ? samples : study->samples);
    }
    for (uint32_t i = study->open_count; i-- > 0;)
        if (att_study_quarantined(study, study->open[i].setting))
            tell(study, i, ATT_OUTCOME_ILLEGAL, yardstick);
    return study->state;
}

void att_study_list(att_study_t *study, att_playlist_t *list, double incumbent_us, double excess,
                    double allowance_us)
{
    double cost = 0;
    for (uint32_t i = 0; i < study->open_count; i++) {
        att_open_trial_t *trial = &study->open[i];
        uint32_t calls = att_trial_calls(trial, list->discard);
        cost += calls * incumbent_us * excess;
        if (cost > allowance_us ||
            !att_playlist_add(list, trial->setting, calls, ATT_PLAY_TRIAL, 0))
            break;
        trial->listed = true;
    }
}

void att_study_ran(att_study_t *study, const att_play_t *play, const att_yardstick_t *yardstick)
{
    /* Told trials leave the array, so a trial is found by its setting, not by a place. */
    uint32_t i = 0;
    while (i < study->open_count &&
           !(study->open[i].listed && att_setting_equal(study->open[i].setting, play->setting)))
        i++;
    if (i == study->open_count || study->state != ATT_STUDY_OPEN)
        return;
    att_open_trial_t *trial = &study->open[i];
    trial->listed = false;
    if (trial->calls == 0)
        trial->first_call = play->first;
    trial->calls += play->calls;
    study->calls += play->calls;
    trial->collectives += play->collectives;
    trial->collective_us += play->collective_us;
    att_outcome_t outcome;
    if (att_trial_ran(trial, play->samples_us, play->count, yardstick, &outcome) == ATT_TRIAL_TELL)
        tell(study, i, outcome, yardstick);
}

void att_study_unlist(att_study_t *study)
{
    for (uint32_t i = 0; i < study->open_count; i++)
        study->open[i].listed = false;
}

void att_study_timeout(att_study_t *study, const att_yardstick_t *yardstick)
{
    for (uint32_t i = study->open_count; i-- > 0;)
        if (study->state == ATT_STUDY_OPEN && study->open[i].listed)
            tell(study, i, ATT_OUTCOME_TIMEOUT, yardstick);
}
