#include "cli/report_chart.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT   42.0
#define RIGHT  296.0
#define TOP    10.0
#define BOTTOM 112.0
#define LOWEST 0.5 /* slower trials lie on the lower edge */
#define LETTER 11.0

typedef struct path {
    char *text;
    size_t used, room;
} path_t;

typedef struct scale {
    uint32_t trials;
    double highest;
} scale_t;

__attribute__((format(printf, 2, 3))) static void draw(path_t *path, const char *format, ...)
{
    va_list list;
    if (path->room - path->used < 64) {
        size_t room = path->room == 0 ? 1024 : 2 * path->room;
        char *grown = realloc(path->text, room);
        if (grown == NULL)
            return; /* a curve without its end */
        path->text = grown;
        path->room = room;
    }
    va_start(list, format);
    path->used += (size_t)vsnprintf(path->text + path->used, 64, format, list);
    va_end(list);
}

static double x_of(const scale_t *scale, double trial)
{
    return scale->trials > 1 ? LEFT + (RIGHT - LEFT) * (trial - 1) / (scale->trials - 1)
                             : (LEFT + RIGHT) / 2;
}

static double y_of(const scale_t *scale, double speedup)
{
    double share = (speedup - LOWEST) / (scale->highest - LOWEST);
    return BOTTOM - (BOTTOM - TOP) * fmin(fmax(share, 0), 1);
}

/* One stroke a column, from the slowest of its trials to the fastest. */
static void draw_band(const att_report_search_t *s, const scale_t *scale, uint32_t columns,
                      path_t *path)
{
    uint32_t used = s->count < columns ? s->count : columns;
    for (uint32_t column = 0; column < used; column++) {
        uint64_t from = (uint64_t)column * s->count / used;
        uint64_t to = (uint64_t)(column + 1) * s->count / used;
        double least = INFINITY, most = 0;
        for (uint64_t i = from; i < to; i++)
            if (s->trials[i].speedup > 0) {
                least = fmin(least, s->trials[i].speedup);
                most = fmax(most, s->trials[i].speedup);
            }
        if (most > 0)
            draw(path, "M%.1f %.1fV%.1f", x_of(scale, (double)(from + 1 + to) / 2),
                 y_of(scale, least) + 1.2, y_of(scale, most) - 1.2);
    }
}

static void draw_best(const json_t *curve, const scale_t *scale, path_t *path)
{
    size_t i;
    json_t *step;
    json_array_foreach(curve, i, step)
    {
        double x = x_of(scale, json_number_value(json_array_get(step, 0)));
        double y = y_of(scale, json_number_value(json_array_get(step, 1)));
        if (i == 0)
            draw(path, "M%.1f %.1f", x, y);
        else
            draw(path, "H%.1fV%.1f", x, y);
    }
    if (i > 0)
        draw(path, "H%.1f", RIGHT);
}

static double best_of(const json_t *curve)
{
    double best = 0;
    size_t i;
    json_t *step;
    json_array_foreach(curve, i, step) best =
        fmax(best, json_number_value(json_array_get(step, 1)));
    return best;
}

json_t *att_report_chart(const json_t *task, const att_report_search_t *search, uint32_t columns)
{
    json_t *curve = json_object_get(task, "curve");
    if (search->count == 0 || json_array_size(curve) == 0)
        return NULL;
    const char *verdict = json_string_value(json_object_get(task, "verdict"));
    const char *name = json_string_value(json_object_get(task, "name"));
    double speedup = json_number_value(json_object_get(task, "speedup"));
    bool tuned = verdict != NULL && strcmp(verdict, "tuned") == 0 && speedup > 0;
    double best = best_of(curve), marked = tuned ? speedup : best;
    scale_t scale = {.trials = search->count,
                     .highest = fmax(1.1, fmax(best, tuned ? speedup : 0)) * 1.04};
    path_t band = {0}, line = {0};
    draw(&band, "%s", "");
    draw(&line, "%s", "");
    draw_band(search, &scale, columns, &band);
    draw_best(curve, &scale, &line);
    char text[512], mark[32] = "", final[64] = "";
    json_int_t searches = json_integer_value(json_object_get(task, "searches"));
    if (tuned)
        snprintf(final, sizeof final, "; the final comparison found %.3f times", speedup);
    snprintf(text, sizeof text,
             "%s: %u trials in %lld search%s; the best single trial was %.3f times as fast as "
             "NCCL's choice%s.",
             name != NULL ? name : "", search->count, (long long)searches,
             searches == 1 ? "" : "es", best, final);
    double one_y = y_of(&scale, 1), mark_y = y_of(&scale, marked);
    if (one_y - mark_y >= LETTER)
        snprintf(mark, sizeof mark, "%.2f\xc3\x97", marked);
    json_t *chart = json_pack(
        "{s:s,s:s,s:f,s:f,s:s,s:f,s:i,s:s}", "band", band.text != NULL ? band.text : "", "best",
        line.text != NULL ? line.text : "", "one_y", one_y, "one_text_y", one_y + 4, "mark", mark,
        "mark_text_y", mark_y + 4, "trials", (int)search->count, "text", text);
    if (chart != NULL && tuned)
        json_object_set_new(chart, "final_y", json_real(mark_y));
    free(band.text);
    free(line.text);
    return chart;
}
