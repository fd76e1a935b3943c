/*
 * race: the final of a search: the best few settings and NCCL's choice run interleaved, to pick the
 * one for the guard.
 *
 * It goes in rounds: everybody who is in runs one block, one after the other, and rounds are
 * compared, so that a machine that changes its pace spoils nothing. After each list every runner is
 * asked what is lost by leaving it out, on average over what its duration may be: with d, how much
 * slower than the fastest it was, and e, the standard error of d, that is
 *
 *     L = e (phi(t) - t Phi(-t)),  t = d / e
 *
 * (the expected opportunity cost of a normal difference: S. E. Chick, K. Inoue, New two-stage and
 * sequential procedures for selecting the best simulated system, Operations Research 49, 2001). It
 * is out when that is not worth more calls. What is worth them depends on what was spent: the race
 * as a whole may lose ATT_RACE_WORTH of a call's duration by the time that it took as many calls as
 * the search, half of it when it took half of them, and the runners share that. So who is plainly
 * slower is out at once and a real difference is found, while a race among equals ends after about
 * as many calls as the search: eight of them at 7 % noise take 430 calls after a search of 400, and
 * the number grows but with the power 2/3 of the noise.
 */
#ifndef ATT_SEARCH_RACE_H
#define ATT_SEARCH_RACE_H

#include "search/playlist.h"
#include "search/ranking.h"

#define ATT_RACE_CANDIDATES 9     /* + NCCL's choice */
#define ATT_RACE_EXTRA      2     /* settings beside those of the ranking */
#define ATT_RACE_BLOCK      5     /* usable samples of a runner in a row */
#define ATT_RACE_ROUNDS     4     /* of a list at most */
#define ATT_RACE_FIRST      3     /* rounds before anybody can be out */
#define ATT_RACE_LEAST      6     /* samples, below which a runner is left out */
#define ATT_RACE_LISTS      24    /* lists before the race is decided with what there is */
#define ATT_RACE_NEAR       1.10  /* only what came this close to the fastest runs */
#define ATT_RACE_WORTH      0.015 /* relative loss that a race as long as the search may leave */
#define ATT_RACE_TIE        0.005 /* durations this close are equal: fewer channels win */

typedef struct att_runner {
    att_setting_t setting;
    bool out;
    uint32_t calls;
    uint64_t first_call;
    uint32_t count; /* samples kept for the report */
    double samples_us[ATT_PLAY_SAMPLES];
    uint32_t blocks;                               /* that ran since the last judgement */
    double logs[ATT_RACE_LISTS * ATT_RACE_ROUNDS]; /* duration of each round's block, logarithm;
                                                      NAN: nothing came back */
} att_runner_t;

/* runners[0] is NCCL's choice. */
typedef struct att_race {
    uint32_t count;
    uint32_t lists;  /* proposed so far */
    uint32_t rounds; /* judged so far */
    uint32_t calls, search_calls;
    att_runner_t runners[1 + ATT_RACE_CANDIDATES + ATT_RACE_EXTRA];
} att_race_t;

/* NCCL's choice, the best few of the ranking, and the extra settings (KEEP is skipped), after a
 * search whose trials took so many calls. */
void att_race_begin(att_race_t *race, const att_ranking_t *ranking, const att_setting_t *extra,
                    uint32_t extra_count, uint32_t search_calls);
/* A list of it has ended (every entry went to att_race_ran): who is out? */
void att_race_judge(att_race_t *race);
/* One is left, or the lists are used up. */
bool att_race_over(const att_race_t *race);
/* Append a block or more of everybody who is in, interleaved. */
void att_race_list(att_race_t *race, att_playlist_t *list);
/* An entry has ended; those of one runner in the order in which they ran. */
void att_race_ran(att_race_t *race, const att_play_t *play);
/* The winner's index; 0 when NCCL's choice was the fastest or nothing came back. */
uint32_t att_race_winner(const att_race_t *race);

#endif
