#include "cli/top_view.h"

#include "base/bandwidth.h"
#include "base/names.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define OLD_S         15.0 /* stamps of settled tasks come every few seconds (--watch) */
#define LINE          256
#define SMALLEST_LIST 1

typedef struct screen {
    FILE *out;
    int rows, columns;
    const char *line_end;
} screen_t;

/* One line, cut to the width; nothing but printable ASCII. */
__attribute__((format(printf, 2, 3))) static void put(screen_t *s, const char *format, ...)
{
    char text[LINE];
    if (s->rows <= 0)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->columns < LINE)
        text[s->columns > 0 ? s->columns : 0] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
    fprintf(s->out, "%s%s", text, s->line_end);
    s->rows--;
}

static const char *gbs(const att_task_row_t *row, double us, char *text, size_t size)
{
    double value = att_algorithm_gbs(row->bytes, us) * att_bus_factor(row->collective, row->ranks);
    if (value > 0)
        snprintf(text, size, value < 1 ? "%.4f" : "%.2f", value);
    else
        snprintf(text, size, "-");
    return text;
}

typedef struct cells {
    char task[32], now[24], native[24], best[24], gain[16], late[40];
} cells_t;

static void fill(const att_task_row_t *row, cells_t *c)
{
    char bytes[24], value[16];
    snprintf(c->task, sizeof c->task, "%s %s", att_collective_name(row->collective),
             att_bytes_text(row->bytes, bytes, sizeof bytes));
    gbs(row, row->now_us, value, sizeof value);
    snprintf(c->now, sizeof c->now, row->now_us > 0 && row->now_age_s > OLD_S ? "(%s)" : "%s",
             value);
    gbs(row, row->native.median_us, c->native, sizeof c->native);
    gbs(row, row->tuned.median_us, c->best, sizeof c->best);
    if (row->native.median_us > 0 && row->tuned.median_us > 0)
        snprintf(c->gain, sizeof c->gain, "%.2fx", row->native.median_us / row->tuned.median_us);
    else
        snprintf(c->gain, sizeof c->gain, "-");
    if (row->late_rank >= 0)
        snprintf(c->late, sizeof c->late, "%d (+%.3g ms)", row->late_rank, row->late_us * 1e-3);
    else
        snprintf(c->late, sizeof c->late, "-");
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void put_head(screen_t *s, const att_top_view_t *v)
{
    const att_tasks_t *t = v->tasks;
    if (t == NULL) {
        put(s, "attune top  %.120s  waiting for the sidecar's first report", v->name);
        return;
    }
    size_t settled = 0;
    for (size_t i = 0; i < t->count; i++)
        settled += strcmp(t->rows[i].phase, "settled") == 0;
    char state[128] = "running";
    if (t->finished)
        snprintf(state, sizeof state, "finished");
    else if (v->end.sidecar[0] != '\0')
        snprintf(state, sizeof state, "NOT FINISHED: the sidecar is gone (%s)", v->end.sidecar);
    else if (att_run_is_quiet(&v->end, t))
        snprintf(state, sizeof state, "NO REPORT for %.0f s: is the sidecar gone?",
                 v->end.report_age_s);
    put(s, "attune top  %.80s  %.0f s  %s", v->name, t->cost.run_us * 1e-6, state);
    put(s,
        "%zu task%s, %zu settled; trials lost %.2f %% of the time; the sidecar used %.1f %% of a "
        "core",
        t->count, t->count == 1 ? "" : "s", settled, percent(t->cost.lost_us, t->cost.run_us),
        100 * t->agent.cpu_share);
    put(s,
        "coverage: %llu calls, %.1f %% timed, %llu frozen, %llu unseen, %llu records dropped; %llu "
        "waited, longest %.1f us",
        (unsigned long long)t->coverage.decisions,
        percent((double)t->coverage.timed, (double)t->coverage.decisions),
        (unsigned long long)t->coverage.frozen, (unsigned long long)t->coverage.unseen,
        (unsigned long long)t->coverage.dropped, (unsigned long long)t->coverage.waited,
        t->coverage.longest_wait_us);
}

static void put_columns(screen_t *s)
{
    put(s, "%-22s %-9s %7s  %9s %9s %9s %7s  %s", "busbw in GB/s", "phase", "trials", "now",
        "default", "best", "gain", "late rank");
}

static void put_task(screen_t *s, const att_task_row_t *row)
{
    cells_t c;
    fill(row, &c);
    put(s, "  %-20.20s %-9.9s %7llu  %9s %9s %9s %7s  %s", c.task, row->phase,
        (unsigned long long)row->trials, c.now, c.native, c.best, c.gain, c.late);
}

/* A task, and the first one of its group. */
typedef struct entry {
    const att_task_row_t *row, *head;
} entry_t;

static int in_place(const att_task_row_t *a, const att_task_row_t *b)
{
    return (a > b) - (a < b);
}

static int compare_groups(const att_task_row_t *a, const att_task_row_t *b)
{
    int by_name = strcmp(a->group, b->group);
    return by_name != 0 ? by_name : (a->ranks > b->ranks) - (a->ranks < b->ranks);
}

static int by_group(const void *left, const void *right)
{
    const entry_t *a = left, *b = right;
    int order = compare_groups(a->row, b->row);
    return order != 0 ? order : in_place(a->row, b->row);
}

static int by_head(const void *left, const void *right)
{
    const entry_t *a = left, *b = right;
    int order = in_place(a->head, b->head);
    return order != 0 ? order : in_place(a->row, b->row);
}

/* Groups in order of appearance, each with its tasks; NULL: no memory. */
static entry_t *in_groups(const att_tasks_t *t)
{
    entry_t *list = malloc(t->count * sizeof *list);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < t->count; i++)
        list[i].row = &t->rows[i];
    qsort(list, t->count, sizeof *list, by_group);
    for (size_t i = 0; i < t->count; i++)
        list[i].head = i > 0 && compare_groups(list[i - 1].row, list[i].row) == 0 ? list[i - 1].head
                                                                                  : list[i].row;
    qsort(list, t->count, sizeof *list, by_head);
    return list;
}

