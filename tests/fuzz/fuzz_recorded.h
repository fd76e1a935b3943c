/* What holds for a recorded surface of any bytes: refused with one line, or sane answers. */
#ifndef FUZZ_RECORDED_H
#define FUZZ_RECORDED_H

#include "surface/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void check_space(const struct att_surface *surface, att_surface_task_t task)
{
    att_subspace_t subspaces[ATT_SURFACE_SUBSPACES];
    uint32_t count = att_surface_space(surface, task.collective, task.bytes, 0, subspaces);
    if (count > ATT_SURFACE_SUBSPACES)
        abort();
    for (uint32_t i = 0; i < count; i++) {
        const att_subspace_t *s = &subspaces[i];
        if (s->channels_min > s->channels_max || s->threads_min > s->threads_max ||
            s->chunk_min > s->chunk_max)
            abort();
        /* a corner of the hull has an answer, and that is a recorded setting */
        att_setting_t x = {.algorithm = s->algorithm,
                           .protocol = s->protocol,
                           .transport = s->transport,
                           .channels = s->channels_max,
                           .threads = s->threads_min,
                           .chunk_bytes = s->chunk_max};
        if (!att_subspace_contains(s, x))
            abort();
        double us = att_surface_duration_us(surface, task.collective, task.bytes, x, 0);
        att_setting_t near = att_surface_nearest(surface, task.collective, task.bytes, x);
        if (!(us > 0 && isfinite(us)) || att_setting_is_keep(near))
            abort();
        double again = att_surface_duration_us(surface, task.collective, task.bytes, near, 0);
        if (again < us || again > us)
            abort();
    }
}

static inline void check_task(const struct att_surface *surface, att_surface_task_t task)
{
    size_t count, residuals;
    const att_surface_point_t *points =
        att_surface_points(surface, task.collective, task.bytes, &count);
    att_surface_residuals(surface, task.collective, task.bytes, &residuals);
    if (points == NULL || count == 0)
        abort();
    for (size_t i = 0; i < count; i++)
        if (!(points[i].time_us > 0 && isfinite(points[i].time_us)))
            abort();
    double us = att_surface_duration_us(surface, task.collective, task.bytes, ATT_SETTING_KEEP, 0);
    if (!(us > 0 && isfinite(us)))
        abort();
    att_setting_t best;
    double least = att_surface_optimum(surface, task.collective, task.bytes, 0, 0, &best);
    if (least > 0 && att_surface_duration_us(surface, task.collective, task.bytes, best, 0) > least)
        abort();
    check_space(surface, task);
}

static inline void check_recorded(const char *bytes, size_t length)
{
    struct att_surface *surface = NULL;
    att_error_t error = {""};
    if (att_surface_parse(bytes, length, &surface, &error) != 0) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return;
    }
    const att_surface_info_t *info = att_surface_info(surface);
    for (int i = 0; info->kind == ATT_SURFACE_RECORDED && i < info->task_count; i++)
        check_task(surface, info->tasks[i]);
    att_surface_close(surface);
}

#endif
