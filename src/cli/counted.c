#include "cli/counted.h"

#include "cli/folder_glob.h"
#include "profile/counters.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES (512u << 20)

typedef struct source {
    bool known, level[ATT_COUNTER_EVENTS];
    uint32_t count, name[ATT_COUNTER_EVENTS];
    int64_t at_ns; /* of the last read, 0 = none */
    double last[ATT_COUNTER_EVENTS];
} source_t;

typedef struct file {
    att_counted_t *into;
    uint32_t node;
    source_t sources[ATT_COUNTER_SOURCES];
} file_t;

static int name_of(att_counted_t *c, const char *scope, const char *event, bool level,
                   uint32_t *index)
{
    char name[ATT_COUNTED_NAME];
    snprintf(name, sizeof name, "%.16s %.128s%s", scope, event, level ? "" : " (1/s)");
    for (uint32_t i = 0; i < c->name_count; i++)
        if (strcmp(c->names[i], name) == 0) {
            *index = i;
            return ATT_OK;
        }
    if (c->names == NULL)
        c->names = calloc(ATT_COUNTED_NAMES, sizeof *c->names);
    if (c->names == NULL)
        return -ATT_ENOMEM;
    *index = c->name_count;
    if (c->name_count < ATT_COUNTED_NAMES)
        memcpy(c->names[c->name_count++], name, sizeof name);
    return ATT_OK;
}

static int take_source(file_t *f, const json_t *line)
{
    json_int_t index = json_integer_value(json_object_get(line, "source"));
    const json_t *events = json_object_get(line, "events"),
                 *levels = json_object_get(line, "levels");
    const char *scope = json_string_value(json_object_get(line, "scope"));
    if (index < 0 || index >= ATT_COUNTER_SOURCES || scope == NULL)
        return ATT_OK;
    source_t *s = &f->sources[index];
    *s = (source_t){.known = true};
    size_t count = json_array_size(events);
    for (size_t e = 0; e < count && e < ATT_COUNTER_EVENTS; e++) {
        const char *event = json_string_value(json_array_get(events, e));
        for (size_t l = 0; l < json_array_size(levels) && event != NULL; l++) {
            const char *level = json_string_value(json_array_get(levels, l));
            s->level[e] |= level != NULL && strcmp(level, event) == 0;
        }
        int status = name_of(f->into, scope, event != NULL ? event : "?", s->level[e], &s->name[e]);
        if (status != ATT_OK)
            return status;
        s->count++;
    }
    return ATT_OK;
}

/* Powers of two: the room doubles when it is full. */
static int add_point(att_counted_t *c, const att_counted_point_t *point)
{
    if ((c->count & (c->count - 1)) == 0) {
        size_t capacity = c->count == 0 ? 1 : 2 * c->count;
        att_counted_point_t *more = realloc(c->points, capacity * sizeof *more);
        if (more == NULL)
            return -ATT_ENOMEM;
        c->points = more;
    }
    c->points[c->count++] = *point;
    return ATT_OK;
}

/* Processes of a node count together: their points are at one time and follow each other. */
static int add_value(file_t *f, size_t from, int64_t at_ns, uint32_t name, double value)
{
    if (!isfinite(value) || name >= f->into->name_count)
        return ATT_OK;
    for (size_t i = from; i < f->into->count; i++)
        if (f->into->points[i].name == name) {
            double sum = f->into->points[i].value + value;
            f->into->points[i].value = isfinite(sum) ? sum : 0;
            return ATT_OK;
        }
    return add_point(f->into, &(att_counted_point_t){at_ns, f->node, name, value});
}

static int take_reading(file_t *f, json_t *line)
{
    json_t *values = json_object_get(line, "values"), *list;
    int64_t at_ns = json_integer_value(json_object_get(line, "time_ns"));
    size_t from = f->into->count;
    const char *key;
    int status = ATT_OK;
    json_object_foreach(values, key, list)
    {
        unsigned long index = strtoul(key, NULL, 10);
        if (index >= ATT_COUNTER_SOURCES || !f->sources[index].known)
            continue;
        source_t *s = &f->sources[index];
        for (uint32_t e = 0; e < s->count && status == ATT_OK; e++) {
            double value = json_number_value(json_array_get(list, e));
            if (s->level[e])
                status = add_value(f, from, at_ns, s->name[e], value);
            else if (s->at_ns != 0 && at_ns > s->at_ns)
                status = add_value(f, from, at_ns, s->name[e],
                                   (value - s->last[e]) * 1e9 / (double)(at_ns - s->at_ns));
            s->last[e] = value;
        }
        s->at_ns = at_ns;
    }
    return status;
}

