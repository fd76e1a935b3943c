#include "cli/summary.h"

#include "base/names.h"
#include "base/one_line.h"
#include "base/bandwidth.h"
#include "cli/json_file.h"

#include <stdlib.h>
#include <string.h>

void att_summary_init(att_summary_t *summary, const char *name, const char *asked_fabric,
                      const char *asked_surface, const char *asked_load, const char *sidecar_end,
                      const att_findings_t *findings, const att_tasks_t *tasks)
{
    const char *fabric = strcmp(asked_fabric, "none") == 0 ? "gpu" : asked_fabric;
    const char *surface = asked_surface, *load = asked_load;
    int ranks = findings->ranks;
    if (findings->has_fabric) {
        fabric = findings->fabric;
        surface = findings->surface;
        load = findings->load[0] != '\0' ? findings->load : "none";
    }
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->rows[i].ranks > ranks)
            ranks = tasks->rows[i].ranks;
    *summary = (att_summary_t){.name = name,
                               .fabric = fabric,
                               .surface = surface != NULL && surface[0] != '\0' ? surface : NULL,
                               .load = load,
                               .ranks = ranks,
                               .cut_off = tasks->finished ? NULL : sidecar_end,
                               .findings = findings,
                               .tasks = tasks};
}

static json_t *setting_json(att_setting_t s)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:I}", "algorithm", att_algorithm_name(s.algorithm),
                     "protocol", att_protocol_name(s.protocol), "transport",
                     att_transport_name(s.transport), "channels", (int)s.channels, "threads",
                     (int)s.threads, "chunk", (json_int_t)s.chunk_bytes);
}

static json_t *measured_json(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

/* 0: not known. */
static double speedup_of(const att_task_row_t *row)
{
    return row->native.median_us > 0 && row->tuned.median_us > 0 && !att_task_row_failed(row)
               ? row->native.median_us / row->tuned.median_us
               : 0;
}

static json_t *task_json(const att_task_row_t *row)
{
    double native = att_algorithm_gbs(row->bytes, row->native.median_us);
    double tuned = att_algorithm_gbs(row->bytes, row->tuned.median_us);
    double factor = att_bus_factor(row->collective, row->ranks);
    double speedup = speedup_of(row);
    char warning[ATT_TASK_WARNING];
    return json_pack("{s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:o,s:b,s:s,s:s}", "collective",
                     att_collective_name(row->collective), "bytes", (json_int_t)row->bytes,
                     "default_gbs", measured_json(native), "tuned_gbs", measured_json(tuned),
                     "default_busbw_gbs", measured_json(native * factor), "tuned_busbw_gbs",
                     measured_json(tuned * factor), "speedup", measured_json(speedup), "trials",
                     (json_int_t)row->trials, "calls", (json_int_t)row->calls, "setting",
                     setting_json(row->tuned.setting), "kept_default", (int)row->kept_default,
                     "reason", row->reason, "warning", att_task_row_warning(row, warning));
}

int att_summary_write(const att_summary_t *s, const char *path, att_error_t *error)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < s->tasks->count; i++)
        if (json_array_append_new(tasks, task_json(&s->tasks->rows[i])) != 0) {
            json_decref(tasks);
            return att_fail(error, ATT_EFAIL, "%s: task %zu cannot be written", path, i);
        }
    const att_findings_t *f = s->findings;
    json_t *mismatches = f->has_fabric ? json_integer((json_int_t)f->mismatches) : json_null();
    json_t *errors = f->has_bench ? json_integer((json_int_t)f->result_errors) : json_null();
    json_t *root = json_pack("{s:i,s:[{s:o,s:s,s:s,s:s?,s:s,s:i,s:o,s:o,s:o}]}", "version",
                             ATT_SUMMARY_VERSION, "runs", "name", att_json_text(s->name), "state",
                             s->cut_off == NULL ? "finished" : "unfinished", "fabric", s->fabric,
                             "surface", s->surface, "load", s->load, "ranks", s->ranks,
                             "mismatches", mismatches, "result_errors", errors, "tasks", tasks);
    return att_json_replace(path, root, error);
}

/* ---- the table ---- */

#define CELL 64

typedef struct line {
    char task[CELL], native[CELL], tuned[CELL];
    char number[7][24]; /* algbw and busbw of both, speedup, trials, calls */
    const char *reason; /* why it is so, or how far the search came; may be "" */
} line_t;

static void gbs_text(double gbs, char *text, size_t size)
{
    if (gbs > 0)
        snprintf(text, size, gbs < 1 ? "%.4f" : "%.2f", gbs);
    else
        snprintf(text, size, "-");
}

