#include "control/quarantine.h"

#include "base/log.h"
#include "base/names.h"
#include "control/setting_json.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 65536

/* The list of one task that was written last and has not played out. */
typedef struct open_list {
    json_int_t task, txn;
    json_t *line;
} open_list_t;

typedef struct lists {
    open_list_t *items;
    size_t count, room;
} lists_t;

static open_list_t *find(lists_t *lists, json_int_t task)
{
    for (size_t i = 0; i < lists->count; i++)
        if (lists->items[i].task == task)
            return &lists->items[i];
    if (lists->count == lists->room) {
        size_t room = lists->room > 0 ? 2 * lists->room : 64;
        open_list_t *items = realloc(lists->items, room * sizeof *items);
        if (items == NULL)
            return NULL;
        lists->items = items;
        lists->room = room;
    }
    lists->items[lists->count] = (open_list_t){.task = task};
    return &lists->items[lists->count++];
}

static void forget(lists_t *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        json_decref(lists->items[i].line);
    free(lists->items);
}

/* 0, or 1 when the line is none of ours. Takes over `line`. */
static int take_line(lists_t *lists, json_t *line)
{
    json_t *task = json_object_get(line, "task"), *txn = json_object_get(line, "txn");
    open_list_t *open = json_is_integer(task) && json_is_integer(txn)
                            ? find(lists, json_integer_value(task))
                            : NULL;
    if (open == NULL) {
        json_decref(line);
        return 1;
    }
    if (json_object_get(line, "over") == NULL) {
        json_decref(open->line);
        open->line = line;
        open->txn = json_integer_value(txn);
        return 0;
    }
    if (open->txn == json_integer_value(txn)) {
        json_decref(open->line);
        open->line = NULL;
    }
    json_decref(line);
    return 0;
}

static int add_row(struct att_quarantine *q, const att_quarantine_row_t *row)
{
    if (att_setting_is_keep(row->setting))
        return ATT_OK;
    if (q->count == q->room) {
        uint32_t room = q->room > 0 ? 2 * q->room : 32;
        att_quarantine_row_t *rows = realloc(q->rows, room * sizeof *rows);
        if (rows == NULL)
            return -ATT_ENOMEM;
        q->rows = rows;
        q->room = room;
    }
    q->rows[q->count++] = *row;
    return ATT_OK;
}

/* The trials of a list: every entry but the last, which is the incumbent. */
static int add_list(struct att_quarantine *q, const json_t *line)
{
    const json_t *entries = json_object_get(line, "entries");
    int collective = att_collective_parse(json_string_value(json_object_get(line, "collective")));
    const char *device = json_string_value(json_object_get(line, "device"));
    uint64_t nccl_version, ranks, nodes, bytes;
    if (collective < 0 || device == NULL || !json_is_array(entries) ||
        att_json_number(line, "nccl_version", UINT32_MAX, &nccl_version) ||
        att_json_number(line, "ranks", INT32_MAX, &ranks) ||
        att_json_number(line, "nodes", INT32_MAX, &nodes) ||
        att_json_number(line, "bytes", UINT64_MAX >> 1, &bytes))
        return -ATT_EINPUT;
    att_quarantine_row_t row = {.task = {.nccl_version = (uint32_t)nccl_version,
                                         .collective = (uint32_t)collective,
                                         .ranks = (uint32_t)ranks,
                                         .nodes = (uint32_t)nodes,
                                         .bytes = bytes}};
    snprintf(row.task.device, sizeof row.task.device, "%s", device);
    int rc = ATT_OK;
    for (size_t i = 0; rc == ATT_OK && i + 1 < json_array_size(entries); i++) {
        const json_t *setting = json_object_get(json_array_get(entries, i), "setting");
        rc = att_setting_of_json(setting, &row.setting) ? -ATT_EINPUT : add_row(q, &row);
    }
    return rc;
}

/* Whether the file is one of lists at all. */
static bool take_head(json_t *line)
{
    const char *what = json_string_value(json_object_get(line, "what"));
    bool lists = what != NULL && strcmp(what, "proposed lists") == 0;
    json_decref(line);
    return lists;
}

static int read_lists(const char *run, struct att_quarantine *q, att_error_t *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lists.jsonl", run);
    FILE *file = fopen(path, "re");
    char *text = malloc(LINE_MOST);
    if (file == NULL || text == NULL) {
        int rc = file == NULL ? att_fail_errno(error, "--quarantine %s: %s", run, path)
                              : att_fail(error, ATT_ENOMEM, "no memory");
        free(text);
        if (file != NULL)
            fclose(file);
        return rc;
    }
    lists_t lists = {0};
    int rc = ATT_OK;
    for (int number = 1; rc == ATT_OK && fgets(text, LINE_MOST, file) != NULL; number++) {
        json_t *line = json_loads(text, 0, NULL);
        bool good = strchr(text, '\n') == NULL; /* the cut off end of the file */
        if (line != NULL)
            good = number == 1 ? take_head(line) : take_line(&lists, line) == 0;
        if (!good)
            rc = att_fail(error, ATT_EINPUT, "--quarantine %s: line %d of lists.jsonl is malformed",
                          run, number);
    }
    for (size_t i = 0; rc == ATT_OK && i < lists.count; i++)
        if (lists.items[i].line != NULL && add_list(q, lists.items[i].line) != ATT_OK)
            rc = att_fail(error, ATT_EINPUT,
                          "--quarantine %s: the list of task %" JSON_INTEGER_FORMAT
                          " in lists.jsonl is malformed",
                          run, lists.items[i].task);
    forget(&lists);
    fclose(file);
    free(text);
    return rc;
}

int att_quarantine_read(const char *run, struct att_quarantine **out, att_error_t *error)
{
    struct att_quarantine *q = calloc(1, sizeof *q);
    int rc = q != NULL ? read_lists(run, q, error) : att_fail(error, ATT_ENOMEM, "no memory");
    if (rc == ATT_OK)
        *out = q;
    else
        att_quarantine_free(q);
    return rc;
}

void att_quarantine_free(struct att_quarantine *quarantine)
{
    if (quarantine == NULL)
        return;
    free(quarantine->rows);
    free(quarantine);
}

static bool same(const att_identity_t *a, const att_identity_t *b)
{
    return a->nccl_version == b->nccl_version && strcmp(a->device, b->device) == 0 &&
           a->collective == b->collective && a->ranks == b->ranks && a->nodes == b->nodes &&
           a->bytes == b->bytes;
}

uint32_t att_quarantine_find(const struct att_quarantine *q, const att_identity_t *task,
                             att_setting_t *settings, uint32_t most)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < q->count && found < most; i++) {
        if (!same(&q->rows[i].task, task))
            continue;
        char text[ATT_SETTING_TEXT], bytes[24];
        att_log(ATT_LOG_INFO, "--quarantine: %s %s never tries %s",
                att_collective_name((int)task->collective),
                att_bytes_text(task->bytes, bytes, sizeof bytes),
                att_setting_text(q->rows[i].setting, text, sizeof text));
        settings[found++] = q->rows[i].setting;
    }
    return found;
}
