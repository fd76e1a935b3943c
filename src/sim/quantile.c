#include "sim/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double att_quantile(const double *values, uint32_t count, double q)
{
    double *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (sorted == NULL)
        return NAN;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    /* 0.99 * 100 must be rank 99, not 100. */
    double rank = ceil(q * count - 1e-9);
    double value = sorted[rank < 1 ? 0 : (uint32_t)rank - 1];
    free(sorted);
    return value;
}
