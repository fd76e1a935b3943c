#include "cli/result_rows.h"

#include "base/names.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 40
#define LINE    1024

/* Columns of a table, by its header line; -1: not there. */
typedef struct table {
    int size, type, redop;
    int time[2], busbw[2], cv[2];
    int count; /* columns in all */
} table_t;

static int split(char *line, char *words[COLUMNS])
{
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL && count < COLUMNS;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    return count;
}

static bool read_header(char *line, table_t *table)
{
    char *words[COLUMNS];
    int count = split(line + 1, words), side = -1;
    table_t t = {-1, -1, -1, {-1, -1}, {-1, -1}, {-1, -1}, count};
    if (count < 8 || strcmp(words[0], "size") != 0 || strcmp(words[1], "count") != 0)
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "size") == 0)
            t.size = i;
        else if (strcmp(words[i], "type") == 0)
            t.type = i;
        else if (strcmp(words[i], "redop") == 0)
            t.redop = i;
        else if ((strcmp(words[i], "time") == 0 || strcmp(words[i], "cputime") == 0) && side < 1)
            t.time[++side] = i;
        else if (strcmp(words[i], "busbw") == 0 && side >= 0)
            t.busbw[side] = i;
        else if (strcmp(words[i], "i_cv%") == 0 && side >= 0)
            t.cv[side] = i;
    }
    if (t.time[0] < 0 || t.busbw[0] < 0)
        return false;
    *table = t;
    return true;
}

static bool number(const char *word, double *value)
{
    char *end;
    *value = strtod(word, &end);
    return end != word && (*end == '\0' || strcmp(end, "%") == 0) && isfinite(*value);
}

void att_result_text_clean(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static int add_row(att_result_rows_t *rows, const att_result_row_t *row)
{
    if (rows->count == 0 || (rows->count & (rows->count - 1)) == 0) {
        size_t room = rows->count == 0 ? 1 : 2 * (size_t)rows->count;
        att_result_row_t *grown = realloc(rows->rows, room * sizeof *grown);
        if (grown == NULL)
            return -ATT_ENOMEM;
        rows->rows = grown;
    }
    att_result_row_t *added = &rows->rows[rows->count++];
    *added = *row;
    att_result_text_clean(added->collective);
    att_result_text_clean(added->type);
    att_result_text_clean(added->redop);
    return ATT_OK;
}

/* "all_reduce_perf_mpi" and "AllReduce" are both "allreduce". */
static void name_collective(const char *word, char name[24])
{
    char stem[24];
    snprintf(stem, sizeof stem, "%.23s", word);
    char *perf = strstr(stem, "_perf");
    if (perf != NULL)
        *perf = '\0';
    stem[strcspn(stem, " \t\r")] = '\0';
    int number = att_collective_parse(stem);
    snprintf(name, 24, "%s", number >= 0 ? att_collective_name(number) : stem);
}

const char *att_result_device(const char *device)
{
    const char *name = device[0] == '[' ? strchr(device, ' ') : NULL;
    return name != NULL ? name + 1 : device;
}

/* What the lines before a table tell of it. */
static void read_comment(const char *line, att_result_rows_t *rows, char collective[24])
{
    static const char starting[] = "Collective test starting: ", library[] = "nccl-library=";
    const char *at;
    int rank, code = 0;
    char device[96];
    if ((at = strstr(line, starting)) != NULL)
        name_collective(at + sizeof starting - 1, collective);
    if ((at = strstr(line, library)) != NULL && sscanf(at + sizeof library - 1, "%d", &code) == 1 &&
        code > 0)
        snprintf(rows->nccl, sizeof rows->nccl, "%d.%d.%d", code / 10000, code / 100 % 100,
                 code % 100);
    if ((at = strstr(line, " iters: ")) != NULL && strncmp(line, "# nThread", 9) == 0) {
        /* "warmup iters: 1 iters: 20" */
        const char *next = strstr(at + 1, " iters: ");
        unsigned iterations = 0;
        if (sscanf((next != NULL ? next : at) + 8, "%u", &iterations) == 1 && iterations < 1000000)
            rows->iterations = iterations;
    }
    if (sscanf(line, "# Rank %d", &rank) == 1 && rank >= 0 && rank < 1 << 24 &&
        strstr(line, " device ") != NULL) {
        if (rank + 1 > rows->ranks)
            rows->ranks = rank + 1;
        if (sscanf(strstr(line, " device "), " device %*d %95[^\r\n]", device) == 1)
            snprintf(rows->device, sizeof rows->device, "%s", att_result_device(device));
    }
}

static bool read_row(char *line, const table_t *table, att_result_row_t *row)
{
    char *words[COLUMNS];
    int count = split(line, words);
    double bytes, value;
    *row = (att_result_row_t){.side = {{.cv = -1, .error = -1}, {.cv = -1, .error = -1}}};
    if (count < table->count || !number(words[table->size], &bytes) || bytes < 0 || bytes > 9e18)
        return false;
    row->bytes = (uint64_t)bytes;
    if (table->type >= 0)
        snprintf(row->type, sizeof row->type, "%.15s", words[table->type]);
    if (table->redop >= 0)
        snprintf(row->redop, sizeof row->redop, "%.15s", words[table->redop]);
    for (int s = 0; s < 2 && table->time[s] >= 0 && table->busbw[s] >= 0; s++) {
        if (strcmp(words[table->time[s]], "N/A") == 0)
            continue;
        if (!number(words[table->time[s]], &row->side[s].time_us) ||
            !number(words[table->busbw[s]], &row->side[s].busbw_gbs))
            return false;
        if (table->cv[s] >= 0 && number(words[table->cv[s]], &value) && value >= 0)
            row->side[s].cv = value / 100;
    }
    return true;
}

static int parse_text(const char *text, size_t size, att_result_rows_t *rows)
{
    table_t table = {0};
    bool known = false;
    char collective[24] = "";
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : size - at;
        char line[LINE];
        if (length < LINE && memchr(text + at, '\0', length) == NULL) {
            att_result_row_t row;
            memcpy(line, text + at, length);
            line[length] = '\0';
            if (line[0] == '#') {
                read_comment(line, rows, collective);
                known |= read_header(line, &table);
            } else if (known && read_row(line, &table, &row)) {
                snprintf(row.collective, sizeof row.collective, "%s", collective);
                if (add_row(rows, &row) != ATT_OK)
                    return -ATT_ENOMEM;
            }
        }
        at += length + 1;
    }
    return ATT_OK;
}

