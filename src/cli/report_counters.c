#include "cli/report_counters.h"

#include "cli/json_file.h"
#include "cli/report_file.h"
#include "profile/room.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS  64u
#define SOURCES 65536u

/* A read of one source: its time and a value an event. */
typedef struct sample {
    double time_s;
    double values[]; /* in the order of the events */
} sample_t;

typedef struct source {
    json_t *about; /* of the report */
    uint32_t event_count, count;
    bool level[EVENTS];
    char *samples; /* sample_t of one size each */
} source_t;

typedef struct node {
    json_t *about, *sources, *unavailable;
    source_t *list;
    uint32_t count;
    uint64_t lines, unreadable;
    int status;
} node_t;

static size_t sample_size(const source_t *s)
{
    return sizeof(sample_t) + s->event_count * sizeof(double);
}

static const sample_t *sample_at(const source_t *s, uint32_t i)
{
    return (const sample_t *)(const void *)(s->samples + i * sample_size(s));
}

static void copy(json_t *to, const json_t *from, const char *key)
{
    json_t *member = json_object_get(from, key);
    if (member != NULL && !json_is_object(member) && !json_is_array(member))
        json_object_set(to, key, member);
}

static bool holds(const json_t *list, const char *text)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (json_is_string(entry) && strcmp(json_string_value(entry), text) == 0)
            return true;
    }
    return false;
}

