/*
 * wilcoxon: the signed-rank test for paired values: do two strategies differ, given that the pairs
 * share their seeds?
 *
 * Pairs without a difference are dropped (Wilcoxon's own rule), ties of |difference| share the mean
 * rank. Up to 50 pairs the distribution of the rank sum is exact, given the ties: every subset of
 * the ranks is equally likely, and their sums are counted one rank after the other (W. J. Conover,
 * Practical Nonparametric Statistics, 3rd ed., section 5.7). Beyond, the normal approximation with
 * continuity correction and the variance corrected for ties.
 */
#ifndef ATT_SIM_WILCOXON_H
#define ATT_SIM_WILCOXON_H

#include <stdint.h>

typedef struct att_wilcoxon {
    uint32_t pairs;        /* with a difference */
    uint32_t wins, losses; /* pairs in which a is smaller, larger */
    double rank_sum;       /* W+: ranks of the pairs in which a is larger */
    double p;              /* two-sided; 1 without pairs */
    int exact;
} att_wilcoxon_t;

/* -ATT_ENOMEM or 0. */
int att_wilcoxon_test(const double *a, const double *b, uint32_t count, att_wilcoxon_t *result);

#endif
