#include "sim/wilcoxon.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

#define EXACT_MOST 25
#define SUMS       (EXACT_MOST * (EXACT_MOST + 1) / 2 + 1)

typedef struct att_pair {
    double size; /* |difference| */
    int larger;  /* a > b */
} att_pair_t;

static int by_size(const void *x, const void *y)
{
    double a = ((const att_pair_t *)x)->size, b = ((const att_pair_t *)y)->size;
    return (a > b) - (a < b);
}

/* P(W+ <= w) for n pairs without ties: subsets of 1..n with a sum of at most w, over 2^n. */
static double exact_below(uint32_t n, double w)
{
    double ways[SUMS] = {1};
    uint32_t most = n * (n + 1) / 2;
    for (uint32_t rank = 1; rank <= n; rank++)
        for (uint32_t sum = most; sum >= rank; sum--)
            ways[sum] += ways[sum - rank];
    double total = 0;
    for (uint32_t sum = 0; sum <= most && sum <= w; sum++)
        total += ways[sum];
    return ldexp(total, -(int)n);
}

static double two_sided(uint32_t n, double w, double ties, int exact)
{
    double mean = n * (n + 1.0) / 4, most = n * (n + 1.0) / 2;
    double smaller = w < most - w ? w : most - w;
    double p;
    if (exact) {
        p = 2 * exact_below(n, smaller);
    } else {
        double variance = n * (n + 1.0) * (2 * n + 1.0) / 24 - ties / 48;
        double z = (mean - smaller - 0.5) / sqrt(variance);
        p = z > 0 ? erfc(z / M_SQRT2) : 1;
    }
    return p < 1 ? p : 1;
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
    double ties = 0; /* sum of t^3 - t over groups of equal size */
    for (uint32_t i = 0, j; i < r.pairs; i = j) {
        for (j = i; j < r.pairs && pairs[j].size == pairs[i].size; j++)
            ;
        double rank = (i + 1 + j) / 2.0, t = j - i;
        ties += t * t * t - t;
        for (uint32_t k = i; k < j; k++)
            r.rank_sum += pairs[k].larger ? rank : 0;
    }
    free(pairs);
    if (r.pairs > 0) {
        r.exact = r.pairs <= EXACT_MOST && ties == 0;
        r.p = two_sided(r.pairs, r.rank_sum, ties, r.exact);
    }
    *result = r;
    return ATT_OK;
}
