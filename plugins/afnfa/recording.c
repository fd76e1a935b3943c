#include "recording.h"

#include "attune/words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Inflated if need be; NUL-terminated. NULL and why. */
static char *contents(const char *file, size_t *length, char *why, size_t size)
{
    gzFile in = gzopen(file, "rb");
    char *text = in != NULL ? malloc(RECORDING_MOST + 1u) : NULL;
    if (text == NULL) {
        snprintf(why, size, "%s: cannot be read", file);
        if (in != NULL)
            gzclose(in);
        return NULL;
    }
    int n = gzread(in, text, RECORDING_MOST);
    int whole = n >= 0 && gzeof(in);
    gzclose(in);
    if (n <= 0 || !whole) {
        snprintf(why, size, "%s: %s", file,
                 n == 0  ? "empty"
                 : n < 0 ? "damaged"
                         : "larger than 64 MiB");
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *length = (size_t)n;
    return text;
}

static void add(recording_t *r, const recorded_t *row)
{
    if (row->setting.algorithm < 0 || row->setting.protocol < 0 || !(row->us > 0) ||
        !isfinite(row->us) || r->count == RECORDING_ROWS)
        return;
    r->rows[r->count++] = *row;
}

/* ---- T4 ---- */

static uint32_t number_of(const json_t *configuration, const char *key, uint32_t most)
{
    const json_t *value = json_object_get(configuration, key);
    return json_is_integer(value) && json_integer_value(value) > 0 &&
                   json_integer_value(value) <= most
               ? (uint32_t)json_integer_value(value)
               : 0;
}

static att_setting_t setting_of(const json_t *c)
{
    return (att_setting_t){
        .algorithm = (int8_t)att_word_number(ATT_WORDS_ALGORITHM,
                                             json_string_value(json_object_get(c, "algorithm"))),
        .protocol = (int8_t)att_word_number(ATT_WORDS_PROTOCOL,
                                            json_string_value(json_object_get(c, "protocol"))),
        .transport = (int8_t)att_word_number(ATT_WORDS_TRANSPORT,
                                             json_string_value(json_object_get(c, "transport"))),
        .channels = (uint16_t)number_of(c, "channels", UINT16_MAX),
        .threads = (uint16_t)number_of(c, "threads", UINT16_MAX),
        .chunk_bytes = number_of(c, "chunk", UINT32_MAX)};
}

static int read_t4(const char *text, size_t length, recording_t *r, char *why, size_t size)
{
    json_error_t error;
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error), *result;
    json_t *results = json_object_get(document, "results");
    json_t *task = json_object_get(json_object_get(document, "metadata"), "task");
    if (document == NULL) { /* jansson's own text quotes the file, line ends and all */
        snprintf(why, size, "neither T4 nor CSV (no JSON: line %d, column %d)", error.line,
                 error.column);
        return -1;
    }
    if (!json_is_array(results)) {
        snprintf(why, size, "neither T4 nor CSV (it has no results)");
        json_decref(document);
        return -1;
    }
    recorded_t row = {.collective =
                          att_word_number(ATT_WORDS_COLLECTIVE,
                                          json_string_value(json_object_get(task, "collective"))),
                      .bytes = (uint64_t)json_integer_value(json_object_get(task, "bytes"))};
    size_t i, k;
    json_array_foreach(results, i, result)
    {
        const char *state = json_string_value(json_object_get(result, "invalidity"));
        json_t *measurement, *measurements = json_object_get(result, "measurements");
        if (state != NULL && strcmp(state, "correct") != 0)
            continue;
        row.setting = setting_of(json_object_get(result, "configuration"));
        row.us = 0;
        json_array_foreach(measurements, k, measurement)
        {
            const char *name = json_string_value(json_object_get(measurement, "name"));
            if (name != NULL && strcmp(name, "time") == 0)
                row.us = json_number_value(json_object_get(measurement, "value"));
        }
        add(r, &row);
    }
    json_decref(document);
    return 0;
}

/* ---- CSV ---- */

enum { COLLECTIVE, BYTES, ALGORITHM, PROTOCOL, TRANSPORT, CHANNELS, THREADS, CHUNK, TIME, COLUMNS };
#define FIELDS 64

/* Fields of a line, in place; quotes around one are dropped. */
static int split(char *line, char *fields[FIELDS])
{
    int n = 0;
    for (char *at = line; at != NULL && n < FIELDS;) {
        char *end;
        if (*at == '"' && (end = strchr(at + 1, '"')) != NULL) {
            fields[n++] = at + 1;
            *end = '\0';
            at = strchr(end + 1, ',');
        } else {
            fields[n++] = at;
            at = strchr(at, ',');
        }
        if (at != NULL)
            *at++ = '\0';
    }
    return n;
}

