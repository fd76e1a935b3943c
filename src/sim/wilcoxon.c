#include "sim/wilcoxon.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

#define EXACT_MOST 50
/* Ranks are doubled, so that the mean ranks of ties are whole numbers. */
#define SUMS (EXACT_MOST * (EXACT_MOST + 1) + 1)

typedef struct att_pair {
    double size; /* |difference| */
    int larger;  /* a > b */
} att_pair_t;

static int by_size(const void *x, const void *y)
{
    double a = ((const att_pair_t *)x)->size, b = ((const att_pair_t *)y)->size;
    return (a > b) - (a < b);
}

/* P(W+ <= w) when each rank belongs to W+ with probability 1/2: subsets of the ranks with a sum of
 * at most w, over 2^n. */
static double exact_below(const uint32_t *doubled, uint32_t n, double w)
{
    double ways[SUMS] = {1};
    for (uint32_t i = 0, most = 0; i < n; i++) {
        most += doubled[i];
        for (uint32_t sum = most; sum >= doubled[i]; sum--)
            ways[sum] += ways[sum - doubled[i]];
    }
    double total = 0;
    for (uint32_t sum = 0; sum < SUMS && sum <= 2 * w; sum++)
        total += ways[sum];
    return ldexp(total, -(int)n);
}

static double normal_below(uint32_t n, double w, double ties)
{
    double mean = n * (n + 1.0) / 4;
    double variance = n * (n + 1.0) * (2 * n + 1.0) / 24 - ties / 48;
    double z = (mean - w - 0.5) / sqrt(variance);
    return z > 0 ? erfc(z / M_SQRT2) / 2 : 0.5;
}

int att_wilcoxon_test(const double *a, const double *b, uint32_t count, att_wilcoxon_t *result)
{
    att_pair_t *pairs = malloc((count > 0 ? count : 1) * sizeof *pairs);
    if (pairs == NULL)
        return -ATT_ENOMEM;
    att_wilcoxon_t r = {.p = 1};
    for (uint32_t i = 0; i < count; i++) {
        if (a[i] == b[i])
            continue;
        pairs[r.pairs++] = (att_pair_t){fabs(a[i] - b[i]), a[i] > b[i]};
        r.losses += a[i] > b[i];
        r.wins += a[i] < b[i];
    }
    qsort(pairs, r.pairs, sizeof *pairs, by_size);
    uint32_t doubled[EXACT_MOST];
    double ties = 0; /* sum of t^3 - t over groups of equal size */
    for (uint32_t i = 0, j; i < r.pairs; i = j) {
        for (j = i; j < r.pairs && pairs[j].size == pairs[i].size; j++)
            ;
        double rank = (i + 1 + j) / 2.0, t = j - i;
        ties += t * t * t - t;
        for (uint32_t k = i; k < j; k++) {
            r.rank_sum += pairs[k].larger ? rank : 0;
            if (k < EXACT_MOST)
                doubled[k] = i + 1 + j;
        }
    }
    free(pairs);
    if (r.pairs > 0) {
        double most = r.pairs * (r.pairs + 1.0) / 2;
        double smaller = r.rank_sum < most - r.rank_sum ? r.rank_sum : most - r.rank_sum;
        r.exact = r.pairs <= EXACT_MOST;
        double below =
            r.exact ? exact_below(doubled, r.pairs, smaller) : normal_below(r.pairs, smaller, ties);
        r.p = below < 0.5 ? 2 * below : 1;
    }
    *result = r;
    return ATT_OK;
}