/* Entries `first` to `first` + `most` of heads and tasks are put; returns how many there are. */
static size_t put_list(screen_t *s, const entry_t *list, size_t count, size_t first, size_t most)
{
    size_t entry = 0;
    for (size_t i = 0; i < count; i++) {
        const att_task_row_t *head = list[i].head;
        if (list[i].row == head) {
            if (entry >= first && entry < first + most)
                put(s, "group %.20s  %d ranks, %d node%s", head->group, head->ranks, head->nodes,
                    head->nodes == 1 ? "" : "s");
            entry++;
        }
        if (entry >= first && entry < first + most)
            put_task(s, list[i].row);
        entry++;
    }
    return entry;
}

size_t att_top_screen(const att_top_view_t *v, int rows, int columns, size_t first,
                      const char *line_end, FILE *out)
{
    screen_t s = {out, rows, columns, line_end}, nowhere = {NULL, 0, 0, ""};
    put_head(&s, v);
    if (v->tasks == NULL)
        return 0;
    if (v->tasks->count == 0) {
        put(&s, "no collective was seen yet");
        return 0;
    }
    put_columns(&s);
    size_t tasks = v->tasks->count;
    entry_t *list = in_groups(v->tasks);
    if (list == NULL) {
        put(&s, "no memory for the list");
        return 0;
    }
    size_t count = put_list(&nowhere, list, tasks, 0, 0);
    size_t room = s.rows > 0 ? (size_t)s.rows : 0;
    if (count <= room) {
        put_list(&s, list, tasks, 0, count);
        free(list);
        return count;
    }
    room = room > SMALLEST_LIST ? room - 1 : room; /* the last line tells what is not shown */
    if (first + room > count)
        first = count - room;
    put_list(&s, list, tasks, first, room);
    free(list);
    put(&s, "-- %zu to %zu of %zu; arrows and PgUp/PgDn move, q leaves", first + 1, first + room,
        count);
    return count;
}

int att_top_lines(const att_top_view_t *v, att_top_seen_t **seen, size_t *count, FILE *out)
{
    const att_tasks_t *t = v->tasks;
    if (t->count > *count) {
        att_top_seen_t *more = realloc(*seen, t->count * sizeof *more);
        if (more == NULL)
            return -ATT_ENOMEM;
        memset(more + *count, 0, (t->count - *count) * sizeof *more);
        *seen = more;
        *count = t->count;
    }
    /* The sidecar's list only grows, but for rows of other agents, which come behind: a task that
     * moved is told once more. */
    for (size_t i = 0; i < t->count; i++) {
        const att_task_row_t *row = &t->rows[i];
        att_top_seen_t *last = &(*seen)[i];
        if (strcmp(row->phase, last->phase) == 0 && row->trials == last->trials &&
            row->late_rank == last->late_rank)
            continue;
        memcpy(last->phase, row->phase, sizeof last->phase);
        last->trials = row->trials;
        last->late_rank = row->late_rank;
        cells_t c;
        fill(row, &c);
        fprintf(out,
                "%.1f s: %s x%d %.20s %s: %llu trials, busbw now %s, default %s, best %s GB/s (%s)",
                t->cost.run_us * 1e-6, c.task, row->ranks, row->group, row->phase,
                (unsigned long long)row->trials, c.now, c.native, c.best, c.gain);
        if (row->late_rank >= 0)
            fprintf(out, ", late rank %s", c.late);
        fputc('\n', out);
    }
    return ATT_OK;
}