static int compare_tasks(const att_task_row_t *a, const att_task_row_t *b)
{
    if (a->collective != b->collective)
        return a->collective < b->collective ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int by_task(const void *left, const void *right)
{
    return compare_tasks(*(const att_task_row_t *const *)left,
                         *(const att_task_row_t *const *)right);
}

/* For each row whether its task (collective, bytes) has another row, of another group. The caller
 * frees it; NULL: no memory. */
static bool *find_shared(const att_tasks_t *tasks)
{
    bool *shared = calloc(tasks->count, sizeof *shared);
    const att_task_row_t **sorted = malloc(tasks->count * sizeof(const att_task_row_t *));
    if (shared != NULL && sorted != NULL) {
        for (size_t i = 0; i < tasks->count; i++)
            sorted[i] = &tasks->rows[i];
        qsort(sorted, tasks->count, sizeof(const att_task_row_t *), by_task);
        for (size_t i = 1; i < tasks->count; i++)
            if (compare_tasks(sorted[i - 1], sorted[i]) == 0)
                shared[sorted[i - 1] - tasks->rows] = shared[sorted[i] - tasks->rows] = true;
    } else {
        free(shared);
        shared = NULL;
    }
    free(sorted);
    return shared;
}

static void fill_line(const att_task_row_t *row, bool with_group, line_t *line)
{
    char bytes[24];
    memset(line, 0, sizeof *line);
    snprintf(line->task, sizeof line->task, "%s %s x%d%s%.20s",
             att_collective_name(row->collective), att_bytes_text(row->bytes, bytes, sizeof bytes),
             row->ranks, with_group ? " " : "", with_group ? row->group : "");
    att_setting_text(row->native.setting, line->native, sizeof line->native);
    if (att_setting_is_keep(row->native.setting))
        snprintf(line->native, sizeof line->native, "not seen");
    if (att_task_row_failed(row))
        snprintf(line->tuned, sizeof line->tuned, "not tuned");
    else if (row->kept_default)
        snprintf(line->tuned, sizeof line->tuned, "kept NCCL's choice");
    else
        att_setting_text(row->tuned.setting, line->tuned, sizeof line->tuned);
    line->reason = row->reason[0] != '\0' ? row->reason : row->phase;
    double native = att_algorithm_gbs(row->bytes, row->native.median_us);
    double tuned = att_algorithm_gbs(row->bytes, row->tuned.median_us);
    double factor = att_bus_factor(row->collective, row->ranks);
    gbs_text(native, line->number[0], sizeof line->number[0]);
    gbs_text(tuned, line->number[1], sizeof line->number[1]);
    gbs_text(native * factor, line->number[2], sizeof line->number[2]);
    gbs_text(tuned * factor, line->number[3], sizeof line->number[3]);
    if (speedup_of(row) > 0)
        snprintf(line->number[4], sizeof line->number[4], "%.3fx", speedup_of(row));
    else
        snprintf(line->number[4], sizeof line->number[4], "-");
    snprintf(line->number[5], sizeof line->number[5], "%llu", (unsigned long long)row->trials);
    snprintf(line->number[6], sizeof line->number[6], "%llu", (unsigned long long)row->calls);
}

static int widest(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_tasks(const att_tasks_t *tasks, FILE *out)
{
    int task = 4, native = 13, tuned = 13;
    bool *shared = find_shared(tasks);
    line_t line;
    for (size_t i = 0; i < tasks->count; i++) {
        fill_line(&tasks->rows[i], shared == NULL || shared[i], &line);
        task = widest(task, line.task);
        native = widest(native, line.native);
        tuned = widest(tuned, line.tuned);
    }
    fprintf(out, "# %-*s  %-*s  %-*s  %17s  %17s  %8s  %6s  %6s\n", task, "", native, "", tuned, "",
            "algbw (GB/s)", "busbw (GB/s)", "", "", "calls");
    fprintf(out, "# %-*s  %-*s  %-*s  %8s %8s  %8s %8s  %8s  %6s  %6s\n", task, "task", native,
            "NCCL's choice", tuned, "tuned setting", "NCCL", "tuned", "NCCL", "tuned", "speedup",
            "trials", "spent");
    for (size_t i = 0; i < tasks->count; i++) {
        fill_line(&tasks->rows[i], shared == NULL || shared[i], &line);
        fprintf(out, "  %-*s  %-*s  %-*s  %8s %8s  %8s %8s  %8s  %6s  %6s\n", task, line.task,
                native, line.native, tuned, line.tuned, line.number[0], line.number[1],
                line.number[2], line.number[3], line.number[4], line.number[5], line.number[6]);
        if (line.reason[0] != '\0')
            fprintf(out, "  %-*s    %s\n", task, "", line.reason);
        char warning[ATT_TASK_WARNING];
        if (att_task_row_warning(&tasks->rows[i], warning)[0] != '\0')
            fprintf(out, "  %-*s    %s\n", task, "", warning);
    }
    free(shared);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_coverage(const att_tasks_t *t, FILE *out)
{
    uint64_t untimed = 0;
    for (size_t i = 0; i < t->coverage.untimed_count; i++)
        untimed += t->coverage.untimed[i].count;
    fprintf(out, "# coverage: %llu calls, %llu timed, %llu not",
            (unsigned long long)t->coverage.decisions, (unsigned long long)t->coverage.timed,
            (unsigned long long)untimed);
    const char *separator = " (";
    for (size_t i = 0; i < t->coverage.untimed_count; i++) {
        if (t->coverage.untimed[i].count == 0)
            continue;
        fprintf(out, "%s%s %llu", separator, t->coverage.untimed[i].reason,
                (unsigned long long)t->coverage.untimed[i].count);
        separator = ", ";
    }
    fprintf(out, "%s; %llu frozen, %llu unseen, %llu records dropped, %llu anomalies\n",
            separator[0] == ',' ? ")" : "", (unsigned long long)t->coverage.frozen,
            (unsigned long long)t->coverage.unseen, (unsigned long long)t->coverage.dropped,
            (unsigned long long)t->coverage.anomalies);
    if (t->coverage.called + t->coverage.bypassed > 0)
        fprintf(out,
                "# preload: %.2f %% of the application's %llu collectives reached the tuner; %llu "
                "other calls have none (point-to-point, all-to-all); %llu streams\n",
                percent((double)t->coverage.answered, (double)t->coverage.called),
                (unsigned long long)t->coverage.called, (unsigned long long)t->coverage.bypassed,
                (unsigned long long)t->coverage.streams);
}

static void print_checks(const att_findings_t *f, FILE *out)
{
    if (!f->has_fabric && !f->has_bench)
        return;
    fprintf(out, "# checks: ");
    if (f->has_fabric)
        fprintf(out, "%llu mismatches between ranks in %llu calls%s",
                (unsigned long long)f->mismatches, (unsigned long long)f->calls,
                f->has_bench ? "; " : "");
    if (f->has_bench)
        fprintf(out, "%llu wrong results", (unsigned long long)f->result_errors);
    fputc('\n', out);
}

void att_summary_print(const att_summary_t *s, FILE *out)
{
    const att_tasks_t *t = s->tasks;
    char name[ATT_ONE_LINE];
    fprintf(out, "# %s: %d ranks on %s%s%s", att_one_line(s->name, name, sizeof name), s->ranks,
            strcmp(s->fabric, "gpu") == 0 ? "NCCL" : "the host fabric, ",
            strcmp(s->fabric, "gpu") == 0 ? "" : s->fabric, s->surface != NULL ? " " : "");
    fprintf(out, "%s%s%s\n", s->surface != NULL ? s->surface : "",
            strcmp(s->load, "none") == 0 ? "" : ", load ",
            strcmp(s->load, "none") == 0 ? "" : s->load);
    if (s->cut_off != NULL)
        fprintf(out,
                "# not finished: the sidecar (%s) left no closing report; numbers are those of its "
                "last one\n",
                s->cut_off);
    if (t->count == 0 && s->cut_off == NULL)
        fprintf(out, "# no collective was seen: did the command use NCCL through libnccl.so.2?\n");
    else if (t->count > 0)
        print_tasks(t, out);
    fprintf(out, "# cost: trials lost %.3f ms", t->cost.lost_us * 1e-3);
    if (t->cost.timing_us > 0)
        fprintf(out, ", timing about %.3f ms", t->cost.timing_us * 1e-3);
    fprintf(out, " of %.3f s run time (%.2f %%)", t->cost.run_us * 1e-6,
            percent(t->cost.lost_us + t->cost.timing_us, t->cost.run_us));
    if (t->cost.run_us >= 1e6) /* a shorter run is mostly the sidecar's own start */
        fprintf(out, "; the sidecar used %.1f %% of a core", 100 * t->agent.cpu_share);
    fputc('\n', out);
    print_coverage(t, out);
    fprintf(out,
            "# waits: %llu calls waited for a decision (%.4f %%), longest %.1f us; %llu failed in "
            "doubt\n",
            (unsigned long long)t->coverage.waited,
            percent((double)t->coverage.waited, (double)t->coverage.decisions),
            t->coverage.longest_wait_us, (unsigned long long)t->coverage.in_doubt);
    print_checks(s->findings, out);
}