static int begin_source(node_t *n, const json_t *line)
{
    static const char *const keys[] = {"name", "scope", "process", "pid", "read_us"};
    json_t *names = json_object_get(line, "events"), *levels = json_object_get(line, "levels");
    json_int_t number = json_integer_value(json_object_get(line, "source"));
    /* Sources are numbered as they come. */
    if (number != n->count || number >= SOURCES || json_array_size(names) > EVENTS) {
        n->unreadable++;
        return ATT_OK;
    }
    if (att_room_append(&n->list, n->count, sizeof *n->list) != ATT_OK)
        return -ATT_ENOMEM;
    source_t *s = &n->list[n->count++];
    *s = (source_t){.about = json_object(), .event_count = (uint32_t)json_array_size(names)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        copy(s->about, line, keys[i]);
    json_t *events = json_array();
    for (uint32_t e = 0; e < s->event_count; e++) {
        const char *name = json_string_value(json_array_get(names, e));
        s->level[e] = name != NULL && holds(levels, name);
        json_array_append_new(events, json_pack("{s:s,s:b}", "event", name != NULL ? name : "",
                                                "level", (int)s->level[e]));
    }
    json_object_set_new(s->about, "events", events);
    json_array_append(n->sources, s->about);
    return ATT_OK;
}

static source_t *source_of(node_t *n, json_int_t number)
{
    return number >= 0 && number < n->count ? &n->list[number] : NULL;
}

static int add_sample(source_t *s, double time_s, const json_t *values)
{
    /* Times of reads only grow. */
    if (json_array_size(values) != s->event_count ||
        (s->count > 0 && !(time_s > sample_at(s, s->count - 1)->time_s)))
        return ATT_OK;
    if (att_room_append(&s->samples, s->count, sample_size(s)) != ATT_OK)
        return -ATT_ENOMEM;
    sample_t *sample = (sample_t *)(void *)(s->samples + s->count++ * sample_size(s));
    sample->time_s = time_s;
    for (uint32_t e = 0; e < s->event_count; e++)
        sample->values[e] = json_number_value(json_array_get(values, e));
    return ATT_OK;
}

static int take_read(node_t *n, json_t *line, json_t *values)
{
    const char *key;
    json_t *list;
    double time_s = json_number_value(json_object_get(line, "time_s"));
    json_object_foreach(values, key, list)
    {
        source_t *s = source_of(n, strtol(key, NULL, 10));
        if (s != NULL && add_sample(s, time_s, list) != ATT_OK)
            return -ATT_ENOMEM;
    }
    return ATT_OK;
}

static int take_line(void *context, char *text, size_t length)
{
    node_t *n = context;
    json_t *line = json_loadb(text, length, 0, NULL), *member;
    int status = ATT_OK;
    n->lines++;
    if (!json_is_object(line)) {
        n->unreadable++;
    } else if ((member = json_object_get(line, "values")) != NULL) {
        status = take_read(n, line, member);
    } else if ((member = json_object_get(line, "unavailable")) != NULL) {
        json_t *entry = json_object();
        json_object_set(entry, "name", member);
        copy(entry, line, "reason");
        json_array_append_new(n->unavailable, entry);
    } else if (json_object_get(line, "events") != NULL) {
        status = begin_source(n, line);
    } else if ((member = json_object_get(line, "source")) != NULL) {
        source_t *s = source_of(n, json_integer_value(member));
        if (s != NULL) {
            copy(s->about, line, "state");
            copy(s->about, line, "reason");
        }
    } else if (json_object_get(line, "end") != NULL) {
        copy(n->about, line, "share");
    } else if (n->lines == 1) {
        copy(n->about, line, "node");
        copy(n->about, line, "host");
        copy(n->about, line, "budget");
    }
    json_decref(line);
    return status;
}

/* --- what it comes to ---------------------------------------------------------------------------
 */

/* The rate between two reads, or the level at the second. */
static double between(const source_t *s, uint32_t from, uint32_t to, uint32_t event)
{
    const sample_t *a = sample_at(s, from), *b = sample_at(s, to);
    return s->level[event] ? b->values[event]
                           : (b->values[event] - a->values[event]) / (b->time_s - a->time_s);
}

static void finish_event(const source_t *s, uint32_t event, json_t *about)
{
    double mean = 0, most = 0;
    json_t *course = json_array();
    const sample_t *last = sample_at(s, s->count - 1);
    for (uint32_t i = 1; i < s->count; i++) {
        double rate = between(s, i - 1, i, event);
        most = i == 1 ? rate : fmax(most, rate);
        mean += rate / (s->count - 1);
    }
    if (!s->level[event] && s->count > 1)
        mean = between(s, 0, s->count - 1, event);
    uint32_t slices = s->count - 1 < ATT_REPORT_SLICES ? s->count - 1 : ATT_REPORT_SLICES;
    for (uint32_t k = 0; k < slices; k++) {
        uint32_t from = (uint32_t)((uint64_t)k * (s->count - 1) / slices);
        uint32_t to = (uint32_t)((uint64_t)(k + 1) * (s->count - 1) / slices);
        json_array_append_new(course, json_real(between(s, from, to, event)));
    }
    if (!s->level[event])
        json_object_set_new(about, "total", json_real(last->values[event]));
    if (s->count > 1) {
        json_object_set_new(about, "mean", json_real(mean));
        json_object_set_new(about, "most", json_real(most));
    }
    json_object_set_new(about, "course", course);
}

static void finish_source(source_t *s)
{
    json_t *events = json_object_get(s->about, "events");
    json_object_set_new(s->about, "reads", json_integer(s->count));
    for (uint32_t e = 0; s->count > 0 && e < s->event_count; e++)
        finish_event(s, e, json_array_get(events, e));
}

static int read_node(const char *folder, const char *name, json_t *nodes, uint64_t *unreadable,
                     att_error_t *error)
{
    size_t skipped = 0;
    node_t n = {.about = json_object(), .sources = json_array(), .unavailable = json_array()};
    int status = att_report_file_lines(folder, name, take_line, &n, &skipped, error);
    for (uint32_t i = 0; i < n.count; i++) {
        if (status == ATT_OK)
            finish_source(&n.list[i]);
        json_decref(n.list[i].about);
        free(n.list[i].samples);
    }
    free(n.list);
    *unreadable += n.unreadable + skipped;
    json_object_set_new(n.about, "sources", n.sources);
    json_object_set_new(n.about, "unavailable", n.unavailable);
    if (status == ATT_OK)
        json_array_append(nodes, n.about);
    json_decref(n.about);
    return status;
}

static int is_node_file(const struct dirent *entry)
{
    const char *end = strstr(entry->d_name, ".jsonl");
    return strncmp(entry->d_name, "node-", 5) == 0 && end != NULL &&
           (strcmp(end, ".jsonl") == 0 || strcmp(end, ".jsonl.gz") == 0);
}

int att_report_counters(const char *folder, json_t **counters, json_t *files, att_error_t *error)
{
    char path[PATH_MAX];
    struct dirent **entries;
    snprintf(path, sizeof path, "%.4000s/counters", folder);
    int count = scandir(path, &entries, is_node_file, alphasort), status = ATT_OK;
    if (count <= 0) {
        if (count == 0)
            free(entries);
        return att_fail(error, ATT_ENOENT, "%s: there are no counters", path);
    }
    json_t *nodes = json_array();
    uint64_t unreadable = 0;
    for (int i = 0; i < count; i++) {
        char name[300];
        snprintf(name, sizeof name, "counters/%s", entries[i]->d_name);
        char *end = strstr(entries[i]->d_name, ".gz");
        if (end != NULL)
            *end = '\0';
        if (status == ATT_OK)
            status = read_node(path, entries[i]->d_name, nodes, &unreadable, error);
        if (status == ATT_OK)
            json_array_append_new(files, att_json_text(name));
        free(entries[i]);
    }
    free(entries);
    if (status != ATT_OK) {
        json_decref(nodes);
        return status == -ATT_ENOMEM ? att_fail(error, ATT_ENOMEM, "no memory") : status;
    }
    *counters = json_pack("{s:o,s:I}", "nodes", nodes, "unreadable", (json_int_t)unreadable);
    return ATT_OK;
}
