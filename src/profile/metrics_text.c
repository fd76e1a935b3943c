#include "profile/metrics_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 40

static int is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':';
}

/* Behind the closing brace of labels that begin at `at`; NULL: there is none. */
static const char *skip_labels(const char *at, const char *end)
{
    int quoted = 0;
    for (; at < end; at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && *at == '}')
            return at + 1;
    }
    return NULL;
}

static int parse_line(const char *at, const char *end, att_metrics_sample_t *sample)
{
    *sample = (att_metrics_sample_t){.name = at};
    while (at < end && is_name(*at))
        at++;
    sample->name_length = (size_t)(at - sample->name);
    if (sample->name_length == 0 || isdigit((unsigned char)sample->name[0]))
        return 0;
    if (at < end && *at == '{') {
        sample->labels = at + 1;
        at = skip_labels(at + 1, end);
        if (at == NULL)
            return 0;
        sample->labels_length = (size_t)(at - 1 - sample->labels);
    }
    if (at == end || *at != ' ')
        return 0;
    at++;
    char number[NUMBER_BYTES], *rest;
    size_t length = (size_t)(end - at);
    if (length == 0 || length >= sizeof number)
        return 0;
    memcpy(number, at, length);
    number[length] = '\0';
    sample->value = strtod(number, &rest);
    return rest != number && *rest == '\0';
}

int att_metrics_text_next(const char **at, const char *end, att_metrics_sample_t *sample)
{
    while (*at < end) {
        const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            stop = end;
        *at = stop < end ? stop + 1 : end;
        if (parse_line(line, stop, sample))
            return 1;
    }
    return 0;
}

int att_metrics_label_next(const char **at, const char *end, char *value, size_t size)
{
    const char *c = *at;
    size_t length = 0;
    while (c < end && *c != '"')
        c++;
    if (c == end)
        return 0;
    for (c++; c < end && *c != '"'; c++) {
        if (*c == '\\' && c + 1 < end)
            c++;
        if (length + 1 < size)
            value[length++] = *c;
    }
    if (c == end)
        return 0;
    value[length] = '\0';
    *at = c + 1;
    return 1;
}
