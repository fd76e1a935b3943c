/*
 * ranking: the fastest settings of a search, and the race among the best few of them against
 * NCCL's choice that picks the one for the guard.
 *
 * A race runs all of them interleaved, list by list, and compares list by list, so that a machine
 * that changes its pace between two lists spoils nothing. Who is behind the fastest by more than
 * the noise is out, so that calls go to those that are still close; it ends when one is left, or
 * the others are known well enough to call them equal.
 */
#ifndef ATT_SEARCH_RANKING_H
#define ATT_SEARCH_RANKING_H

#include "attune/setting.h"
#include "search/playlist.h"

#include <stdbool.h>
#include <stdint.h>

#define ATT_RANKING_ROOM    12
#define ATT_RANKING_OF_PAIR 4      /* of one algorithm and protocol: neighbours crowd others out */
#define ATT_RACE_CANDIDATES 9      /* + NCCL's choice */
#define ATT_RACE_OF_PAIR    4      /* of one algorithm and protocol */
#define ATT_RACE_BLOCK      5      /* usable samples of a runner in a row at first */
#define ATT_RACE_LONG       15     /* ... and later */
#define ATT_RACE_FIRST      4      /* lists before anybody can be out */
#define ATT_RACE_LEAST      6      /* samples, below which a runner is left out */
#define ATT_RACE_LISTS      24     /* lists before the race is decided with what there is */
#define ATT_RACE_NEAR       1.10   /* only what came this close to the fastest runs */
#define ATT_RACE_OUT        2.5    /* standard errors behind the fastest: out */
#define ATT_RACE_KNOWN      0.0075 /* standard error of a difference that needs no more lists */
#define ATT_RACE_TIE        0.005  /* durations this close are equal: fewer channels win */

typedef struct att_ranked {
    att_setting_t setting;
    double score; /* duration over the incumbent's at the same time */
} att_ranked_t;

/* Distinct settings, fastest first; a few of each algorithm and protocol. */
typedef struct att_ranking {
    uint32_t count;
    att_ranked_t entries[ATT_RANKING_ROOM];
} att_ranking_t;

/* A setting that is there already keeps the mean of its scores. */
void att_ranking_add(att_ranking_t *ranking, att_setting_t setting, double score);

typedef struct att_runner {
    att_setting_t setting;
    bool out;
    uint32_t calls;
    uint64_t first_call;
    uint32_t count; /* samples kept for the report */
    double samples_us[ATT_PLAY_SAMPLES];
    double sum; /* of the current list: logarithms of its blocks' durations */
    uint32_t blocks;
    double logs[ATT_RACE_LISTS]; /* mean of each list; NAN: nothing came back */
} att_runner_t;

/* runners[0] is NCCL's choice. */
typedef struct att_race {
    uint32_t count;
    uint32_t lists;  /* proposed so far */
    uint32_t judged; /* of these, ended */
    att_runner_t runners[1 + ATT_RACE_CANDIDATES + 2];
} att_race_t;

/* NCCL's choice, the best few of the ranking, and the extra settings (KEEP is skipped). */
void att_race_begin(att_race_t *race, const att_ranking_t *ranking, const att_setting_t *extra,
                    uint32_t extra_count);
/* A list of it has ended (every entry went to att_race_ran): who is out? */
void att_race_judge(att_race_t *race);
/* Nobody needs more samples, or the lists are used up. */
bool att_race_over(const att_race_t *race);
/* Append a block or more of everybody who is in, interleaved. */
void att_race_list(att_race_t *race, att_playlist_t *list);
void att_race_ran(att_race_t *race, const att_play_t *play);
/* The winner's index; 0 when NCCL's choice was the fastest or nothing came back. */
uint32_t att_race_winner(const att_race_t *race);

#endif
