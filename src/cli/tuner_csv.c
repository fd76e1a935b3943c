#include "cli/tuner_csv.h"

#include "base/names.h"
#include "base/one_line.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The plugin cuts lines at 255 bytes, and the rest of a comment would be read as a rule. */
#define COMMENT_MAX 200

/* Upper end of "every size": fits ssize_t, so that any reader takes it. */
#define ALL_BYTES ((uint64_t)INT64_MAX)

__attribute__((format(printf, 2, 3))) static void comment(FILE *out, const char *format, ...)
{
    char text[COMMENT_MAX], line[COMMENT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(out, "# %s\n", att_one_line(text, line, sizeof line));
}

static void rule(FILE *out, int collective, uint64_t low, uint64_t high, att_setting_t s, int nodes,
                 int ranks)
{
    fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%s,%s,%u,%d,%d\n", att_collective_name(collective),
            low, high, att_algorithm_name(s.algorithm), att_protocol_name(s.protocol), s.channels,
            nodes, ranks);
}

/* What the run would use, with the pair filled in: a kept pair is NCCL's. Algorithm KEEP when it
 * is not known. */
static att_setting_t final_setting(const att_task_row_t *row)
{
    att_setting_t s = row->kept_default ? row->native.setting : row->tuned.setting;
    const att_setting_t *native = &row->native.setting;
    if (s.algorithm == ATT_ALGORITHM_KEEP) {
        s.algorithm = native->algorithm;
        s.protocol = native->protocol;
    }
    if (s.channels == 0 && s.algorithm == native->algorithm && s.protocol == native->protocol)
        s.channels = native->channels;
    return s;
}

static int compare(long long a, long long b)
{
    return (a > b) - (a < b);
}

static int by_scope(const att_task_row_t *a, const att_task_row_t *b)
{
    int c = compare(a->collective, b->collective);
    if (c == 0)
        c = compare(a->nodes, b->nodes);
    return c != 0 ? c : compare(a->ranks, b->ranks);
}

/* Scope, then size, then the better measured first: the first line wins. */
static int by_scope_and_size(const void *left, const void *right)
{
    const att_task_row_t *a = *(const att_task_row_t *const *)left;
    const att_task_row_t *b = *(const att_task_row_t *const *)right;
    int c = by_scope(a, b);
    if (c == 0)
        c = (a->bytes > b->bytes) - (a->bytes < b->bytes);
    if (c == 0)
        c = (b->tuned.samples > a->tuned.samples) - (b->tuned.samples < a->tuned.samples);
    return c != 0 ? c : (a > b) - (a < b);
}

static void write_head(FILE *out, const att_tasks_t *tasks, const char *name, const char *when)
{
    comment(out, "version 1: rules for NCCL's example tuner, made by attune %s", ATTUNE_VERSION);
    comment(out, "from run %.60s of %.30s; NCCL version code %d; device %.60s", name, when,
            tasks->nccl_version, tasks->device[0] != '\0' ? tasks->device : "unknown");
    comment(out, "use: NCCL_TUNER_PLUGIN=<libnccl-tuner-example.so> NCCL_TUNER_CONFIG_FILE=<this>");
    comment(out, "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks");
    comment(out,
            "bytes: the message as NCCL's tuner counts it (allgather, reducescatter: all ranks)");
    comment(out, "the first line that matches is taken; -1 = any; channels 0 = NCCL's own count");
}

/* The line of one task; false when its pair is not known. */
static bool write_task(FILE *out, const att_task_row_t *row)
{
    char text[ATT_SETTING_TEXT], bytes[24];
    att_setting_t s = final_setting(row);
    const char *what = att_collective_name(row->collective);
    att_bytes_text(row->bytes, bytes, sizeof bytes);
    if (s.algorithm == ATT_ALGORITHM_KEEP) {
        comment(out, "%s %s: NCCL's choice was not seen, no rule", what, bytes);
        return false;
    }
    att_setting_text(row->native.setting, text, sizeof text);
    if (row->kept_default)
        comment(out, "%s %s: %s: %.120s", what, bytes,
                att_task_row_failed(row) ? "not tuned" : "NCCL's choice kept", row->reason);
    else if (row->native.median_us > 0 && row->tuned.median_us > 0)
        comment(out,
                "%s %s: %.3fx: %.2f us, NCCL's %s %.2f us; %" PRIu64 " and %" PRIu64 " samples; %s",
                what, bytes, row->native.median_us / row->tuned.median_us, row->tuned.median_us,
                text, row->native.median_us, row->tuned.samples, row->native.samples, row->phase);
    if (s.chunk_bytes != 0 || s.threads != 0 || s.transport != ATT_TRANSPORT_KEEP)
        comment(out, "the rule leaves out: chunk %u bytes, threads %u, transport %s (0 = kept)",
                s.chunk_bytes, s.threads, att_transport_name(s.transport));
    rule(out, row->collective, row->bytes, row->bytes, s, row->nodes, row->ranks);
    return true;
}

