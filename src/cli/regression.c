#include "cli/regression.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LEAST_NOISE  0.01
#define LEAST_EFFECT 0.05
#define NOISES       3.0
#define CLIFF        0.75
#define STAYS        0.85

typedef struct pair {
    uint64_t bytes;
    double log_ratio;
} pair_t;

static double time_of(const att_result_row_t *row)
{
    double sum = 0;
    int sides = 0;
    for (int s = 0; s < 2; s++)
        if (row->side[s].time_us > 0) {
            sum += row->side[s].time_us;
            sides++;
        }
    return sides > 0 ? sum / sides : 0;
}

static double median3(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double stated_noise(const att_result_rows_t *rows)
{
    double sum = 0;
    int count = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        for (int s = 0; s < 2; s++)
            if (rows->rows[i].side[s].cv >= 0) {
                sum += rows->rows[i].side[s].cv;
                count++;
            }
    return count > 0 ? sum / count : 0;
}

static double noise_of(const pair_t *pairs, uint32_t count, double *scratch)
{
    uint32_t used = 0;
    for (uint32_t i = 1; i + 1 < count; i++)
        scratch[used++] =
            fabs(pairs[i].log_ratio -
                 median3(pairs[i - 1].log_ratio, pairs[i].log_ratio, pairs[i + 1].log_ratio));
    if (used == 0)
        return 0;
    qsort(scratch, used, sizeof *scratch, by_value);
    return 1.4826 * scratch[used / 2];
}

static void find_ranges(const pair_t *pairs, uint32_t count, att_regression_t *r)
{
    double bound = log1p(fmax(LEAST_EFFECT, NOISES * r->noise));
    for (uint32_t i = 0; i < count && r->count < ATT_REGRESSION_RANGES;) {
        uint32_t end = i;
        double sum = 0;
        while (end < count && fabs(pairs[end].log_ratio) > bound &&
               (pairs[end].log_ratio > 0) == (pairs[i].log_ratio > 0))
            sum += pairs[end++].log_ratio;
        if (end - i >= 2)
            r->ranges[r->count++] =
                (att_regression_range_t){.from_bytes = pairs[i].bytes,
                                         .to_bytes = pairs[end - 1].bytes,
                                         .sizes = end - i,
                                         .effect = expm1(sum / (end - i)),
                                         .confidence = 1 - 2 * pow(0.5, end - i)};
        i = end > i ? end : i + 1;
    }
}

void att_regression_compare(const att_result_rows_t *a, const att_result_rows_t *b,
                            att_regression_t *r)
{
    *r = (att_regression_t){0};
    pair_t *pairs = malloc((a->count + 1) * sizeof *pairs);
    double *scratch = malloc((a->count + 1) * sizeof *scratch);
    for (uint32_t i = 0, k = 0; pairs != NULL && scratch != NULL && i < a->count; i++) {
        while (k < b->count && b->rows[k].bytes < a->rows[i].bytes)
            k++;
        if (k == b->count || b->rows[k].bytes != a->rows[i].bytes)
            continue;
        double before = time_of(&a->rows[i]), after = time_of(&b->rows[k]);
        if (before > 0 && after > 0)
            pairs[r->compared++] = (pair_t){a->rows[i].bytes, log(after / before)};
    }
    if (r->compared > 0) {
        r->noise = fmax(LEAST_NOISE, noise_of(pairs, r->compared, scratch));
        r->noise = fmax(r->noise, hypot(stated_noise(a), stated_noise(b)));
        find_ranges(pairs, r->compared, r);
    }
    free(pairs);
    free(scratch);
}

static double busbw_of(const att_result_row_t *row)
{
    return fmax(row->side[0].busbw_gbs, row->side[1].busbw_gbs);
}

uint64_t att_regression_cliff(const att_result_rows_t *rows, double *effect)
{
    double best = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        double here = busbw_of(&rows->rows[i]);
        if (best > 0 && here < CLIFF * best) {
            bool stays = true;
            double sum = 0;
            for (uint32_t k = i; k < rows->count; k++) {
                stays &= busbw_of(&rows->rows[k]) < STAYS * best;
                sum += busbw_of(&rows->rows[k]) / (rows->count - i);
            }
            if (stays) {
                *effect = 1 - sum / best;
                return rows->rows[i].bytes;
            }
        }
        best = fmax(best, here);
    }
    return 0;
}
