#include "control/rows.h"

#include "control/message.h"
#include "profile/room.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_key {
    uint64_t hash, bytes;
    uint32_t from, collective, legal_pairs, ranks;
} row_key_t;
_Static_assert(sizeof(row_key_t) == 32, "keys are compared as bytes");

typedef struct row {
    row_key_t key; /* first: the tree compares keys */
    uint64_t put_ns;
    att_task_report_t report;
    char reason[ATT_REASON_BYTES];
} row_t;

struct att_rows {
    uint32_t agents;
    uint32_t *count_of; /* an agent */
    row_t **rows;
    uint32_t count;
    void *tree; /* of the same rows */
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(row_key_t));
}

static void keep(void *row)
{
    (void)row;
}

int att_rows_create(uint32_t agents, struct att_rows **out)
{
    struct att_rows *r = calloc(1, sizeof *r);
    if (r == NULL)
        return -ATT_ENOMEM;
    r->agents = agents;
    r->count_of = calloc(agents, sizeof *r->count_of);
    if (r->count_of == NULL) {
        free(r);
        return -ATT_ENOMEM;
    }
    *out = r;
    return ATT_OK;
}

void att_rows_destroy(struct att_rows *r)
{
    if (r == NULL)
        return;
    tdestroy(r->tree, keep);
    for (uint32_t i = 0; i < r->count; i++)
        free(r->rows[i]);
    free(r->rows);
    free(r->count_of);
    free(r);
}

static int add(struct att_rows *r, const row_key_t *key, row_t **out)
{
    if (r->count_of[key->from] == ATT_TASKS || r->count == ATT_ROWS_MOST)
        return -ATT_EFULL;
    row_t *row = calloc(1, sizeof *row);
    if (row == NULL || att_room_append(&r->rows, r->count, sizeof(row_t *)) != ATT_OK) {
        free(row);
        return -ATT_ENOMEM;
    }
    row->key = *key;
    if (tsearch(row, &r->tree, compare) == NULL) {
        free(row);
        return -ATT_ENOMEM;
    }
    r->rows[r->count++] = row;
    r->count_of[key->from]++;
    *out = row;
    return ATT_OK;
}

int att_rows_put(struct att_rows *r, uint32_t from, const att_task_report_t *report,
                 const char *reason, uint64_t now_ns)
{
    row_key_t key = {.hash = report->hash,
                     .bytes = report->bytes,
                     .from = from,
                     .collective = report->collective,
                     .legal_pairs = report->legal_pairs,
                     .ranks = report->ranks};
    if (from >= r->agents)
        return -ATT_EINPUT;
    row_t **found = tfind(&key, &r->tree, compare), *row = found != NULL ? *found : NULL;
    int status = row != NULL ? ATT_OK : add(r, &key, &row);
    if (status != ATT_OK)
        return status;
    row->put_ns = now_ns;
    row->report = *report;
    snprintf(row->reason, sizeof row->reason, "%.*s", ATT_REASON_BYTES - 1, reason);
    row->report.reason = row->reason;
    return ATT_OK;
}

uint32_t att_rows_count(const struct att_rows *r)
{
    return r->count;
}

const att_task_report_t *att_rows_get(const struct att_rows *r, uint32_t index)
{
    return &r->rows[index]->report;
}

double att_rows_age_s(const struct att_rows *r, uint32_t index, uint64_t now_ns)
{
    uint64_t put_ns = r->rows[index]->put_ns;
    return now_ns > put_ns ? (double)(now_ns - put_ns) * 1e-9 : 0;
}