static void read_side(json_t *object, json_t *iterations, att_result_side_t *side)
{
    json_t *cv = json_object_get(iterations, "cv_pct");
    side->time_us = json_number_value(json_object_get(object, "time"));
    side->busbw_gbs = json_number_value(json_object_get(object, "bus_bw"));
    side->cv = json_is_number(cv) ? json_number_value(cv) / 100 : -1;
    side->error = -1;
}

static void take_text(const json_t *value, char *text, size_t size)
{
    if (json_is_string(value))
        snprintf(text, size, "%s", json_string_value(value));
}

/* nccl-tests: args, nccl_version; attune bench: provenance. */
static void read_origin(const json_t *root, att_result_rows_t *rows)
{
    json_t *from = json_object_get(root, "provenance");
    json_int_t ranks = json_integer_value(json_object_get(from, "ranks"));
    json_int_t iterations = json_integer_value(json_object_get(from, "iterations"));
    rows->ranks = ranks > 0 && ranks < 1 << 24 ? (int)ranks : 0;
    rows->iterations = iterations > 0 && iterations < 1000000 ? (uint32_t)iterations : 0;
    take_text(json_object_get(from, "clock"), rows->clock, sizeof rows->clock);
    take_text(json_object_get(from, "nccl_version"), rows->nccl, sizeof rows->nccl);
    take_text(json_object_get(root, "nccl_version"), rows->nccl, sizeof rows->nccl);
    const char *device = json_string_value(json_object_get(from, "device"));
    if (device != NULL)
        snprintf(rows->device, sizeof rows->device, "%s", att_result_device(device));
}

