#include "surface/csv.h"

#include "base/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define TIME_MAX_US    1e12
#define CHANNELS_MAX   1024
#define THREADS_MAX    1024

enum column {
    COLLECTIVE,
    RANKS,
    BYTES,
    ALGORITHM,
    PROTOCOL,
    TRANSPORT,
    CHANNELS,
    THREADS,
    CHUNK,
    TIME,
    COLUMNS
};

static const char *const names[COLUMNS] = {"collective", "ranks",     "bytes",    "algorithm",
                                           "protocol",   "transport", "channels", "threads",
                                           "chunk",      "time_us"};
#define EXPECTED                                                                                   \
    "collective,ranks,bytes,algorithm,protocol,transport,channels,threads,chunk,time_us"

typedef struct csv {
    int column_of[COLUMNS]; /* field number, -1 absent */
    int fields;
    unsigned line;
    struct att_surface *surface;
    att_error_t *error;
} csv_t;

/* Foreign text in a message: one line, short. */
static const char *shown(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; text[n] != '\0' && n + 1 < size; n++)
        out[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
    out[n] = '\0';
    return out;
}

/* Cut a line at its commas, without the blanks around; returns the number of fields. */
static int split(char *line, char **fields, int room)
{
    int count = 0;
    for (char *rest = line, *field; (field = strsep(&rest, ",")) != NULL && count < room;) {
        field += strspn(field, " \t\"");
        size_t n = strlen(field);
        while (n > 0 && strchr(" \t\r\"", field[n - 1]) != NULL)
            field[--n] = '\0';
        fields[count++] = field;
    }
    return count;
}

static int read_header(csv_t *csv, char *line)
{
    char *fields[COLUMNS + 1], word[32];
    csv->fields = split(line, fields, COLUMNS + 1);
    for (int c = 0; c < COLUMNS; c++)
        csv->column_of[c] = -1;
    for (int i = 0; i < csv->fields; i++) {
        int c = 0;
        while (c < COLUMNS && strcmp(fields[i], names[c]) != 0)
            c++;
        if (c == COLUMNS && strncmp(fields[i], "time", 4) == 0)
            return att_fail(csv->error, ATT_EINPUT,
                            "line %u: column '%s': times must be in microseconds, column time_us",
                            csv->line, shown(fields[i], word, sizeof word));
        if (c == COLUMNS)
            return att_fail(csv->error, ATT_EINPUT, "line %u: '%s' is no column; expected %s",
                            csv->line, shown(fields[i], word, sizeof word), EXPECTED);
        if (csv->column_of[c] >= 0)
            return att_fail(csv->error, ATT_EINPUT, "line %u: column '%s' appears twice", csv->line,
                            names[c]);
        csv->column_of[c] = i;
    }
    for (int c = 0; c < COLUMNS; c++)
        if (csv->column_of[c] < 0 && (c < TRANSPORT || c == TIME))
            return att_fail(csv->error, ATT_EINPUT, "line %u: column '%s' is missing; expected %s",
                            csv->line, names[c], EXPECTED);
    return ATT_OK;
}

static int refuse(const csv_t *csv, enum column column, const char *text, const char *expected)
{
    char word[48];
    return att_fail(csv->error, ATT_EINPUT, "line %u: %s: '%s' is not %s", csv->line, names[column],
                    shown(text, word, sizeof word), expected);
}

static int read_word(const csv_t *csv, char **fields, enum column column,
                     int (*parse)(const char *word), int8_t *value)
{
    const char *text = csv->column_of[column] < 0 ? "keep" : fields[csv->column_of[column]];
    int number = strcasecmp(text, "keep") == 0 ? -1 : parse(text);
    if (number < -1)
        return refuse(csv, column, text, "a known word");
    *value = (int8_t)number;
    return ATT_OK;
}

/* "keep" and 0 are kept. */
static int read_knob(const csv_t *csv, char **fields, enum column column, uint64_t most,
                     uint64_t *value)
{
    const char *text = csv->column_of[column] < 0 ? "keep" : fields[csv->column_of[column]];
    *value = 0;
    if (strcasecmp(text, "keep") == 0)
        return ATT_OK;
    if (att_bytes_parse(text, value) != ATT_OK || *value > most)
        return refuse(csv, column, text, "\"keep\" or a whole number in range");
    return ATT_OK;
}

