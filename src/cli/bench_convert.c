#include "cli/bench_convert.h"

#include "base/names.h"
#include "cli/bench_candidate.h"
#include "cli/bench_setting.h"
#include "cli/json_file.h"
#include "cli/t4_file.h"
#include "surface/file.h"
#include "surface/gunzip.h"
#include "surface/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_MOST  10000
#define TIME_MAX_US 1e12

typedef struct sweep {
    const att_record_options_t *options;
    const char *path;
    json_t *provenance;
    const char *date;
    att_error_t *error;
} sweep_t;

static int malformed(const sweep_t *s, size_t task, const char *what)
{
    return att_fail(s->error, ATT_EINPUT, "%s: /tasks/%zu: %s", s->path, task, what);
}

static int read_sweep(const char *path, json_t **root, att_error_t *error)
{
    char named[4096], opened[4096], *bytes = NULL, *inflated = NULL;
    size_t length = 0;
    att_error_t inner = {""};
    /* A file of this folder, not the name of a surface. */
    if (snprintf(named, sizeof named, "%s%s", strchr(path, '/') == NULL ? "./" : "", path) >=
        (int)sizeof named)
        return att_fail(error, ATT_EUSAGE, "the path '%.64s...' is too long", path);
    int rc = att_surface_file_read(named, opened, sizeof opened, &bytes, &length, error);
    if (rc != ATT_OK)
        return rc;
    if (att_gunzip_is(bytes, length)) {
        rc = att_gunzip(bytes, length, ATT_SURFACE_BYTES_MAX, &inflated, &length, &inner);
        free(bytes);
        bytes = inflated;
    }
    if (rc == ATT_OK)
        rc = att_json_parse(bytes, length, root, &inner);
    free(bytes);
    if (rc == ATT_OK) {
        rc = att_json_check_version(*root, 1, &inner);
        if (rc != ATT_OK)
            json_decref(*root);
    }
    return rc == ATT_OK ? ATT_OK : att_fail(error, (att_status_t)-rc, "%s: %s", opened, inner.text);
}

/* The finalist with that setting, NULL when it was not measured again. */
static json_t *final_of(json_t *finals, const char *text)
{
    size_t i;
    json_t *element;
    json_array_foreach(finals, i, element)
    {
        const char *word =
            json_string_value(json_object_get(json_object_get(element, "setting"), "text"));
        if (word != NULL && strcmp(word, text) == 0)
            return element;
    }
    return NULL;
}

static int is_duration(double us)
{
    return us > 0 && us <= TIME_MAX_US;
}

/* One setting: its grid median, or what the sweep knows instead, and its second measurement. */
static json_t *convert_setting(const sweep_t *s, const char *text, double median_us, int count,
                               double slow_us, json_t *final)
{
    att_t4_sampled_t sampled = {.timestamp = s->date};
    if (att_bench_setting_parse(text, &sampled.setting, NULL) != ATT_OK)
        return NULL;
    json_t *list = json_object_get(final, "samples_us");
    size_t n = json_array_size(list);
    double *again = calloc(n + 1, sizeof *again);
    int good = again != NULL && n <= AGAIN_MOST;
    for (size_t i = 0; good && i < n; i++) {
        again[i] = json_number_value(json_array_get(list, i));
        good = is_duration(again[i]);
    }
    sampled.again_us = again;
    sampled.again_count = (uint32_t)n;
    if (count > 0) {
        good = good && is_duration(median_us);
        sampled.time_us = median_us;
        sampled.time_count = (uint32_t)count;
    } else if (n == 0) {
        sampled.at_least_us = slow_us;
    }
    json_t *result = good ? att_t4_result(&sampled) : NULL;
    free(again);
    return result;
}

/* The grid, then finalists that are not of the grid (--also). */
static int convert_settings(const sweep_t *s, size_t number, json_t *task, json_t *results)
{
    json_t *grid = json_object_get(task, "grid"), *finals = json_object_get(task, "settings");
    json_t *row, *final;
    size_t i, j;
    double native_us = 0;
    json_array_foreach(grid, i, row)
    {
        const char *text = json_string_value(json_array_get(row, 0));
        if (text != NULL && strcmp(text, "keep") == 0)
            native_us = json_number_value(json_array_get(row, 1));
    }
    if (!is_duration(native_us))
        return malformed(s, number, "the grid does not have NCCL's choice (\"keep\")");
    json_array_foreach(grid, i, row)
    {
        const char *text = json_string_value(json_array_get(row, 0));
        json_t *result = text == NULL
                             ? NULL
                             : convert_setting(s, text, json_number_value(json_array_get(row, 1)),
                                               (int)json_integer_value(json_array_get(row, 2)),
                                               ATT_SLOW_FIRST * native_us, final_of(finals, text));
        if (result == NULL)
            return malformed(s, number, "an element of \"grid\" is no [setting, median, samples]");
        json_array_append_new(results, result);
    }
    json_array_foreach(finals, j, final)
    {
        const char *text =
            json_string_value(json_object_get(json_object_get(final, "setting"), "text"));
        int in_grid = 0;
        json_array_foreach(grid, i, row) in_grid |=
            text != NULL && strcmp(text, json_string_value(json_array_get(row, 0))) == 0;
        json_t *result = text == NULL || in_grid ? NULL : convert_setting(s, text, 0, 0, 0, final);
        if (result != NULL)
            json_array_append_new(results, result);
        else if (!in_grid)
            return malformed(s, number, "an element of \"settings\" is not understood");
    }
    return ATT_OK;
}

