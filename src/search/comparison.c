#include "search/comparison.h"

#include "search/statistics.h"

#include <math.h>
#include <stdbool.h>

void att_comparison_add(att_comparison_t *comparison, double reference_us, double challenger_us)
{
    if (comparison->count < ATT_COMPARISON_ROOM && reference_us > 0 && challenger_us > 0)
        comparison->gains[comparison->count++] = log(reference_us / challenger_us);
}

void att_comparison_bounds(att_comparison_t *c)
{
    c->median = expm1(att_median(c->gains, c->count));
    c->lower = expm1(att_median_lower(c->gains, c->count, ATT_COMPARISON_LEVEL));
    c->upper = expm1(att_median_upper(c->gains, c->count, ATT_COMPARISON_LEVEL));
}

double att_comparison_error(const att_comparison_t *c)
{
    return (c->upper - c->lower) / ATT_COMPARISON_ERRORS;
}

att_verdict_t att_comparison_look(att_comparison_t *c, double worth)
{
    bool last = ++c->lists == ATT_COMPARISON_LISTS;
    att_comparison_bounds(c);
    if (c->count < ATT_COMPARISON_FIRST << c->looks && !last)
        return ATT_VERDICT_OPEN;
    c->looks++;
    if (c->lower > 0 && c->median > ATT_COMPARISON_LEAST)
        return ATT_VERDICT_WIN;
    double error = att_comparison_error(c);
    if (c->upper < ATT_COMPARISON_LEAST ||
        (isfinite(error) && att_expected_gain(c->median, error) < worth))
        return ATT_VERDICT_NONE;
    if (c->looks < ATT_COMPARISON_LOOKS && !last)
        return ATT_VERDICT_OPEN;
    return isinf(c->upper) ? ATT_VERDICT_BLIND : ATT_VERDICT_NONE;
}
