/* A run folder as one side of a comparison: NCCL's choice and what was in force at the end. */
#include "cli/compare_side.h"

#include "cli/findings.h"
#include "cli/json_file.h"
#include "cli/report_file.h"
#include "cli/tasks_file.h"
#include "profile/room.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Samples of the last final comparison of a task. */
typedef struct samples {
    double *values;
    uint32_t count;
} samples_t;

typedef struct work {
    const json_t *raw; /* tasks of tasks.json */
    samples_t *native, *tuned;
    int status;
} work_t;

static void take_samples(work_t *w, samples_t *samples, const json_t *list)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if (!(json_number_value(value) > 0))
            continue;
        if (att_room_append(&samples->values, samples->count, sizeof *samples->values) != ATT_OK) {
            w->status = -ATT_ENOMEM;
            return;
        }
        samples->values[samples->count++] = json_number_value(value);
    }
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    const char *x = json_string_value(json_object_get(a, key));
    const char *y = json_string_value(json_object_get(b, key));
    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

static bool is_of(const json_t *line, const json_t *task)
{
    return same_text(line, task, "group") && same_text(line, task, "collective") &&
           json_integer_value(json_object_get(line, "bytes")) ==
               json_integer_value(json_object_get(task, "bytes"));
}

static int take_line(void *context, char *text, size_t length)
{
    work_t *w = context;
    /* Most lines are of the search. */
    if (strstr(text, "\"phase\":\"search\"") != NULL)
        return ATT_OK;
    json_t *line = json_loadb(text, length, 0, NULL), *task;
    const char *phase = json_string_value(json_object_get(line, "phase"));
    size_t i;
    json_array_foreach(w->raw, i, task)
    {
        if (phase == NULL || !is_of(line, task))
            continue;
        const json_t *setting = json_object_get(line, "setting");
        const char *algorithm = json_string_value(json_object_get(setting, "algorithm"));
        if (strcmp(phase, "baseline") == 0)
            w->native[i].count = w->tuned[i].count = 0; /* a new search */
        else if (algorithm != NULL && strcmp(algorithm, "keep") == 0)
            take_samples(w, &w->native[i], json_object_get(line, "samples_us"));
        else if (json_equal(setting, json_object_get(json_object_get(task, "tuned"), "setting")))
            take_samples(w, &w->tuned[i], json_object_get(line, "samples_us"));
        break;
    }
    json_decref(line);
    return w->status;
}

/* What the bound of the gain says of both together, when there are no samples. */
static double bound_error(const json_t *raw, double speedup)
{
    const json_t *lower = json_object_get(raw, "gain_lower");
    if (!json_is_number(lower) || !(speedup > 1) || json_number_value(lower) <= -1)
        return -1;
    double width = (speedup - 1 - json_number_value(lower)) / speedup;
    return width > 0 && width < 1 ? width : -1;
}

static int add_task(att_compare_side_t *side, const att_task_row_t *row, const json_t *raw,
                    const samples_t *native, const samples_t *tuned)
{
    double speedup = row->tuned.median_us > 0 ? row->native.median_us / row->tuned.median_us : 0;
    double native_error = att_compare_error(native->values, native->count);
    double tuned_error = att_compare_error(tuned->values, tuned->count);
    double bound = row->kept_default ? -1 : bound_error(raw, speedup);
    for (int i = 0; i < 2; i++) {
        const att_measured_t *m = i == 0 ? &row->native : &row->tuned;
        double error = i == 0 || row->kept_default ? native_error : tuned_error;
        att_compare_entry_t entry = {.what = i == 0 ? "NCCL's choice" : "in force",
                                     .bytes = row->bytes,
                                     .ranks = row->ranks,
                                     .nodes = row->nodes,
                                     .time_us = m->median_us,
                                     .error = error >= 0 ? error : bound};
        snprintf(entry.collective, sizeof entry.collective, "%s",
                 att_collective_name(row->collective));
        const char *by = json_string_value(json_object_get(raw, "reduction"));
        snprintf(entry.by, sizeof entry.by, "%.23s", by != NULL ? by : "");
        const att_setting_t *setting =
            i == 0 || row->kept_default ? &row->native.setting : &row->tuned.setting;
        if (!att_setting_is_keep(*setting))
            att_setting_text(*setting, entry.setting, sizeof entry.setting);
        if (att_compare_side_add(side, &entry) != ATT_OK)
            return -ATT_ENOMEM;
    }
    return ATT_OK;
}

static void note_clock(att_compare_side_t *side, const att_tasks_t *tasks)
{
    att_findings_t f;
    if (att_findings_read(side->path, &f, NULL) == ATT_OK && f.has_fabric)
        snprintf(side->clock, sizeof side->clock, "%s",
                 strcmp(f.fabric, "model") == 0 ? "modelled" : "host fabric");
    if (side->clock[0] != '\0' && f.surface[0] != '\0')
        snprintf(side->clock, sizeof side->clock, "modelled %s%s%s", f.surface,
                 f.load[0] != '\0' ? ", load " : "", f.load);
    snprintf(side->device, sizeof side->device, "%s", tasks->device);
    if (tasks->nccl_version > 0)
        snprintf(side->nccl, sizeof side->nccl, "%d.%d.%d", tasks->nccl_version / 10000,
                 tasks->nccl_version / 100 % 100, tasks->nccl_version % 100);
}

static int add_tasks(att_compare_side_t *side, const att_tasks_t *tasks, const json_t *raw,
                     att_error_t *error)
{
    work_t w = {.raw = raw,
                .native = calloc(tasks->count + 1, sizeof *w.native),
                .tuned = calloc(tasks->count + 1, sizeof *w.tuned)};
    size_t skipped;
    int status = w.native != NULL && w.tuned != NULL ? ATT_OK : -ATT_ENOMEM;
    /* Without trials.jsonl the bounds are those of tasks.json. */
    if (status == ATT_OK)
        att_report_file_lines(side->path, "trials.jsonl", take_line, &w, &skipped, NULL);
    if (status == ATT_OK)
        status = w.status;
    for (size_t i = 0; i < tasks->count && status == ATT_OK; i++)
        status = add_task(side, &tasks->rows[i], json_array_get(raw, i), &w.native[i], &w.tuned[i]);
    for (size_t i = 0; w.native != NULL && w.tuned != NULL && i < tasks->count; i++) {
        free(w.native[i].values);
        free(w.tuned[i].values);
    }
    free(w.native);
    free(w.tuned);
    return status == ATT_OK ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory");
}

int att_compare_run_read(att_compare_side_t *side, att_error_t *error)
{
    char *bytes;
    size_t length;
    att_tasks_t tasks;
    att_run_end_t end;
    json_t *root = NULL;
    side->kind = ATT_COMPARE_RUN;
    att_run_end_look(side->path, &end);
    int status =
        att_report_file_read(side->path, "tasks.json", ATT_TASKS_FILE_MAX, &bytes, &length, error);
    if (status != ATT_OK)
        return status;
    att_error_t inner = {""};
    status = att_tasks_parse(bytes, length, &tasks, &inner);
    if (status != ATT_OK) {
        free(bytes);
        return att_fail(error, (att_status_t)-status, "%s/tasks.json: %s", side->path, inner.text);
    }
    status = att_json_parse(bytes, length, &root, error);
    free(bytes);
    note_clock(side, &tasks);
    att_run_end_text(&end, &tasks, side->end);
    if (status == ATT_OK)
        status = add_tasks(side, &tasks, json_object_get(root, "tasks"), error);
    json_decref(root);
    att_tasks_free(&tasks);
    return status;
}