static int parse_json(const json_t *root, att_result_rows_t *rows)
{
    json_t *results = json_object_get(root, "results"), *result;
    size_t i;
    read_origin(root, rows);
    json_array_foreach(results, i, result)
    {
        json_t *bytes = json_object_get(result, "size");
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
            continue;
        const char *type = json_string_value(json_object_get(result, "type"));
        const char *redop = json_string_value(json_object_get(result, "redop"));
        att_result_row_t row = {.bytes = (uint64_t)json_integer_value(bytes)};
        snprintf(row.type, sizeof row.type, "%.15s", type != NULL ? type : "");
        snprintf(row.redop, sizeof row.redop, "%.15s", redop != NULL ? redop : "");
        const char *collective = json_string_value(json_object_get(result, "collective"));
        if (collective != NULL)
            name_collective(collective, row.collective);
        read_side(json_object_get(result, "out_of_place"),
                  json_object_get(result, "out_of_place_per_iter"), &row.side[0]);
        read_side(json_object_get(result, "in_place"), json_object_get(result, "in_place_per_iter"),
                  &row.side[1]);
        if (add_row(rows, &row) != ATT_OK)
            return -ATT_ENOMEM;
    }
    return ATT_OK;
}

static int series_order(const att_result_row_t *x, const att_result_row_t *y)
{
    int order = strcmp(x->collective, y->collective);
    if (order == 0)
        order = strcmp(x->type, y->type);
    return order != 0 ? order : strcmp(x->redop, y->redop);
}

static int by_size(const void *a, const void *b)
{
    const att_result_row_t *x = a, *y = b;
    int order = series_order(x, y);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

uint32_t att_result_rows_series(const att_result_rows_t *rows, uint32_t i)
{
    uint32_t end = i;
    while (end < rows->count && series_order(&rows->rows[end], &rows->rows[i]) == 0)
        end++;
    return end;
}

/* Mean of the rounds of a size, and how well it is known. */
static att_result_side_t average_side(const att_result_rows_t *rows, uint32_t from, uint32_t to,
                                      int s)
{
    att_result_side_t mean = rows->rows[from].side[s];
    double time = 0, squares = 0, busbw = 0;
    uint32_t rounds = to - from;
    for (uint32_t k = from; k < to; k++) {
        time += rows->rows[k].side[s].time_us / rounds;
        busbw += rows->rows[k].side[s].busbw_gbs / rounds;
    }
    for (uint32_t k = from; k < to; k++)
        squares += pow(rows->rows[k].side[s].time_us - time, 2);
    mean.time_us = time;
    mean.busbw_gbs = busbw;
    if (rounds > 2 && time > 0)
        mean.error = sqrt(squares / (rounds - 1) / rounds) / time;
    else if (mean.cv >= 0 && rows->iterations > 1)
        mean.error = mean.cv / sqrt((double)rows->iterations * rounds);
    return mean;
}

/* Rounds of one size become their mean. */
static void average(att_result_rows_t *rows)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rows->count;) {
        uint32_t end = i + 1;
        while (end < rows->count && by_size(&rows->rows[end], &rows->rows[i]) == 0)
            end++;
        att_result_row_t mean = rows->rows[i];
        for (int s = 0; s < 2; s++)
            mean.side[s] = average_side(rows, i, end, s);
        rows->rows[kept++] = mean;
        i = end;
    }
    rows->count = kept;
}

int att_result_rows_parse(const char *text, size_t size, const char *name, att_result_rows_t *rows,
                          att_error_t *error)
{
    *rows = (att_result_rows_t){0};
    json_t *root = json_loadb(text, size, 0, NULL);
    int status = json_is_object(root) ? parse_json(root, rows) : parse_text(text, size, rows);
    json_decref(root);
    if (status != ATT_OK) {
        att_result_rows_free(rows);
        return att_fail(error, ATT_ENOMEM, "no memory for %s", name);
    }
    if (rows->count == 0) {
        att_result_rows_free(rows);
        return att_fail(
            error, ATT_EINPUT,
            "%s has no results: expected the output of nccl-tests or attune bench, or its JSON",
            name);
    }
    qsort(rows->rows, rows->count, sizeof *rows->rows, by_size);
    average(rows);
    return ATT_OK;
}

void att_result_rows_free(att_result_rows_t *rows)
{
    free(rows->rows);
    *rows = (att_result_rows_t){0};
}
