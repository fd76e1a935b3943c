#include "control/rhythm.h"

#include "search/statistics.h"

#include <math.h>

#define LOOK_EVERY 8    /* calls between two looks for a period */
#define EACH       4u   /* calls of each remainder that it takes */
#define EXPLAINED  0.8  /* of the variance */
#define PAUSE      1.5  /* times the EACH-th longest; above it no time is of a pattern */
#define FLAT       0.05 /* standard deviation of the logarithms, below which there is no pattern */

/* The EACH-th longest time: each place of a pattern has as many. */
static double longest(const att_rhythm_t *r)
{
    double top[EACH] = {0};
    for (uint32_t i = 0; i < r->count; i++) {
        double us = r->us[i];
        for (uint32_t k = 0; k < EACH; k++)
            if (us > top[k]) {
                double less = top[k];
                top[k] = us;
                us = less;
            }
    }
    return top[EACH - 1];
}

/* Variance of the logarithms around the means of their remainders. */
static double variance(const att_rhythm_t *r, const double *logs, uint32_t period, double most_us)
{
    double sum[ATT_RHYTHM_PERIOD] = {0}, squares = 0, explained = 0;
    uint32_t n[ATT_RHYTHM_PERIOD] = {0}, all = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        double x = logs[i];
        if (r->us[i] > most_us)
            continue;
        all++;
        sum[r->call[i] % period] += x;
        n[r->call[i] % period]++;
        squares += x * x;
    }
    for (uint32_t k = 0; k < period; k++)
        explained += n[k] > 0 ? sum[k] * sum[k] / n[k] : 0;
    return (squares - explained) / (all - period);
}

static uint32_t find_period(const att_rhythm_t *r)
{
    if (r->count < 2 * EACH)
        return 0;
    double logs[ATT_RHYTHM_CALLS];
    for (uint32_t i = 0; i < r->count; i++)
        logs[i] = log(r->us[i]);
    double most_us = PAUSE * longest(r), all = variance(r, logs, 1, most_us);
    for (uint32_t k = 2; k <= ATT_RHYTHM_PERIOD && k * EACH <= r->count; k++)
        if (all > FLAT * FLAT && variance(r, logs, k, most_us) < (1 - EXPLAINED) * all)
            return k;
    return 0;
}

void att_rhythm_add(att_rhythm_t *r, uint64_t call, double us)
{
    r->call[r->next % ATT_RHYTHM_CALLS] = call;
    r->us[r->next % ATT_RHYTHM_CALLS] = us;
    r->next++;
    if (r->count < ATT_RHYTHM_CALLS)
        r->count++;
    if (r->next % LOOK_EVERY == 0)
        r->period = find_period(r);
}

/* Median of the times with this remainder; 0: none. */
static double usual(const att_rhythm_t *r, uint64_t remainder)
{
    double us[ATT_RHYTHM_CALLS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->call[i] % r->period == remainder)
            us[n++] = r->us[i];
    return att_median(us, n);
}

/* What a whole period takes, and the place of this call in it. False: not known. */
static bool usually(const att_rhythm_t *r, uint64_t call, double *period_us, double *own_us)
{
    *period_us = *own_us = 0;
    for (uint32_t k = 0; k < r->period; k++) {
        double median = usual(r, k);
        if (!(median > 0))
            return false;
        *period_us += median;
        *own_us = call % r->period == k ? median : *own_us;
    }
    return r->period > 1;
}

double att_rhythm_level(const att_rhythm_t *r, uint64_t call, double us)
{
    double period_us, own_us;
    if (r->period < 2)
        return us;
    return usually(r, call, &period_us, &own_us) ? period_us / r->period + us - own_us : NAN;
}

bool att_rhythm_breaks(const att_rhythm_t *r, uint64_t call, double us)
{
    double period_us, own_us;
    return usually(r, call, &period_us, &own_us) && us - own_us > period_us;
}
