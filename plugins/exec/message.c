#include "message.h"

#include "attune/words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to the program ---- */

static char *line_of(json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT), *line = NULL;
    json_decref(message);
    if (text != NULL && asprintf(&line, "%s\n", text) < 0)
        line = NULL;
    free(text);
    return line;
}

static json_t *setting_json(const att_setting_t *x)
{
    return json_pack("{s:s,s:s,s:s,s:i,s:i,s:I}", "algorithm",
                     att_word(ATT_WORDS_ALGORITHM, x->algorithm), "protocol",
                     att_word(ATT_WORDS_PROTOCOL, x->protocol), "transport",
                     att_word(ATT_WORDS_TRANSPORT, x->transport), "channels", (int)x->channels,
                     "threads", (int)x->threads, "chunk", (json_int_t)x->chunk_bytes);
}

static json_t *range_json(uint32_t min, uint32_t max, uint32_t step)
{
    return json_pack("{s:I,s:I,s:I}", "min", (json_int_t)min, "max", (json_int_t)max, "step",
                     (json_int_t)step);
}

static json_t *subspace_json(const att_subspace_t *u)
{
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o}", "algorithm",
                     att_word(ATT_WORDS_ALGORITHM, u->algorithm), "protocol",
                     att_word(ATT_WORDS_PROTOCOL, u->protocol), "transport",
                     att_word(ATT_WORDS_TRANSPORT, u->transport), "channels",
                     range_json(u->channels_min, u->channels_max, u->channels_step), "threads",
                     range_json(u->threads_min, u->threads_max, u->threads_step), "chunk",
                     range_json(u->chunk_min, u->chunk_max, u->chunk_step), "prior_us",
                     u->prior_us >= 0 ? json_real(u->prior_us) : json_null());
}

char *message_create(const att_space_t *space, uint64_t seed)
{
    json_t *subspaces = json_array();
    for (uint32_t i = 0; i < space->subspace_count; i++)
        json_array_append_new(subspaces, subspace_json(&space->subspaces[i]));
    /* 53 bits: what every JSON reader keeps. */
    return line_of(
        json_pack("{s:s,s:i,s:I,s:{s:s,s:I,s:i,s:i,s:o,s:o}}", "op", "create", "version",
                  MESSAGE_VERSION, "seed", (json_int_t)(seed & 0x1fffffffffffff), "space",
                  "collective", att_word(ATT_WORDS_COLLECTIVE, (int)space->collective), "bytes",
                  (json_int_t)space->bytes, "ranks", (int)space->ranks, "nodes", (int)space->nodes,
                  "incumbent", setting_json(&space->incumbent), "subspaces", subspaces));
}

char *message_ask(uint32_t max)
{
    return line_of(json_pack("{s:s,s:i}", "op", "ask", "max", (int)max));
}

char *message_tell(const att_setting_t *setting, const att_result_t *result)
{
    static const char *const outcomes[] = {"ok", "timeout", "illegal", "lossy", "slow"};
    json_t *samples = json_array();
    for (uint32_t i = 0; i < result->sample_count; i++)
        json_array_append_new(samples, json_real(result->samples_us[i]));
    return line_of(json_pack(
        "{s:s,s:o,s:s,s:o,s:o,s:o,s:i}", "op", "tell", "setting", setting_json(setting), "outcome",
        result->outcome < 5 ? outcomes[result->outcome] : "lossy", "samples_us", samples,
        "median_us", result->sample_count > 0 ? json_real(result->median_us) : json_null(),
        "baseline_us",
        result->baseline_median_us > 0 ? json_real(result->baseline_median_us) : json_null(),
        "calls", (int)result->calls));
}

/* ---- from the program ---- */