int att_counted_parse(const char *bytes, size_t length, att_counted_t *into)
{
    file_t *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -ATT_ENOMEM;
    f->into = into;
    int status = ATT_OK;
    for (const char *at = bytes, *end = bytes + length; at < end && status == ATT_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) /* a line that was being written */
            break;
        json_t *line = json_loadb(at, (size_t)(stop - at), 0, NULL);
        at = stop + 1;
        if (json_object_get(line, "what") != NULL) { /* another sidecar goes on in the file */
            memset(f->sources, 0, sizeof f->sources);
            f->node = (uint32_t)json_integer_value(json_object_get(line, "node"));
        } else if (json_object_get(line, "values") != NULL) {
            status = take_reading(f, line);
        } else if (json_object_get(line, "events") != NULL) {
            status = take_source(f, line);
        }
        json_decref(line);
    }
    free(f);
    return status;
}

static int read_file(const char *path, att_counted_t *into, att_error_t *error)
{
    struct stat about;
    FILE *file = fopen(path, "re");
    if (file == NULL || fstat(fileno(file), &about) != 0) {
        int status = att_fail_errno(error, "%s", path);
        if (file != NULL)
            fclose(file);
        return status;
    }
    size_t size = about.st_size < FILE_BYTES ? (size_t)about.st_size : FILE_BYTES;
    char *bytes = malloc(size + 1);
    int status =
        bytes == NULL ? -ATT_ENOMEM : att_counted_parse(bytes, fread(bytes, 1, size, file), into);
    free(bytes);
    fclose(file);
    return status == ATT_OK ? status : att_fail(error, ATT_ENOMEM, "%s: no memory", path);
}

int att_counted_read(const char *run, att_counted_t *counted, att_error_t *error)
{
    glob_t files;
    int status = ATT_OK;
    memset(counted, 0, sizeof *counted);
    if (att_folder_glob(run, "counters/node-*.jsonl", &files) != 0)
        return ATT_OK;
    for (size_t i = 0; i < files.gl_pathc && status == ATT_OK; i++)
        status = read_file(files.gl_pathv[i], counted, error);
    globfree(&files);
    if (status != ATT_OK)
        att_counted_free(counted);
    return status;
}

/* The node's clock, as its records have it: bent where a test bends it. 1, or 0: not tied. */
static int on_reference(const struct att_trace *trace, uint32_t agent, int64_t at_ns, int64_t *ns)
{
    const att_catalog_t *catalog = att_trace_catalog(trace);
    for (uint32_t n = 0; n < catalog->node_count; n++) {
        att_trace_node_t about;
        att_trace_node(trace, n, &about);
        if (about.agent != agent || !about.calibrated)
            continue;
        int64_t node_ns =
            at_ns + about.injected_offset_ns + (int64_t)(about.injected_drift * (double)at_ns);
        *ns = about.model != NULL && about.model->count > 0
                  ? att_clock_model_read(about.model, node_ns).ns
                  : node_ns;
        return 1;
    }
    return 0;
}

int att_counted_on_trace(const att_counted_t *counted, const struct att_trace *trace,
                         att_chrome_counted_t **list, size_t *count)
{
    *list = NULL;
    *count = 0;
    if (counted->count == 0 || att_trace_facts(trace)->virtual_time)
        return ATT_OK;
    *list = malloc(counted->count * sizeof **list);
    if (*list == NULL)
        return -ATT_ENOMEM;
    for (size_t i = 0; i < counted->count; i++) {
        const att_counted_point_t *p = &counted->points[i];
        int64_t ns;
        if (on_reference(trace, p->node, p->at_ns, &ns))
            (*list)[(*count)++] =
                (att_chrome_counted_t){ns, p->node, counted->names[p->name], p->value};
    }
    return ATT_OK;
}

void att_counted_free(att_counted_t *counted)
{
    if (counted == NULL)
        return;
    free(counted->names);
    free(counted->points);
    memset(counted, 0, sizeof *counted);
}