static void columns_of(char *header, int columns[COLUMNS])
{
    static const char *const names[COLUMNS] = {"collective", "bytes",     "algorithm",
                                               "protocol",   "transport", "channels",
                                               "threads",    "chunk",     "time_us"};
    char *fields[FIELDS];
    int n = split(header, fields);
    for (int c = 0; c < COLUMNS; c++)
        columns[c] = -1;
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < COLUMNS; c++)
            if (strcmp(fields[i], names[c]) == 0 && columns[c] < 0)
                columns[c] = i;
        if (strcmp(fields[i], "chunk_bytes") == 0)
            columns[CHUNK] = i;
        if (strcmp(fields[i], "measured_us") == 0) /* what was seen, not the truth behind it */
            columns[TIME] = i;
    }
}

static const char *field(char *fields[FIELDS], int count, int column)
{
    return column >= 0 && column < count ? fields[column] : "";
}

/* What is no such number is 0, "keep". */
static uint32_t number_in(const char *text, uint32_t most)
{
    unsigned long value = strtoul(text, NULL, 10);
    return value <= most ? (uint32_t)value : 0;
}

static int read_csv(char *text, recording_t *r, char *why, size_t size)
{
    int columns[COLUMNS];
    char *rest = text, *line = strsep(&rest, "\n");
    while (line != NULL && line[0] == '#')
        line = strsep(&rest, "\n");
    char nothing[] = "";
    line = line != NULL ? line : nothing; /* comments alone */
    line[strcspn(line, "\r")] = '\0';
    columns_of(line, columns);
    if (columns[ALGORITHM] < 0 || columns[PROTOCOL] < 0 || columns[CHANNELS] < 0 ||
        columns[TIME] < 0) {
        snprintf(why, size,
                 "neither T4 nor CSV with algorithm, protocol, channels and time_us in its header");
        return -1;
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *f[FIELDS];
        line[strcspn(line, "\r")] = '\0';
        int n = split(line, f);
        recorded_t row = {
            .collective = att_word_number(ATT_WORDS_COLLECTIVE, field(f, n, columns[COLLECTIVE])),
            .bytes = strtoull(field(f, n, columns[BYTES]), NULL, 10),
            .us = strtod(field(f, n, columns[TIME]), NULL),
            .setting = {.algorithm = (int8_t)att_word_number(ATT_WORDS_ALGORITHM,
                                                             field(f, n, columns[ALGORITHM])),
                        .protocol = (int8_t)att_word_number(ATT_WORDS_PROTOCOL,
                                                            field(f, n, columns[PROTOCOL])),
                        .transport = (int8_t)att_word_number(ATT_WORDS_TRANSPORT,
                                                             field(f, n, columns[TRANSPORT])),
                        .channels = (uint16_t)number_in(field(f, n, columns[CHANNELS]), UINT16_MAX),
                        .threads = (uint16_t)number_in(field(f, n, columns[THREADS]), UINT16_MAX),
                        .chunk_bytes = number_in(field(f, n, columns[CHUNK]), UINT32_MAX)}};
        add(r, &row);
    }
    return 0;
}

int recording_parse(char *text, size_t length, recording_t *r, char *why, size_t size)
{
    int before = r->count;
    const char *first = text + strspn(text, " \t\r\n");
    int rc = *first == '{' ? read_t4(text, length, r, why, size) : read_csv(text, r, why, size);
    if (rc == 0 && r->count == before) {
        snprintf(why, size, "no row with an algorithm, a protocol and a duration");
        rc = -1;
    }
    return rc;
}

static int read_file(const char *file, recording_t *r, char *why, size_t size)
{
    size_t length;
    char reason[200] = "", *text = contents(file, &length, why, size);
    if (text == NULL)
        return -1;
    int rc = recording_parse(text, length, r, reason, sizeof reason);
    free(text);
    if (rc != 0)
        snprintf(why, size, "%s: %s", file, reason);
    return rc;
}

int recording_read_all(const char *files, recording_t *recording, char *why, size_t size)
{
    recording_t r = {.rows = malloc(RECORDING_ROWS * sizeof *r.rows)};
    char *copy = strdup(files), *rest = copy, *file;
    int rc = r.rows == NULL || copy == NULL ? -1 : 0;
    if (rc != 0)
        snprintf(why, size, "no memory");
    while (rc == 0 && (file = strsep(&rest, ":")) != NULL)
        rc = file[0] == '\0' ? 0 : read_file(file, &r, why, size);
    free(copy);
    if (rc != 0)
        free(r.rows);
    else
        *recording = r;
    return rc;
}

void recording_free(recording_t *recording)
{
    free(recording->rows);
    *recording = (recording_t){0};
}
