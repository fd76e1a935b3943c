#include "profile/device_clock.h"

/* Windows grow from the first on: a trace is of use early, and later ones have more samples. */
#define FIRST_WINDOW_NS 50000000ll
#define LAST_WINDOW_NS  1000000000ll
#define FIRST_DRIFT     50e-6 /* crystals are within this of each other */

static int64_t window_ns(const att_device_clock_t *c)
{
    return c->points < 5 ? FIRST_WINDOW_NS << c->points : LAST_WINDOW_NS;
}

int att_device_clock_finish(att_device_clock_t *c, att_device_clock_point_t *point)
{
    if (c->samples == 0)
        return 0;
    int64_t half = (c->to_ns - c->from_ns) / 2;
    int64_t gap = c->high_ns - c->low_ns;
    att_device_clock_point_t now = {
        .at_ns = c->from_ns + half,
        .offset_ns = c->low_ns + gap / 2 + (int64_t)(c->drift * (double)half),
    };
    /* Half the gap (crossed bounds: the slope was off by that much), and what the slope may be off
     * by over half the window. */
    double slope_error = c->points < 2 ? FIRST_DRIFT : c->drift_error;
    uint64_t uncertainty =
        (uint64_t)((gap < 0 ? -gap : gap) / 2) + (uint64_t)(slope_error * (double)half) + 1;
    now.uncertainty_ns = uncertainty > UINT32_MAX ? UINT32_MAX : (uint32_t)uncertainty;
    if (c->points > 0 && now.at_ns > c->last.at_ns) {
        double slope =
            (double)(now.offset_ns - c->last.offset_ns) / (double)(now.at_ns - c->last.at_ns);
        c->drift_error = slope > c->drift ? slope - c->drift : c->drift - slope;
        c->drift += (slope - c->drift) / (c->points < 4 ? (double)c->points : 4.0);
    }
    c->last = now;
    c->points++;
    c->samples = 0;
    *point = now;
    return 1;
}

int att_device_clock_add(att_device_clock_t *c, int64_t decided_ns, int64_t start_ns,
                         int64_t stop_ns, int64_t seen_ns, att_device_clock_point_t *point)
{
    int full = 0;
    if (c->samples > 0 && start_ns - c->from_ns > window_ns(c))
        full = att_device_clock_finish(c, point);
    if (c->samples == 0) {
        c->from_ns = start_ns;
        c->to_ns = stop_ns;
        c->low_ns = INT64_MIN;
        c->high_ns = INT64_MAX;
    }
    int64_t low = decided_ns - start_ns - (int64_t)(c->drift * (double)(start_ns - c->from_ns));
    int64_t high = seen_ns - stop_ns - (int64_t)(c->drift * (double)(stop_ns - c->from_ns));
    if (low > c->low_ns)
        c->low_ns = low;
    if (high < c->high_ns)
        c->high_ns = high;
    if (stop_ns > c->to_ns)
        c->to_ns = stop_ns;
    c->samples++;
    return full;
}
