/*
 * statistics: the few numbers that the optimizer decides with. Robust ones, because samples of a
 * running job have outliers. No state.
 */
#ifndef ATT_SEARCH_STATISTICS_H
#define ATT_SEARCH_STATISTICS_H

#include <stdint.h>

/* Of `count` values in any order; 0 for none. */
double att_median(const double *values, uint32_t count);
double att_mean(const double *values, uint32_t count);
/* Mean of the middle half (the interquartile mean). Beside other work durations cluster around
 * several values, between which the median of a few samples jumps; this one moves with the share of
 * each, as total time does, and still ignores a quarter of outliers on either side. */
double att_midmean(const double *values, uint32_t count);
/* Sample standard deviation (divisor count - 1); 0 below two values. */
double att_stddev(const double *values, uint32_t count);
/* Relative spread around the median: 1.4826 * median(|x - median|) / median, which is the
 * coefficient of variation for normal noise and hardly moves for outliers. 0 below three values. */
double att_relative_spread(const double *values, uint32_t count);

/* E max(x, 0) of a normal x: what may still be gained by what promises `mean` within `error`. */
double att_expected_gain(double mean, double error);

/*
 * One-sided confidence bound for the median by order statistics (the inverted sign test).
 *
 * For n independent values of a continuous distribution the number below its median is
 * B ~ Binomial(n, 1/2). With x(1) <= ... <= x(n), P(x(k) > median) = P(B <= k - 1), so the largest
 * k with P(B <= k - 1) <= level makes x(k) a lower bound that is wrong with at most that
 * probability, whatever the distribution (W. J. Conover, Practical Nonparametric Statistics, 3rd
 * ed., section 3.2). The upper bound is x(n + 1 - k).
 *
 * Return k, or 0 when n is too small for any bound (n < log2(1 / level)).
 */
uint32_t att_sign_rank(uint32_t n, double level);
/* x(k) and x(n+1-k); minus and plus infinity when there is no bound. */
double att_median_lower(const double *values, uint32_t count, double level);
double att_median_upper(const double *values, uint32_t count, double level);

#endif
