#include "profile/recent.h"

#include <stdlib.h>
#include <string.h>

#define OFTEN     0.8  /* share of the calls in which a late rank comes last */
#define WORTH_IT  0.05 /* of the time from call to call; less does not matter */
#define NEXT_CALL 64   /* calls between two that still give a period */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, uint32_t count)
{
    double sorted[ATT_RECENT_CALLS];
    if (count == 0)
        return 0;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    return sorted[count / 2];
}

void att_recent_sample(att_recent_t *r, double duration_us, uint64_t now_ns)
{
    r->duration_us[r->samples++ % ATT_RECENT_CALLS] = duration_us;
    r->sampled_ns = now_ns;
}

void att_recent_call(att_recent_t *r, const att_part_t *whole)
{
    if (whole->untimed != ATT_UNTIMED_NO || whole->differs || whole->second_start_ns == 0)
        return;
    uint32_t slot = r->calls++ % ATT_RECENT_CALLS;
    uint64_t calls = whole->call - r->previous_call;
    r->last_rank[slot] = whole->last_rank;
    r->gap_us[slot] = (double)(whole->last_start_ns - whole->second_start_ns) * 1e-3;
    r->period_us[slot] =
        r->previous_start_ns != 0 && calls > 0 && calls <= NEXT_CALL &&
                whole->last_start_ns > r->previous_start_ns
            ? (double)(whole->last_start_ns - r->previous_start_ns) * 1e-3 / (double)calls
            : 0;
    r->previous_call = whole->call;
    r->previous_start_ns = whole->last_start_ns;
}

static uint32_t held(uint64_t count)
{
    return count < ATT_RECENT_CALLS ? (uint32_t)count : ATT_RECENT_CALLS;
}

double att_recent_duration_us(const att_recent_t *r)
{
    return median(r->duration_us, held(r->samples));
}

int att_recent_late(const att_recent_t *r, att_recent_late_t *late)
{
    if (r->calls < ATT_RECENT_CALLS)
        return 0;
    uint32_t most = 0, rank = 0;
    for (uint32_t i = 0; i < ATT_RECENT_CALLS; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < ATT_RECENT_CALLS; k++)
            same += r->last_rank[k] == r->last_rank[i];
        if (same > most) {
            most = same;
            rank = r->last_rank[i];
        }
    }
    double gaps[ATT_RECENT_CALLS], periods[ATT_RECENT_CALLS];
    uint32_t gap_count = 0, period_count = 0;
    for (uint32_t i = 0; i < ATT_RECENT_CALLS; i++) {
        if (r->last_rank[i] == rank)
            gaps[gap_count++] = r->gap_us[i];
        if (r->period_us[i] > 0)
            periods[period_count++] = r->period_us[i];
    }
    double gap_us = median(gaps, gap_count);
    if (most < OFTEN * ATT_RECENT_CALLS || period_count == 0 ||
        gap_us < WORTH_IT * median(periods, period_count))
        return 0;
    *late = (att_recent_late_t){
        .rank = rank, .late_us = gap_us, .share = (double)most / ATT_RECENT_CALLS};
    return 1;
}