/* One line a task; a second task of the same scope and size could never be matched. */
static void write_tasks(FILE *out, const att_task_row_t **rows, size_t count)
{
    bool written = false;
    for (size_t i = 0; i < count; i++) {
        bool repeated =
            i > 0 && by_scope(rows[i - 1], rows[i]) == 0 && rows[i - 1]->bytes == rows[i]->bytes;
        if (!repeated) {
            written = write_task(out, rows[i]);
            continue;
        }
        char text[ATT_SETTING_TEXT], bytes[24];
        if (!written)
            written = write_task(out, rows[i]);
        else
            comment(out, "%s %s of group %s would use %s: same scope, no rule of its own",
                    att_collective_name(rows[i]->collective),
                    att_bytes_text(rows[i]->bytes, bytes, sizeof bytes), rows[i]->group,
                    att_setting_text(final_setting(rows[i]), text, sizeof text));
    }
}

/* Sizes between those measured, for one scope: the pair that NCCL chose at the nearest size on a
 * logarithmic scale, with NCCL's own channel count. */
static void write_ranges(FILE *out, const att_task_row_t **rows, size_t count)
{
    uint64_t low = 0;
    const att_task_row_t *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const att_task_row_t *row = rows[i];
        if (row->native.setting.algorithm == ATT_ALGORITHM_KEEP)
            continue;
        if (last != NULL && (last->native.setting.algorithm != row->native.setting.algorithm ||
                             last->native.setting.protocol != row->native.setting.protocol)) {
            uint64_t high = (uint64_t)sqrt((double)last->bytes * (double)row->bytes);
            if (high >= low) {
                att_setting_t s = last->native.setting;
                s.channels = 0;
                rule(out, last->collective, low, high, s, last->nodes, last->ranks);
                low = high + 1;
            }
        }
        last = row;
    }
    if (last != NULL) {
        att_setting_t s = last->native.setting;
        s.channels = 0;
        rule(out, last->collective, low, ALL_BYTES, s, last->nodes, last->ranks);
    }
}

static void write_rest(FILE *out)
{
    comment(out,
            "everything else: the plugin cannot keep NCCL's pair without falling to 1 channel");
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++) {
        att_setting_t small = {.algorithm = ATT_ALGORITHM_RING, .protocol = ATT_PROTOCOL_LL};
        att_setting_t any = {.algorithm = ATT_ALGORITHM_RING, .protocol = ATT_PROTOCOL_SIMPLE};
        rule(out, c, 0, 65536, small, -1, -1);
        rule(out, c, 0, ALL_BYTES, any, -1, -1);
    }
}

static void write_all(FILE *out, const att_tasks_t *tasks, const att_task_row_t **rows,
                      const char *name, const char *when)
{
    write_head(out, tasks, name, when);
    write_tasks(out, rows, tasks->count);
    if (tasks->count > 0)
        comment(out, "sizes between: what NCCL chose at the nearest measured size");
    for (size_t i = 0, end; i < tasks->count; i = end) {
        for (end = i + 1; end < tasks->count && by_scope(rows[i], rows[end]) == 0; end++)
            ;
        write_ranges(out, rows + i, end - i);
    }
    write_rest(out);
}

int att_tuner_csv_write(const att_tasks_t *tasks, const char *name, const char *when,
                        const char *path, att_error_t *error)
{
    char temporary[PATH_MAX];
    int rc = ATT_OK;
    const att_task_row_t **rows = calloc(tasks->count + 1, sizeof *rows);
    if (rows == NULL)
        return att_fail(error, ATT_ENOMEM, "%s: out of memory", path);
    for (size_t i = 0; i < tasks->count; i++)
        rows[i] = &tasks->rows[i];
    qsort(rows, tasks->count, sizeof *rows, by_scope_and_size);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *out = fopen(temporary, "we");
    if (out == NULL) {
        rc = att_fail_errno(error, "%s", temporary);
        goto free_rows;
    }
    write_all(out, tasks, rows, name, when);
    int bad = ferror(out);
    bad |= fclose(out);
    if (bad != 0 || rename(temporary, path) != 0) {
        rc = att_fail_errno(error, "%s", path);
        unlink(temporary);
    }
free_rows:
    free(rows);
    return rc;
}
