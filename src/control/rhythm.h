/*
 * rhythm: calls of one task that come in a pattern. A training step with k equal buckets calls k
 * times while it computes backwards, and then not before the next step: from start to start most
 * are short, and one of k is long. A few of them say nothing of a setting, as it matters more which
 * ones they are.
 *
 * The period is the smallest one for which calls with the same remainder explain most of the
 * variance of the logarithms (the adjusted R^2 of a one-way analysis of variance); of the three
 * longest times, what is far longer than the fourth is left out, so that a pause now and then hides
 * no pattern. A time is then made level: what it deviates from the median of its remainder is added
 * to the mean over the remainders. Over a whole period that leaves the sum as it is. Only calls
 * with one and the same setting may be added: settings that take turns would make a pattern too.
 */
#ifndef ATT_CONTROL_RHYTHM_H
#define ATT_CONTROL_RHYTHM_H

#include <stdbool.h>
#include <stdint.h>

#define ATT_RHYTHM_CALLS  64
#define ATT_RHYTHM_PERIOD 16 /* the longest; beyond it the long one is too rare to matter */

typedef struct att_rhythm {
    uint32_t count, next; /* of the ring; calls since it was empty */
    uint32_t period;      /* 0, 1: none */
    uint64_t call[ATT_RHYTHM_CALLS];
    double us[ATT_RHYTHM_CALLS];
} att_rhythm_t;

/* A time from a call's start to the next call's, above 0, in order of the calls. */
void att_rhythm_add(att_rhythm_t *rhythm, uint64_t call, double us);
/* The time of a call that was added, made level; below 0 when it is shorter than usual by more than
 * the mean, NAN when its place in the pattern is not known. As it is when there is no pattern. */
double att_rhythm_level(const att_rhythm_t *rhythm, uint64_t call, double us);
/* This time is longer than usual by more than a whole period. False when there is no pattern. */
bool att_rhythm_breaks(const att_rhythm_t *rhythm, uint64_t call, double us);

#endif
