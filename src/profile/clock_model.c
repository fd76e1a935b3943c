#include "profile/clock_model.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A quarter and half a microsecond above the lowest. */
#define NEAR_FACTOR 1.25
#define NEAR_NS     500.0
/* How far a crystal may leave its line: 0.1 ppm, several times what temperature does in a minute.
 */
#define WANDER 1e-7
/* Points this close in time are measured by the lowest round trip among them. Farther ones are not:
 * one lucky burst must not leave the rest of a busy run without points. */
#define AROUND_NS  4000000000ll
#define FIT_POINTS 16u
#define FIT_NS     20e9

bool att_clock_near(uint32_t round_trip_ns, uint32_t lowest_ns)
{
    return (double)round_trip_ns <= NEAR_FACTOR * (double)lowest_ns + NEAR_NS;
}

int att_clock_model_add(att_clock_model_t *m, const att_stream_clock_t *point)
{
    uint32_t at = m->count;
    while (at > 0 && m->points[at - 1].at_ns > point->at_ns)
        at--;
    if (at > 0 && m->points[at - 1].at_ns == point->at_ns)
        return ATT_OK;
    if (m->count == m->capacity) {
        uint32_t capacity = m->capacity == 0 ? 32 : 2 * m->capacity;
        att_stream_clock_t *points = realloc(m->points, capacity * sizeof *points);
        if (points == NULL)
            return -ATT_ENOMEM;
        m->points = points;
        m->capacity = capacity;
    }
    memmove(&m->points[at + 1], &m->points[at], (m->count - at) * sizeof *m->points);
    m->points[at] = *point;
    m->count++;
    return ATT_OK;
}

/* Lowest round trip of the points around one. */
static uint32_t lowest_near(const att_clock_model_t *m, uint32_t index)
{
    int64_t at = m->points[index].at_ns;
    uint32_t lowest = m->points[index].round_trip_ns;
    for (uint32_t i = index; i > 0 && at - m->points[i - 1].at_ns <= AROUND_NS; i--)
        if (m->points[i - 1].round_trip_ns < lowest)
            lowest = m->points[i - 1].round_trip_ns;
    for (uint32_t i = index + 1; i < m->count && m->points[i].at_ns - at <= AROUND_NS; i++)
        if (m->points[i].round_trip_ns < lowest)
            lowest = m->points[i].round_trip_ns;
    return lowest;
}

int att_clock_model_clean(att_clock_model_t *m, uint32_t keep)
{
    bool *near = calloc(m->count + 1, sizeof *near);
    if (near == NULL)
        return -ATT_ENOMEM;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++)
        near[i] = att_clock_near(m->points[i].round_trip_ns, lowest_near(m, i));
    for (uint32_t i = 0; i < m->count; i++)
        if (near[i])
            m->points[kept++] = m->points[i];
    free(near);
    m->rejected += m->count - kept;
    m->count = kept;
    if (keep != 0 && m->count > keep) {
        memmove(m->points, &m->points[m->count - keep], keep * sizeof *m->points);
        m->count = keep;
    }
    return ATT_OK;
}

void att_clock_model_free(att_clock_model_t *m)
{
    free(m->points);
    *m = (att_clock_model_t){0};
}

/* Least squares over the points next to one end (step 1: the first, -1: the last), weighted by
 * 1 / uncertainty^2. */
static double slope_at(const att_clock_model_t *m, uint32_t end, int step)
{
    const att_stream_clock_t *origin = &m->points[end];
    double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (uint32_t k = 0; k < FIT_POINTS && k < m->count; k++) {
        const att_stream_clock_t *p = origin + (int)k * step;
        double x = (double)(p->at_ns - origin->at_ns),
               y = (double)(p->offset_ns - origin->offset_ns);
        if (k >= 2 && fabs(x) > FIT_NS)
            break;
        double u = (double)p->uncertainty_ns + 1, w = 1 / (u * u);
        sw += w;
        sx += w * x;
        sy += w * y;
        sxx += w * x * x;
        sxy += w * x * y;
    }
    double determinant = sw * sxx - sx * sx;
    return determinant > 0 ? (sw * sxy - sx * sy) / determinant : 0;
}

double att_clock_model_drift(const att_clock_model_t *m)
{
    return m->count < 2 ? 0 : slope_at(m, m->count - 1, -1);
}

static uint32_t bounded(double ns)
{
    return ns >= (double)UINT32_MAX ? UINT32_MAX : (uint32_t)(ns + 0.5);
}

static att_clock_reading_t beyond(const att_clock_model_t *m, uint32_t end, int step, int64_t ns)
{
    const att_stream_clock_t *p = &m->points[end];
    double distance = (double)(ns - p->at_ns), slope = 0, slope_error = 1e-4;
    if (m->count >= 2) {
        slope = slope_at(m, end, step);
        uint32_t others = m->count < FIT_POINTS ? m->count : FIT_POINTS;
        const att_stream_clock_t *q = p + step * (int)(others - 1);
        double span = fabs((double)(q->at_ns - p->at_ns));
        slope_error = ((double)p->uncertainty_ns + (double)q->uncertainty_ns) / (span + 1) + WANDER;
    }
    return (att_clock_reading_t){
        .ns = ns + p->offset_ns + (int64_t)(slope * distance),
        .uncertainty_ns = bounded((double)p->uncertainty_ns + fabs(distance) * slope_error)};
}

att_clock_reading_t att_clock_model_read(const att_clock_model_t *m, int64_t ns)
{
    if (m->count == 0)
        return (att_clock_reading_t){ns, UINT32_MAX};
    if (ns <= m->points[0].at_ns)
        return beyond(m, 0, 1, ns);
    if (ns >= m->points[m->count - 1].at_ns)
        return beyond(m, m->count - 1, -1, ns);
    uint32_t low = 0, high = m->count - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (m->points[middle].at_ns <= ns)
            low = middle;
        else
            high = middle;
    }
    const att_stream_clock_t *a = &m->points[low], *b = &m->points[high];
    double span = (double)(b->at_ns - a->at_ns), part = (double)(ns - a->at_ns) / span;
    double nearest = span * (part < 0.5 ? part : 1 - part);
    double offset = (double)(b->offset_ns - a->offset_ns) * part;
    uint32_t worse = a->uncertainty_ns > b->uncertainty_ns ? a->uncertainty_ns : b->uncertainty_ns;
    return (att_clock_reading_t){.ns = ns + a->offset_ns + (int64_t)offset,
                                 .uncertainty_ns = bounded((double)worse + nearest * WANDER)};
}
