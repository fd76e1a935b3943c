/*
 * guard: the winner of a search against NCCL's choice, in alternating blocks of calls. Holds the
 * samples of both sides; comparison.h decides.
 *
 * A setting that is faster alone may slow the compute beside it by more than it gains (Lagom, arXiv
 * 2602.20656, section 3). So where samples are of the collective alone and the length of the step
 * that each call begins is known as well, the same pairs compare both. Whoever makes the step
 * longer by more than the noise and ATT_COMPARISON_LEAST does not win, and who wins is not believed
 * before what the step may lose by it, on average, is not worth more pairs. A collective that takes
 * a share s of the step is thought to change it by about s / 2 (the standard deviation of a normal
 * prior): what takes little of a noisy step is not asked for long. Where calls come in a pattern a
 * block has a whole period of them, as what is lost may all lie in the longest step.
 *
 * As in the race (race.h) what may still be gained is weighed against the calls: it is given up
 * when that is less than ATT_GUARD_WORTH by the time that the guard took as many calls as what led
 * to it, half of it when it took half of them. At 7 % noise and after 800 calls a gain of 10 % is
 * seen with 90 calls, one of 3 % with 520, and that there is none with 550.
 */
#ifndef ATT_SEARCH_GUARD_H
#define ATT_SEARCH_GUARD_H

#include "search/comparison.h"
#include "search/playlist.h"

#include <stdbool.h>
#include <stddef.h>

#define ATT_GUARD_BLOCK 4   /* usable samples of a block, or a whole period of longer patterns */
#define ATT_GUARD_ROOM  256 /* samples of a side that are kept for the report */
#define ATT_GUARD_WORTH 0.01
#define ATT_GUARD_SPENT 400 /* calls that what led to it counts at least */
#define ATT_GUARD_SHARE 0.5 /* of the collective's share of the step: its expected change */

typedef struct att_guard_side {
    att_setting_t setting;
    uint64_t first_call;
    uint32_t calls;
    uint32_t count;
    double samples_us[ATT_GUARD_ROOM];
} att_guard_side_t;

typedef struct att_guard {
    att_guard_side_t sides[2]; /* NCCL's choice, the winner */
    uint32_t spent;            /* calls that led to it: of the search and its race */
    att_comparison_t comparison;
    att_comparison_t beside; /* of the other measure: the step where samples are of the collective,
                                the collective where they are of the step */
    bool steps;              /* it is the step */
    att_comparison_t share;  /* NCCL's choice, its blocks in both measures */
} att_guard_t;

void att_guard_begin(att_guard_t *guard, att_setting_t winner, uint32_t spent);
/* Append as many pairs of blocks as fit. */
void att_guard_list(const att_guard_t *guard, att_playlist_t *list);
/* The list has ended (or got as far as it got): take its pairs and look. */
att_verdict_t att_guard_ran(att_guard_t *guard, const att_playlist_t *list);
/* Durations and gains of both sides, and whether the winner harms. */
void att_guard_status(const att_guard_t *guard, att_verdict_t verdict,
                      att_optimizer_status_t *status);
/* What it told is of the search that it ended, and of no later one. */
void att_guard_forget(att_optimizer_status_t *status);
/* The outcome in words: "wins by 28.1 % (lower 95 % bound 27.4 %)". */
void att_guard_text(const att_guard_t *guard, att_verdict_t verdict, char *text, size_t size);

#endif
