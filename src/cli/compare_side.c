#include "cli/compare_side.h"

#include "cli/json_file.h"
#include "cli/report_file.h"
#include "profile/room.h"
#include "search/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX  (256u << 20)
#define TAIL      0.025 /* of 95 %, on each side */
#define TWO_SIDES 1.96  /* standard errors for 95 % */

const char *att_compare_kind_name(att_compare_kind_t kind)
{
    static const char *const names[] = {"a run folder", "the output of nccl-tests or attune bench",
                                        "the JSON of attune bench --sweep"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

double att_compare_error(const double *samples, uint32_t count)
{
    double median = att_median(samples, count);
    double lower = att_median_lower(samples, count, TAIL);
    double upper = att_median_upper(samples, count, TAIL);
    if (!(median > 0) || !isfinite(lower) || !isfinite(upper))
        return -1;
    return fmax(upper - median, median - lower) / median;
}

static bool alike(const att_compare_entry_t *a, const att_compare_entry_t *b)
{
    return a->bytes == b->bytes && a->ranks == b->ranks && a->nodes == b->nodes &&
           strcmp(a->collective, b->collective) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->type, b->type) == 0 && strcmp(a->redop, b->redop) == 0 &&
           strcmp(a->load, b->load) == 0;
}

int att_compare_side_add(att_compare_side_t *side, const att_compare_entry_t *entry)
{
    if (!(entry->time_us > 0) || !isfinite(entry->time_us))
        return ATT_OK;
    if (att_room_append(&side->entries, side->count, sizeof *side->entries) != ATT_OK)
        return -ATT_ENOMEM;
    att_compare_entry_t *added = &side->entries[side->count];
    *added = *entry;
    char *const texts[] = {added->collective, added->type, added->redop,
                           added->load,       added->by,   added->setting};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        att_result_text_clean(texts[i]);
    for (uint32_t i = 0; i < side->count; i++)
        added->ordinal += alike(&side->entries[i], added);
    side->count++;
    return ATT_OK;
}

/* --- rows ---------------------------------------------------------------------------------------
 */

static int take_rows(att_compare_side_t *side, const char *text, size_t size, att_error_t *error)
{
    static const char *const what[] = {"out of place", "in place"};
    int status = att_result_rows_parse(text, size, side->path, &side->rows, error);
    if (status != ATT_OK)
        return status;
    side->kind = ATT_COMPARE_ROWS;
    snprintf(side->nccl, sizeof side->nccl, "%s", side->rows.nccl);
    snprintf(side->device, sizeof side->device, "%s", side->rows.device);
    snprintf(side->clock, sizeof side->clock, "%s", side->rows.clock);
    for (uint32_t i = 0; i < side->rows.count && status == ATT_OK; i++)
        for (int s = 0; s < 2 && status == ATT_OK; s++) {
            const att_result_row_t *row = &side->rows.rows[i];
            att_compare_entry_t entry = {
                .what = what[s],
                .bytes = row->bytes,
                .ranks = side->rows.ranks,
                .time_us = row->side[s].time_us,
                .error = row->side[s].error < 0 ? -1 : TWO_SIDES * row->side[s].error};
            snprintf(entry.collective, sizeof entry.collective, "%s", row->collective);
            snprintf(entry.type, sizeof entry.type, "%s", row->type);
            snprintf(entry.redop, sizeof entry.redop, "%s", row->redop);
            status = att_compare_side_add(side, &entry);
        }
    return status == ATT_OK ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory");
}

/* --- sweep --------------------------------------------------------------------------------------
 */

static double samples_error(const json_t *list)
{
    size_t count = json_array_size(list);
    double *samples = malloc((count + 1) * sizeof *samples);
    if (samples == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        samples[i] = json_number_value(json_array_get(list, i));
    double error = att_compare_error(samples, (uint32_t)count);
    free(samples);
    return error;
}

static int take_sweep_task(att_compare_side_t *side, const json_t *task)
{
    size_t i;
    json_t *final;
    json_int_t bytes = json_integer_value(json_object_get(task, "bytes"));
    json_int_t ranks = json_integer_value(json_object_get(task, "ranks"));
    json_array_foreach(json_object_get(task, "settings"), i, final)
    {
        bool native = json_is_true(json_object_get(final, "default"));
        bool tuned = json_is_true(json_object_get(final, "tuned"));
        if (!native && !tuned && i > 0)
            continue;
        for (int role = 0; role < 3; role++) {
            if (!(role == 0 ? native : role == 1 ? tuned : i == 0))
                continue;
            att_compare_entry_t entry = {
                .what = role == 0   ? "NCCL's choice"
                        : role == 1 ? "tuned"
                                    : "best",
                .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                .ranks = ranks > 0 && ranks < 1 << 24 ? (int)ranks : 0,
                .time_us = json_number_value(json_object_get(final, "median_us")),
                .error = samples_error(json_object_get(final, "samples_us"))};
            snprintf(entry.collective, sizeof entry.collective, "%.23s",
                     att_json_text_at(task, "collective"));
            snprintf(entry.type, sizeof entry.type, "%.15s", att_json_text_at(task, "type"));
            snprintf(entry.load, sizeof entry.load, "%.15s", att_json_text_at(task, "load"));
            snprintf(entry.setting, sizeof entry.setting, "%.63s",
                     att_json_text_at(json_object_get(final, "setting"), "text"));
            if (att_compare_side_add(side, &entry) != ATT_OK)
                return -ATT_ENOMEM;
        }
    }
    return ATT_OK;
}

static int take_sweep(att_compare_side_t *side, const json_t *root, att_error_t *error)
{
    const json_t *from = json_object_get(root, "provenance");
    size_t i;
    json_t *task;
    side->kind = ATT_COMPARE_SWEEP;
    snprintf(side->nccl, sizeof side->nccl, "%s", att_json_text_at(from, "nccl_version"));
    snprintf(side->device, sizeof side->device, "%s",
             att_result_device(att_json_text_at(from, "device")));
    snprintf(side->clock, sizeof side->clock, "%s", att_json_text_at(from, "clock"));
    json_array_foreach(json_object_get(root, "tasks"), i,
                       task) if (take_sweep_task(side, task) !=
                                 ATT_OK) return att_fail(error, ATT_ENOMEM, "no memory");
    return ATT_OK;
}

/* --- any ----------------------------------------------------------------------------------------
 */

static int take_file(att_compare_side_t *side, att_error_t *error)
{
    char *text;
    size_t size;
    char folder[4096];
    const char *slash = strrchr(side->path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - side->path) + 1 : 1,
             slash != NULL ? side->path : ".");
    int status = att_report_file_read(folder, slash != NULL ? slash + 1 : side->path, FILE_MAX,
                                      &text, &size, error);
    if (status != ATT_OK)
        return status;
    json_t *root = json_loadb(text, size, 0, NULL);
    json_t *first = json_array_get(json_object_get(root, "tasks"), 0);
    if (json_is_array(json_object_get(first, "settings")))
        status = take_sweep(side, root, error);
    else if (json_object_get(first, "phase") != NULL)
        status =
            att_fail(error, ATT_EINPUT, "%s: give the run's folder, not a file of it", side->path);
    else
        status = take_rows(side, text, size, error);
    json_decref(root);
    free(text);
    return status;
}

int att_compare_side_read(const char *path, att_compare_side_t *side, att_error_t *error)
{
    struct stat about;
    *side = (att_compare_side_t){.path = path};
    if (stat(path, &about) != 0)
        return att_fail(error, errno == ENOENT ? ATT_ENOENT : ATT_ESYSTEM, "%s: %s", path,
                        strerror(errno));
    int status =
        S_ISDIR(about.st_mode) ? att_compare_run_read(side, error) : take_file(side, error);
    att_result_text_clean(side->nccl);
    att_result_text_clean(side->device);
    att_result_text_clean(side->clock);
    if (status == ATT_OK && side->count == 0)
        status = att_fail(error, ATT_EINPUT, "%s: nothing in it has a time", path);
    if (status != ATT_OK)
        att_compare_side_free(side);
    return status;
}

void att_compare_side_free(att_compare_side_t *side)
{
    free(side->entries);
    att_result_rows_free(&side->rows);
    side->entries = NULL;
    side->count = 0;
}