static int read_setting(const csv_t *csv, char **fields, att_setting_t *setting)
{
    uint64_t channels = 0, threads = 0, chunk = 0;
    *setting = ATT_SETTING_KEEP;
    int rc = read_word(csv, fields, ALGORITHM, att_algorithm_parse, &setting->algorithm);
    if (rc == ATT_OK)
        rc = read_word(csv, fields, PROTOCOL, att_protocol_parse, &setting->protocol);
    if (rc == ATT_OK)
        rc = read_word(csv, fields, TRANSPORT, att_transport_parse, &setting->transport);
    if (rc == ATT_OK)
        rc = read_knob(csv, fields, CHANNELS, CHANNELS_MAX, &channels);
    if (rc == ATT_OK)
        rc = read_knob(csv, fields, THREADS, THREADS_MAX, &threads);
    if (rc == ATT_OK)
        rc = read_knob(csv, fields, CHUNK, 1u << 30, &chunk);
    setting->channels = (uint16_t)channels;
    setting->threads = (uint16_t)threads;
    setting->chunk_bytes = (uint32_t)chunk;
    if (rc == ATT_OK && (setting->algorithm < 0) != (setting->protocol < 0))
        return att_fail(csv->error, ATT_EINPUT,
                        "line %u: algorithm and protocol are kept both or not at all", csv->line);
    if (rc == ATT_OK && setting->algorithm < 0 && !att_setting_is_keep(*setting))
        return att_fail(csv->error, ATT_EINPUT, "line %u: NCCL's own choice has every knob kept",
                        csv->line);
    return rc;
}

static int read_row(csv_t *csv, char *line)
{
    char *fields[COLUMNS + 1];
    int count = split(line, fields, COLUMNS + 1);
    if (count != csv->fields)
        return att_fail(csv->error, ATT_EINPUT, "line %u: %s%d fields, the header has %d%s",
                        csv->line, count > COLUMNS ? "more than " : "",
                        count > COLUMNS ? COLUMNS : count, csv->fields,
                        count < csv->fields ? " (truncated?)" : "");
    att_table_record_t record = {.number = csv->line};
    const char *word = fields[csv->column_of[COLLECTIVE]];
    int collective = att_collective_parse(word);
    if (collective < 0)
        return refuse(csv, COLLECTIVE, word, "a known word");
    uint64_t ranks = 0, bytes = 0;
    word = fields[csv->column_of[RANKS]];
    if (att_bytes_parse(word, &ranks) != ATT_OK || ranks < 1 || ranks > 65536)
        return refuse(csv, RANKS, word, "a whole number from 1 to 65536");
    word = fields[csv->column_of[BYTES]];
    if (att_bytes_parse(word, &bytes) != ATT_OK || bytes < 1 || bytes > INT64_MAX)
        return refuse(csv, BYTES, word, "a whole number above 0");
    int rc = read_setting(csv, fields, &record.setting);
    if (rc != ATT_OK)
        return rc;
    word = fields[csv->column_of[TIME]];
    char *end = NULL;
    record.time_us = strtod(word, &end);
    if (end == word || *end != '\0' || !(record.time_us > 0 && record.time_us <= TIME_MAX_US))
        return refuse(csv, TIME, word, "a number of microseconds above 0");
    att_surface_info_t *info = &csv->surface->info;
    if (info->ranks != 0 && (uint64_t)info->ranks != ranks)
        return att_fail(csv->error, ATT_EINPUT,
                        "line %u: %llu ranks, %d before: a surface has one number of ranks",
                        csv->line, (unsigned long long)ranks, info->ranks);
    info->ranks = (int)ranks;
    att_table_task_t *task = att_table_task(&csv->surface->table, collective, bytes, csv->error);
    return task == NULL ? -ATT_EINPUT : att_table_add(task, &record, csv->error);
}

int att_csv_read(const char *bytes, size_t length, struct att_surface *surface, att_error_t *error)
{
    csv_t csv = {.surface = surface, .error = error};
    int header = 0;
    for (size_t from = 0; from < length;) {
        const char *newline = memchr(bytes + from, '\n', length - from);
        size_t n = newline != NULL ? (size_t)(newline - bytes) - from : length - from;
        char line[LINE_MAX_BYTES];
        csv.line++;
        if (n >= sizeof line)
            return att_fail(error, ATT_EINPUT, "line %u: longer than %d bytes", csv.line,
                            LINE_MAX_BYTES - 1);
        if (memchr(bytes + from, '\0', n) != NULL)
            return att_fail(error, ATT_EINPUT, "line %u: a zero byte: this is no text", csv.line);
        memcpy(line, bytes + from, n);
        line[n] = '\0';
        from += n + 1;
        if (line[0] == '#' || line[strspn(line, " \t\r")] == '\0')
            continue;
        int rc = header ? read_row(&csv, line) : read_header(&csv, line);
        if (rc != ATT_OK)
            return rc;
        header = 1;
    }
    if (!header)
        return att_fail(error, ATT_EINPUT, "empty; expected %s", EXPECTED);
    if (surface->table.task_count == 0)
        return att_fail(error, ATT_EINPUT, "there is a header row and nothing else");
    att_surface_info_t *info = &surface->info;
    info->name = "csv";
    info->description = "recorded durations from a CSV file";
    info->source = "CSV";
    info->nodes = 1;
    info->load_count = 1;
    info->loads[0] = "none";
    return att_table_finish(&surface->table, "line", error);
}
