#include "surface/shape.h"

#include <stdlib.h>
#include <string.h>

#define CHUNKS_AN_OCTAVE 1.0905077326652577 /* 2^(1/8) */

typedef struct sampled {
    att_setting_t setting;
    double us;
} sampled_t;

typedef struct list {
    sampled_t *items;
    size_t count, capacity;
} list_t;

static int add(list_t *list, att_setting_t setting, double us)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 1024;
        sampled_t *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL)
            return -ATT_ENOMEM;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (sampled_t){setting, us};
    return ATT_OK;
}

static int gather_recorded(const att_surface_point_t *points, size_t count, list_t *list)
{
    int rc = ATT_OK;
    for (size_t i = 0; rc == ATT_OK && i < count; i++)
        if (!points[i].at_least && !att_setting_is_keep(points[i].setting))
            rc = add(list, points[i].setting, points[i].time_us);
    return rc;
}

static int gather_modelled(const struct att_surface *surface, int collective, uint64_t bytes,
                           int load, list_t *list)
{
    att_subspace_t subspaces[ATT_SURFACE_SUBSPACES];
    uint32_t count = att_surface_space(surface, collective, bytes, 0, subspaces);
    int rc = ATT_OK;
    for (uint32_t i = 0; i < count; i++) {
        const att_subspace_t *s = &subspaces[i];
        uint32_t step = s->chunk_step > 0 ? s->chunk_step : 1, last = 0;
        for (double c = s->chunk_min; s->chunk_max > 0 && c <= s->chunk_max;
             c *= CHUNKS_AN_OCTAVE) {
            uint32_t chunk = (uint32_t)c - ((uint32_t)c - s->chunk_min) % step;
            if (chunk == last)
                continue;
            last = chunk;
            for (uint32_t nc = s->channels_min; rc == ATT_OK && nc <= s->channels_max; nc++) {
                att_setting_t x = {.algorithm = s->algorithm,
                                   .protocol = s->protocol,
                                   .transport = s->transport,
                                   .channels = (uint16_t)nc,
                                   .chunk_bytes = chunk};
                double us = att_surface_duration_us(surface, collective, bytes, x, load);
                if (us > 0)
                    rc = add(list, x, us);
            }
        }
    }
    return rc;
}

static uint32_t value_of(att_setting_t s, int knob)
{
    return knob == ATT_SHAPE_CHANNELS  ? s.channels
           : knob == ATT_SHAPE_THREADS ? s.threads
                                       : s.chunk_bytes;
}

/* By everything but the knob; then by the knob. */
static int compare_lines(att_setting_t x, att_setting_t y, int knob)
{
    int64_t d = (int64_t)x.algorithm - y.algorithm;
    d = d != 0 ? d : (int64_t)x.protocol - y.protocol;
    d = d != 0 ? d : (int64_t)x.transport - y.transport;
    for (int other = 0; d == 0 && other < ATT_SHAPE_KNOBS; other++)
        if (other != knob)
            d = (int64_t)value_of(x, other) - value_of(y, other);
    return (d > 0) - (d < 0);
}

static int compare_in(const void *a, const void *b, void *knob)
{
    const sampled_t *x = a, *y = b;
    int which = *(const int *)knob, order = compare_lines(x->setting, y->setting, which);
    if (order != 0)
        return order;
    int64_t d = (int64_t)value_of(x->setting, which) - value_of(y->setting, which);
    return (d > 0) - (d < 0);
}

double att_shape_bump(const double *times, size_t count)
{
    double worst = 0;
    for (size_t j = 1; j + 1 < count; j++) {
        double left = times[0], right = times[j + 1];
        for (size_t i = 0; i < j; i++)
            left = times[i] < left ? times[i] : left;
        for (size_t k = j + 1; k < count; k++)
            right = times[k] < right ? times[k] : right;
        double higher = left > right ? left : right;
        if (times[j] / higher - 1 > worst)
            worst = times[j] / higher - 1;
    }
    return worst;
}

/* One line: items [from, to) of the same other knobs. */
static void count_line(const sampled_t *items, size_t from, size_t to, int knob, double tolerance,
                       double *times, att_shape_count_t *count)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (value_of(items[i].setting, knob) != 0)
            times[n++] = items[i].us;
    if (n < 3)
        return;
    double bump = att_shape_bump(times, n);
    count->lines++;
    count->bent += bump > 0;
    count->bent_more += bump > tolerance;
    if (bump > count->worst)
        count->worst = bump;
}

int att_surface_shape(const struct att_surface *surface, int collective, uint64_t bytes, int load,
                      double tolerance, att_shape_count_t counts[ATT_SHAPE_KNOBS],
                      att_error_t *error)
{
    size_t point_count;
    const att_surface_point_t *points =
        att_surface_points(surface, collective, bytes, &point_count);
    list_t list = {0};
    memset(counts, 0, ATT_SHAPE_KNOBS * sizeof *counts);
    if (load < 0 || load >= att_surface_info(surface)->load_count)
        return att_fail(error, ATT_ENOENT, "the surface has no load %d", load);
    int rc = points != NULL ? gather_recorded(points, point_count, &list)
                            : gather_modelled(surface, collective, bytes, load, &list);
    double *times = rc == ATT_OK ? malloc((list.count + 1) * sizeof *times) : NULL;
    if (rc == ATT_OK && times == NULL)
        rc = -ATT_ENOMEM;
    if (rc == ATT_OK && list.count == 0)
        rc = -ATT_ENOENT;
    for (int knob = 0; rc == ATT_OK && knob < ATT_SHAPE_KNOBS; knob++) {
        qsort_r(list.items, list.count, sizeof *list.items, compare_in, &knob);
        for (size_t from = 0, to; from < list.count; from = to) {
            for (to = from + 1;
                 to < list.count &&
                 compare_lines(list.items[from].setting, list.items[to].setting, knob) == 0;)
                to++;
            count_line(list.items, from, to, knob, tolerance, times, &counts[knob]);
        }
    }
    free(times);
    free(list.items);
    if (rc == -ATT_ENOMEM)
        return att_fail(error, ATT_ENOMEM, "no memory for the lines of a surface");
    return rc == ATT_OK ? ATT_OK : att_fail(error, ATT_ENOENT, "the surface has no such task");
}
