/*
 * compare: two results side by side: what is faster, slower, or not to be told apart.
 *
 * The difference of an entry is the ratio of its times. Its noise bound is the largest of
 *   - what the caller asks for, 1 % else;
 *   - the 95 % intervals of both times, put together as independent (medians: by order statistics,
 *     search/statistics.h; means: 1.96 standard errors);
 *   - 3 times the scatter of the ratios from size to size, where at least 5 sizes of a kind are in
 *     both: 1.4826 times the median absolute difference of neighbours' log ratios over sqrt(2),
 * their standard deviation when they are independent. A change that holds over sizes adds nothing.
 * Where neither the second nor the third is known, 5 % is assumed, and said so.
 */
#ifndef ATT_CLI_COMPARE_H
#define ATT_CLI_COMPARE_H

#include "cli/compare_side.h"
#include "cli/regression.h"

#include <stdbool.h>
#include <stdio.h>

#define ATT_COMPARE_LEAST   0.01
#define ATT_COMPARE_ASSUMED 0.05

typedef enum att_compare_verdict {
    ATT_COMPARE_NOISE = 0,
    ATT_COMPARE_BETTER = 1, /* b is faster */
    ATT_COMPARE_WORSE = 2,
    ATT_COMPARE_UNLIKE = 3 /* their times were taken by different means */
} att_compare_verdict_t;

typedef enum att_compare_bound {
    ATT_COMPARE_BOUND_LEAST = 0,
    ATT_COMPARE_BOUND_SAMPLES = 1,
    ATT_COMPARE_BOUND_SCATTER = 2,
    ATT_COMPARE_BOUND_ASSUMED = 3
} att_compare_bound_t;
const char *att_compare_bound_name(att_compare_bound_t bound);
const char *att_compare_verdict_name(att_compare_verdict_t verdict);

typedef struct att_compare_pair {
    const att_compare_entry_t *a, *b;
    double speedup; /* time of a over time of b */
    double bound;   /* relative */
    att_compare_bound_t from;
    att_compare_verdict_t verdict;
} att_compare_pair_t;

typedef struct att_compare {
    const att_compare_side_t *a, *b;
    att_compare_pair_t *pairs; /* kinds together, by size */
    uint32_t count, better, worse, noise, unlike;
    uint32_t only_a, only_b; /* entries without counterpart */
    double speedup;          /* geometric mean over those that are alike; 0: there are none */
} att_compare_t;

/* least: of every bound; negative: the default. -ATT_EMISMATCH: unlike things; one line. The sides
 * must outlive the result. */
int att_compare_make(att_compare_side_t *a, att_compare_side_t *b, double least,
                     att_compare_t *compare, att_error_t *error);
void att_compare_free(att_compare_t *compare);

void att_compare_print(const att_compare_t *compare, FILE *out);
int att_compare_json(const att_compare_t *compare, FILE *out, att_error_t *error);

#endif
