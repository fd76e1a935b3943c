#include "surface/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 200

void att_reader_fail(att_reader_t *reader, const char *key, const char *format, ...)
{
    if (reader->status != ATT_OK)
        return;
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    int at_top = reader->where[0] == '\0' && key == NULL;
    reader->status =
        att_fail(reader->error, ATT_EINPUT, "%s%s%s: %s", at_top ? "document" : reader->where,
                 key != NULL ? "/" : "", key != NULL ? key : "", what);
}

size_t att_reader_enter(att_reader_t *reader, const char *key)
{
    size_t mark = strlen(reader->where);
    snprintf(reader->where + mark, sizeof reader->where - mark, "/%s", key);
    return mark;
}

size_t att_reader_enter_index(att_reader_t *reader, size_t index)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", index);
    return att_reader_enter(reader, digits);
}

void att_reader_leave(att_reader_t *reader, size_t mark)
{
    reader->where[mark] = '\0';
}

/* A foreign key may hold anything: keep the line one line, and short. */
static void printable(const char *key, char *out, size_t size)
{
    size_t n = 0;
    for (; key[n] != '\0' && n + 1 < size; n++)
        out[n] = key[n] >= 0x20 && key[n] < 0x7f ? key[n] : '?';
    out[n] = '\0';
}

void att_reader_known(att_reader_t *reader, json_t *object, const char *const *known)
{
    if (reader->status != ATT_OK)
        return;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL) {
            char shown[48];
            printable(key, shown, sizeof shown);
            att_reader_fail(reader, shown, "unknown key");
            return;
        }
    }
}

static json_t *member(att_reader_t *reader, json_t *object, const char *key)
{
    if (reader->status != ATT_OK)
        return NULL;
    json_t *value = json_object_get(object, key);
    if (value == NULL)
        att_reader_fail(reader, key, "missing");
    return value;
}

json_t *att_reader_object(att_reader_t *reader, json_t *object, const char *key)
{
    json_t *value = member(reader, object, key);
    if (value != NULL && !json_is_object(value)) {
        att_reader_fail(reader, key, "expected an object");
        return NULL;
    }
    return value;
}

json_t *att_reader_array(att_reader_t *reader, json_t *object, const char *key, size_t minimum,
                         size_t maximum)
{
    json_t *value = member(reader, object, key);
    if (value == NULL)
        return NULL;
    if (!json_is_array(value) || json_array_size(value) < minimum ||
        json_array_size(value) > maximum) {
        att_reader_fail(reader, key, "expected an array of %zu to %zu elements", minimum, maximum);
        return NULL;
    }
    return value;
}

json_t *att_reader_element(att_reader_t *reader, json_t *array, size_t index)
{
    if (reader->status != ATT_OK)
        return NULL;
    json_t *value = json_array_get(array, index);
    if (!json_is_object(value)) {
        att_reader_fail(reader, NULL, "expected an object");
        return NULL;
    }
    return value;
}

const char *att_reader_text(att_reader_t *reader, json_t *object, const char *key)
{
    json_t *value = member(reader, object, key);
    if (value == NULL)
        return NULL;
    const char *text = json_string_value(value);
    size_t length = text != NULL ? json_string_length(value) : 0;
    int clean = length >= 1 && length <= TEXT_MAX;
    for (size_t i = 0; clean && i < length; i++)
        clean = (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    if (!clean) {
        att_reader_fail(reader, key, "expected a string of 1 to %d bytes, one line", TEXT_MAX);
        return NULL;
    }
    return text;
}

double att_reader_number(att_reader_t *reader, json_t *object, const char *key, double minimum,
                         double maximum)
{
    json_t *value = member(reader, object, key);
    if (value == NULL)
        return 0;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= minimum && number <= maximum)) {
        att_reader_fail(reader, key, "expected a number from %g to %g", minimum, maximum);
        return 0;
    }
    return number;
}

int64_t att_reader_integer(att_reader_t *reader, json_t *object, const char *key, int64_t minimum,
                           int64_t maximum)
{
    json_t *value = member(reader, object, key);
    if (value == NULL)
        return 0;
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < minimum || number > maximum) {
        att_reader_fail(reader, key, "expected an integer from %" PRId64 " to %" PRId64, minimum,
                        maximum);
        return 0;
    }
    return number;
}

int att_reader_word(att_reader_t *reader, json_t *object, const char *key,
                    int (*parse)(const char *word), const char *expected)
{
    const char *word = att_reader_text(reader, object, key);
    if (word == NULL)
        return 0;
    int number = parse(word);
    if (number < 0) {
        char shown[32];
        printable(word, shown, sizeof shown);
        att_reader_fail(reader, key, "'%s' is none of %s", shown, expected);
        return 0;
    }
    return number;
}
