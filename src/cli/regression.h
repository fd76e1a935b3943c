/*
 * regression: two result sets by size, and one by itself: where times differ beyond noise, and
 * where bus bandwidth falls off a cliff.
 *
 * Difference of a size: the ratio of its times, mean of the sides. Noise: 1.4826 times the median
 * absolute deviation of the log ratios from the running median of three sizes, at least that of
 * -I's variation where given, at least 1 %. A range is a run of at least two sizes whose ratios all
 * lie on one side beyond max(5 %, 3 times the noise). Confidence: 1 - the chance that so many in a
 * row are on one side by luck, 2 * 2^-n.
 */
#ifndef ATT_CLI_REGRESSION_H
#define ATT_CLI_REGRESSION_H

#include "cli/result_rows.h"

#define ATT_REGRESSION_RANGES 64

typedef struct att_regression_range {
    uint64_t from_bytes, to_bytes;
    uint32_t sizes;
    double effect;     /* geometric mean of time b / time a, minus 1: above 0 is slower */
    double confidence; /* 0..1 */
} att_regression_range_t;

typedef struct att_regression {
    att_regression_range_t ranges[ATT_REGRESSION_RANGES];
    uint32_t count;
    uint32_t compared; /* sizes that both have */
    double noise;      /* relative */
} att_regression_t;

void att_regression_compare(const att_result_rows_t *a, const att_result_rows_t *b,
                            att_regression_t *regression);

/* Sizes from which on bus bandwidth is below 3/4 of the best of smaller sizes, and stays below 0.85
 * of it to the end: *effect is the share lost. 0: there is none. */
uint64_t att_regression_cliff(const att_result_rows_t *rows, double *effect);

#endif
