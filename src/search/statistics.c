#include "search/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Callers hold at most a few hundred values; larger series are cut to the latest. */
#define MOST 1024

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t sorted(const double *values, uint32_t count, double *copy)
{
    if (count == 0)
        return 0;
    if (count > MOST) {
        values += count - MOST;
        count = MOST;
    }
    memcpy(copy, values, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, ascending);
    return count;
}

static double middle(const double *in_order, uint32_t count)
{
    return count % 2 ? in_order[count / 2] : (in_order[count / 2 - 1] + in_order[count / 2]) / 2;
}

double att_median(const double *values, uint32_t count)
{
    double copy[MOST];
    if (count == 0)
        return 0;
    count = sorted(values, count, copy);
    return middle(copy, count);
}

double att_midmean(const double *values, uint32_t count)
{
    double copy[MOST];
    count = sorted(values, count, copy);
    uint32_t cut = count / 4;
    return att_mean(copy + cut, count - 2 * cut);
}

double att_mean(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / count : 0;
}

double att_stddev(const double *values, uint32_t count)
{
    if (count < 2)
        return 0;
    double mean = att_mean(values, count), sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (count - 1));
}

double att_relative_spread(const double *values, uint32_t count)
{
    double copy[MOST];
    if (count < 3)
        return 0;
    count = sorted(values, count, copy);
    double center = middle(copy, count);
    if (!(center > 0))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        copy[i] = fabs(copy[i] - center);
    qsort(copy, count, sizeof *copy, ascending);
    return 1.4826 * middle(copy, count) / center;
}

double att_expected_gain(double mean, double error)
{
    if (!(error > 0))
        return mean > 0 ? mean : 0;
    double t = mean / error;
    return error * (exp(-0.5 * t * t) / sqrt(2 * M_PI) + t * 0.5 * erfc(-t * M_SQRT1_2));
}

uint32_t att_sign_rank(uint32_t n, double level)
{
    /* Walk the binomial distribution from below; in logarithms, as 2^-n underflows early. */
    double log_term = -(double)n * log(2.0), below = 0;
    for (uint32_t k = 0; k < n; k++) {
        below += exp(log_term);
        if (below > level)
            return k;
        log_term += log((double)(n - k)) - log((double)(k + 1));
    }
    return n;
}

double att_median_lower(const double *values, uint32_t count, double level)
{
    double copy[MOST];
    count = sorted(values, count, copy);
    uint32_t k = att_sign_rank(count, level);
    return k == 0 ? -INFINITY : copy[k - 1];
}

double att_median_upper(const double *values, uint32_t count, double level)
{
    double copy[MOST];
    count = sorted(values, count, copy);
    uint32_t k = att_sign_rank(count, level);
    return k == 0 ? INFINITY : copy[count - k];
}