/* The program's own words, which end at a newline and on somebody's terminal. */
static void quote(char *why, size_t size, const char *what, const char *text)
{
    snprintf(why, size, "%s: %.*s", what, (int)strcspn(text, "\n"), text);
    for (char *c = why; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static json_t *object_of(const char *line, char *why, size_t size)
{
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    const char *text = json_string_value(json_object_get(object, "error"));
    if (json_is_object(object) && text == NULL)
        return object;
    if (text != NULL)
        quote(why, size, "the program says", text);
    else
        quote(why, size, "the program wrote no JSON object", line);
    json_decref(object);
    return NULL;
}

/* An algorithm, protocol or transport; missing, null and "keep" keep it. */
static int word_in(const json_t *object, const char *key, att_vocabulary_t words, int8_t *value,
                   char *why, size_t size)
{
    const json_t *member = json_object_get(object, key);
    int number = member == NULL || json_is_null(member) ? -1
                 : json_is_string(member) ? att_word_number(words, json_string_value(member))
                                          : -2;
    if (number == -2) {
        snprintf(why, size, "the program gave a setting whose %s is not known", key);
        return -1;
    }
    *value = (int8_t)number;
    return 0;
}

/* A whole number; missing, null and "keep" are 0. */
static int number_in(const json_t *object, const char *key, double most, uint32_t *value, char *why,
                     size_t size)
{
    const json_t *member = json_object_get(object, key);
    bool keep = member == NULL || json_is_null(member) ||
                (json_is_string(member) && strcasecmp(json_string_value(member), "keep") == 0);
    double number = keep ? 0 : json_is_number(member) ? json_number_value(member) : -1;
    if (!(number >= 0 && number <= most && number == floor(number))) {
        snprintf(why, size, "the program gave a setting whose %s is not a whole number up to %.0f",
                 key, most);
        return -1;
    }
    *value = (uint32_t)number;
    return 0;
}

static int setting_in(const json_t *object, att_setting_t *setting, uint32_t *samples, char *why,
                      size_t size)
{
    att_setting_t x = {0};
    uint32_t channels = 0, threads = 0;
    if (!json_is_object(object)) {
        snprintf(why, size, "the program gave a setting that is no JSON object");
        return -1;
    }
    int rc = word_in(object, "algorithm", ATT_WORDS_ALGORITHM, &x.algorithm, why, size) |
             word_in(object, "protocol", ATT_WORDS_PROTOCOL, &x.protocol, why, size) |
             word_in(object, "transport", ATT_WORDS_TRANSPORT, &x.transport, why, size) |
             number_in(object, "channels", UINT16_MAX, &channels, why, size) |
             number_in(object, "threads", UINT16_MAX, &threads, why, size) |
             number_in(object, "chunk", UINT32_MAX, &x.chunk_bytes, why, size) |
             number_in(object, "samples", ATT_STRATEGY_SAMPLES, samples, why, size);
    x.channels = (uint16_t)channels;
    x.threads = (uint16_t)threads;
    *setting = x;
    return rc;
}

int message_ready(const char *line, char *why, size_t size)
{
    json_t *object = object_of(line, why, size);
    json_decref(object);
    return object != NULL ? 0 : -1;
}

int message_settings(const char *line, att_setting_t *settings, uint32_t *samples, uint32_t max,
                     uint32_t *count, char *why, size_t size)
{
    json_t *object = object_of(line, why, size), *member;
    json_t *list = json_object_get(object, "settings");
    if (object == NULL)
        return -1;
    int rc = 0;
    if (!json_is_array(list) || json_array_size(list) > max) {
        snprintf(why, size, "the program's answer to ask has no \"settings\" of at most %u", max);
        rc = -1;
    }
    size_t i;
    *count = 0;
    json_array_foreach(list, i, member)
    {
        if (rc != 0)
            break;
        rc = setting_in(member, &settings[i], &samples[i], why, size);
        *count = (uint32_t)i + 1;
    }
    json_decref(object);
    return rc;
}

int message_best(const char *line, att_setting_t *setting, char *why, size_t size)
{
    uint32_t samples;
    json_t *object = object_of(line, why, size);
    const json_t *member = json_object_get(object, "setting");
    if (object == NULL)
        return -1;
    int rc = 0;
    if (member == NULL || json_is_null(member))
        *setting = ATT_SETTING_KEEP;
    else
        rc = setting_in(member, setting, &samples, why, size);
    json_decref(object);
    return rc;
}
