#include "control/rhythm.h"

#include "search/statistics.h"

#include <math.h>

#define LOOK_EVERY 8    /* calls between two looks for a period */
#define EACH       4u   /* calls of each remainder that it takes */
#define EXPLAINED  0.8  /* of the variance */
#define FLAT       0.05 /* standard deviation of the logarithms, below which there is no pattern */

/* Variance of the logarithms around the means of their remainders. */
static double variance(const att_rhythm_t *r, uint32_t period)
{
    double sum[ATT_RHYTHM_PERIOD] = {0}, squares = 0, explained = 0;
    uint32_t n[ATT_RHYTHM_PERIOD] = {0};
    for (uint32_t i = 0; i < r->count; i++) {
        double x = log(r->us[i]);
        sum[r->call[i] % period] += x;
        n[r->call[i] % period]++;
        squares += x * x;
    }
    for (uint32_t k = 0; k < period; k++)
        explained += n[k] > 0 ? sum[k] * sum[k] / n[k] : 0;
    return (squares - explained) / (r->count - period);
}

static uint32_t find_period(const att_rhythm_t *r)
{
    if (r->count < 2 * EACH)
        return 0;
    double all = variance(r, 1);
    for (uint32_t k = 2; k <= ATT_RHYTHM_PERIOD && k * EACH <= r->count; k++)
        if (all > FLAT * FLAT && variance(r, k) < (1 - EXPLAINED) * all)
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

double att_rhythm_level(const att_rhythm_t *r, uint64_t call, double us)
{
    if (r->period < 2)
        return us;
    double sum = 0, own = 0;
    for (uint32_t k = 0; k < r->period; k++) {
        double median = usual(r, k);
        if (!(median > 0))
            return -1;
        sum += median;
        own = call % r->period == k ? median : own;
    }
    return sum / r->period + us - own;
}
