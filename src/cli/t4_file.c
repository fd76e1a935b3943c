#include "cli/t4_file.h"

#include "base/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef ATTUNE_HAVE_ZLIB
#include <zlib.h>
#endif

#define DIGITS 6 /* of a duration: below what any clock resolves here */

static json_t *word_or_number(uint32_t value)
{
    return value == 0 ? json_string("keep") : json_integer(value);
}

static json_t *configuration(att_setting_t s)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "algorithm", att_algorithm_name(s.algorithm),
                     "protocol", att_protocol_name(s.protocol), "transport",
                     att_transport_name(s.transport), "channels", word_or_number(s.channels),
                     "threads", word_or_number(s.threads), "chunk", word_or_number(s.chunk_bytes));
}

static json_t *durations(const double *us, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(us[i]));
    return list;
}

static void add_measurement(json_t *list, const char *name, json_t *value, const char *unit)
{
    json_array_append_new(list,
                          json_pack("{s:s, s:o, s:s}", "name", name, "value", value, "unit", unit));
}

json_t *att_t4_result(const att_t4_sampled_t *s)
{
    int timeout = s->at_least_us > 0;
    json_t *measurements = json_array();
    if (timeout)
        add_measurement(measurements, "time_at_least", json_real(s->at_least_us), "us");
    else if (s->time_us > 0)
        add_measurement(measurements, "time", json_real(s->time_us), "us");
    if (s->time_count > 0)
        add_measurement(measurements, "time_samples", json_integer(s->time_count), "");
    if (s->again_count > 0)
        add_measurement(measurements, "again", durations(s->again_us, s->again_count), "us");
    return json_pack("{s:s, s:o, s:[s], s:{s:i, s:o, s:i, s:i, s:i}, s:s, s:i, s:o}", "timestamp",
                     s->timestamp, "configuration", configuration(s->setting), "objectives", "time",
                     "times", "compilation_time", 0, "runtimes",
                     durations(s->samples_us, s->sample_count), "framework", 0, "search_algorithm",
                     0, "validation", 0, "invalidity", timeout ? "timeout" : "correct",
                     "correctness", timeout ? 0 : 1, "measurements", measurements);
}

static json_t *costs_of(const float *cost_us)
{
    json_t *list = json_array();
    for (int pair = 0; cost_us != NULL && pair < ATT_PAIR_COUNT; pair++)
        if (cost_us[pair] >= 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:f}", "algorithm",
                                                  att_algorithm_name(pair / ATT_PROTOCOL_COUNT),
                                                  "protocol",
                                                  att_protocol_name(pair % ATT_PROTOCOL_COUNT),
                                                  "cost_us", (double)cost_us[pair]));
    return list;
}

static json_t *metadata_of(const att_t4_header_t *h)
{
    json_t *metadata = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:{s:s, s:I, s:s, s:s}, "
        "s:{s:s, s:i, s:i, s:i}, s:o}",
        "version", 1, "name", h->name, "description", h->description, "source", h->source, "state",
        h->state, "units", "time", "us", "runtimes", "us", "size", "bytes", "task", "collective",
        att_collective_name(h->collective), "bytes", (json_int_t)h->bytes, "load", h->load, "type",
        h->type, "machine", "device", h->device, "device_units", h->device_units, "ranks", h->ranks,
        "nodes", h->nodes, "default", configuration(h->native));
    if (metadata == NULL)
        return NULL;
    if (h->note != NULL)
        json_object_set_new(metadata, "note", json_string(h->note));
    if (h->cost_us != NULL)
        json_object_set_new(metadata, "costs", costs_of(h->cost_us));
    if (h->provenance != NULL)
        json_object_set_new(metadata, "provenance", json_deep_copy(h->provenance));
    return metadata;
}

static int write_plain(const char *path, const char *text, size_t length, att_error_t *error)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return att_fail_errno(error, "%s: cannot create", path);
    int bad = fwrite(text, 1, length, file) != length;
    bad |= fflush(file) != 0 || fsync(fileno(file)) != 0;
    bad |= fclose(file) != 0;
    return bad ? att_fail_errno(error, "%s: cannot write", path) : ATT_OK;
}

/* No time and no name in the header: equal recordings give equal files. */
static int write_gzip(const char *path, const char *text, size_t length, att_error_t *error)
{
#ifdef ATTUNE_HAVE_ZLIB
    gzFile file = gzopen(path, "wbe9");
    if (file == NULL)
        return att_fail_errno(error, "%s: cannot create", path);
    int bad = gzwrite(file, text, (unsigned)length) != (int)length;
    bad |= gzclose(file) != Z_OK;
    return bad ? att_fail_errno(error, "%s: cannot write", path) : ATT_OK;
#else
    return att_fail(error, ATT_EUNSUPPORTED,
                    "%s: this attune was built without zlib; choose a name without .gz", path);
#endif
}

int att_t4_write(const char *path, const att_t4_header_t *header, json_t *results,
                 att_error_t *error)
{
    char temporary[4096];
    json_t *root = json_pack("{s:s, s:o, s:o}", "schema_version", "1.0.0", "metadata",
                             metadata_of(header), "results", results);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(root);
    if (text == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %s", path);
    size_t n = strlen(path);
    int rc;
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        rc = att_fail(error, ATT_EUSAGE, "the path '%.64s...' is too long", path);
    else if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        rc = write_gzip(temporary, text, strlen(text), error);
    else
        rc = write_plain(temporary, text, strlen(text), error);
    free(text);
    if (rc == ATT_OK && rename(temporary, path) != 0)
        rc = att_fail_errno(error, "%s: cannot rename to %s", temporary, path);
    if (rc != ATT_OK)
        unlink(temporary);
    return rc;
}