/* "ring/ll128" as a setting; KEEP where the sweep does not know. */
static att_setting_t native_of(json_t *task)
{
    att_setting_t native = ATT_SETTING_KEEP;
    const char *pair = json_string_value(json_object_get(task, "native_pair"));
    if (pair == NULL || att_bench_setting_parse(pair, &native, NULL) != ATT_OK)
        return ATT_SETTING_KEEP;
    return native;
}

/* It becomes a part of the file's name. */
static int is_load(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return n > 0 && n <= 32 && word[n] == '\0';
}

/* Nothing is left, and nothing replaced, that attune sim would refuse. */
static int write_surface(const sweep_t *s, size_t number, const char *path,
                         const att_t4_header_t *header, json_t *results)
{
    char temporary[4096];
    att_error_t inner = {""};
    struct att_surface *surface;
    if (snprintf(temporary, sizeof temporary, "%s/.%s.json.gz", s->options->out, header->name) >=
        (int)sizeof temporary) {
        json_decref(results);
        return att_fail(s->error, ATT_EUSAGE, "the path '%.64s...' is too long", temporary);
    }
    int rc = att_t4_write(temporary, header, results, s->error);
    if (rc != ATT_OK)
        return rc;
    if (att_surface_open(temporary, &surface, &inner) != ATT_OK) {
        const char *reason = inner.text;
        if (strncmp(reason, temporary, strlen(temporary)) == 0)
            reason += strlen(temporary) + strlen(": ");
        rc = att_fail(s->error, ATT_EINPUT, "%s: /tasks/%zu: would be no surface: %s", s->path,
                      number, reason);
    } else {
        att_surface_close(surface);
        if (rename(temporary, path) != 0)
            rc = att_fail_errno(s->error, "%s: cannot rename to %s", temporary, path);
    }
    if (rc != ATT_OK)
        unlink(temporary);
    return rc;
}

static int convert_task(const sweep_t *s, size_t number, json_t *task)
{
    const char *word = NULL, *load = NULL, *type = NULL;
    json_int_t bytes = 0;
    int ranks = 0, batch = 1;
    if (json_unpack(task, "{s:s, s:I, s:i, s:s, s:s, s?i}", "collective", &word, "bytes", &bytes,
                    "ranks", &ranks, "load", &load, "type", &type, "batch", &batch) != 0 ||
        att_collective_parse(word) < 0 || bytes < 1 || ranks < 1 || !is_load(load))
        return malformed(s, number, "no task of a sweep (collective, bytes, ranks, type, load)");
    char size[24], name[256], path[4096], description[200], note[200];
    att_bytes_text((uint64_t)bytes, size, sizeof size);
    for (char *c = size; *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    snprintf(name, sizeof name, "%s-%s-%s%s%s", s->options->prefix, word, size,
             strcmp(load, "none") == 0 ? "" : "-", strcmp(load, "none") == 0 ? "" : load);
    snprintf(description, sizeof description, "%s, %s, %d ranks%s%.90s", word, size, ranks,
             s->options->description != NULL ? ", " : "",
             s->options->description != NULL ? s->options->description : "");
    snprintf(
        note, sizeof note,
        "from a sweep of %d calls a sample: coarser than attune record's grid; medians of 1 to "
        "3 samples, raw samples of the best only; slow ones are lower bounds",
        batch);
    if (snprintf(path, sizeof path, "%s/%s.json.gz", s->options->out, name) >= (int)sizeof path)
        return att_fail(s->error, ATT_EUSAGE, "the path '%.64s...' is too long", path);
    json_t *results = json_array();
    int rc = convert_settings(s, number, task, results);
    if (rc != ATT_OK) {
        json_decref(results);
        return rc;
    }
    size_t count = json_array_size(results);
    att_t4_header_t header = {.name = name,
                              .description = description,
                              .source = "attune bench --sweep, converted by attune record",
                              .note = note,
                              .state = "complete",
                              .collective = att_collective_parse(word),
                              .bytes = (uint64_t)bytes,
                              .load = load,
                              .type = type,
                              .device = s->options->device != NULL ? s->options->device : "unknown",
                              .device_units = s->options->device_units,
                              .ranks = ranks,
                              .nodes = 1,
                              .native = native_of(task),
                              .provenance = s->provenance};
    rc = write_surface(s, number, path, &header, results);
    if (rc == ATT_OK)
        printf("%s: %zu settings\n", path, count);
    return rc;
}

int att_bench_convert(const att_record_options_t *options, att_error_t *error)
{
    json_t *root = NULL, *task;
    int rc = read_sweep(options->from_sweep, &root, error);
    if (rc != ATT_OK)
        return rc;
    sweep_t s = {.options = options, .path = options->from_sweep, .error = error};
    json_t *tasks = json_object_get(root, "tasks");
    s.provenance = json_deep_copy(json_object_get(root, "provenance"));
    if (json_is_object(s.provenance))
        json_object_set_new(s.provenance, "converted_from", att_json_text(options->from_sweep));
    s.date = json_string_value(json_object_get(s.provenance, "date"));
    if (json_array_size(tasks) == 0 || s.date == NULL)
        rc = att_fail(error, ATT_EINPUT, "%s: no file of attune bench --sweep", s.path);
    size_t i;
    for (i = 0; rc == ATT_OK && i < json_array_size(tasks); i++) {
        task = json_array_get(tasks, i);
        rc = convert_task(&s, i, task);
    }
    json_decref(s.provenance);
    json_decref(root);
    return rc;
}
