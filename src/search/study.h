/*
 * study: the conversation with the strategy in one search: what it asked, what of that is still to
 * be run, what it was told, and the ranking of the results. Owns the search.
 */
#ifndef ATT_SEARCH_STUDY_H
#define ATT_SEARCH_STUDY_H

#include "search/playlist.h"
#include "search/ranking.h"
#include "search/strategy_host.h"
#include "search/trial.h"

#define ATT_STUDY_QUARANTINE 32

typedef enum att_study_state {
    ATT_STUDY_IDLE = 0,     /* no search */
    ATT_STUDY_OPEN = 1,     /* trials to run, or the strategy is thinking */
    ATT_STUDY_FINISHED = 2, /* the strategy has nothing more to ask, or the trials are used up */
    ATT_STUDY_FAILED = 3    /* the strategy failed; text in `why` */
} att_study_state_t;

/* Called for each setting that is told. */
typedef void (*att_study_fn)(void *context, const att_open_trial_t *trial,
                             const att_result_t *result);

typedef struct att_study {
    uint32_t max_trials; /* 0: the strategy decides */
    uint32_t samples;    /* of a full trial */
    att_study_fn on_tell;
    void *context;
    att_setting_t quarantine[ATT_STUDY_QUARANTINE]; /* told as ILLEGAL, never run */
    uint32_t quarantined;

    att_study_state_t state;
    att_error_t why;
    struct att_search *search;
    bool asking;
    att_open_trial_t open[ATT_PLAN_ENTRIES];
    uint32_t open_count;
    uint32_t told;
    uint32_t calls; /* of trials, in this search */
    att_ranking_t ranking;
} att_study_t;

/* IDLE -> OPEN. -ATT_EBUSY: the host has no room now. Other errors: the strategy failed. */
int att_study_begin(att_study_t *study, struct att_strategy_host *host, const char *strategy,
                    const att_space_t *space, uint64_t seed);
/* Ask when nothing is open, take the answer when it is there. Returns the state. */
att_study_state_t att_study_converse(att_study_t *study, const att_yardstick_t *yardstick);
/* The strategy's own idea of the best; KEEP when it has none. */
att_setting_t att_study_best(att_study_t *study);
/* -> IDLE: the search is over; the ranking stays. */
void att_study_end(att_study_t *study);

/* Append open trials, each of which is expected to cost `excess` times its run time, while they fit
 * into the allowance (microseconds). */
void att_study_list(att_study_t *study, att_playlist_t *list, double incumbent_us, double excess,
                    double allowance_us);
/* An entry of a trial has ended. */
void att_study_ran(att_study_t *study, const att_play_t *play, const att_yardstick_t *yardstick);
/* The list that is out never held: its trials run again. */
void att_study_unlist(att_study_t *study);
/* The list that is out does not come back: its trials are told as TIMEOUT. */
void att_study_timeout(att_study_t *study, const att_yardstick_t *yardstick);
void att_study_quarantine(att_study_t *study, att_setting_t setting);
bool att_study_quarantined(const att_study_t *study, att_setting_t setting);

#endif
