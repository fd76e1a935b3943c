#include "base/names.h"

#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const collectives[] = {"broadcast", "reduce", "allgather", "reducescatter",
                                          "allreduce"};
static const char *const algorithms[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
static const char *const protocols[] = {"ll", "ll128", "simple"};
static const char *const transports[] = {"p2p", "shm", "net"};

static const char *name_of(const char *const *names, int count, int value)
{
    if (value == -1)
        return "keep";
    return value >= 0 && value < count ? names[value] : "unknown";
}

static bool same_word(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_')
            a++;
        while (*b == '_')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

static int parse(const char *const *names, int count, const char *word)
{
    if (word == NULL)
        return -2;
    for (int i = 0; i < count; i++)
        if (same_word(names[i], word))
            return i;
    return same_word("keep", word) ? -1 : -2;
}

const char *att_collective_name(int collective)
{
    return name_of(collectives, ATT_COLLECTIVE_COUNT, collective);
}

const char *att_algorithm_name(int algorithm)
{
    return name_of(algorithms, ATT_ALGORITHM_COUNT, algorithm);
}

const char *att_protocol_name(int protocol)
{
    return name_of(protocols, ATT_PROTOCOL_COUNT, protocol);
}

const char *att_transport_name(int transport)
{
    return name_of(transports, ATT_TRANSPORT_COUNT, transport);
}

int att_collective_parse(const char *word)
{
    return parse(collectives, ATT_COLLECTIVE_COUNT, word);
}

int att_algorithm_parse(const char *word)
{
    return parse(algorithms, ATT_ALGORITHM_COUNT, word);
}

int att_protocol_parse(const char *word)
{
    return parse(protocols, ATT_PROTOCOL_COUNT, word);
}

int att_transport_parse(const char *word)
{
    return parse(transports, ATT_TRANSPORT_COUNT, word);
}

static const char *nearest_of(const char *const *names, int count, att_nearest_t *nearest,
                              const char *word)
{
    att_nearest_init(nearest, word);
    for (int i = 0; i < count; i++)
        att_nearest_offer(nearest, names[i]);
    return att_nearest_hint(nearest);
}

const char *att_collective_nearest(att_nearest_t *nearest, const char *word)
{
    return nearest_of(collectives, ATT_COLLECTIVE_COUNT, nearest, word);
}

const char *att_algorithm_nearest(att_nearest_t *nearest, const char *word)
{
    return nearest_of(algorithms, ATT_ALGORITHM_COUNT, nearest, word);
}

const char *att_protocol_nearest(att_nearest_t *nearest, const char *word)
{
    return nearest_of(protocols, ATT_PROTOCOL_COUNT, nearest, word);
}

const char *att_transport_nearest(att_nearest_t *nearest, const char *word)
{
    return nearest_of(transports, ATT_TRANSPORT_COUNT, nearest, word);
}

const char *att_bytes_text(uint64_t bytes, char *text, size_t size)
{
    static const char suffixes[] = {'G', 'M', 'K'};
    for (int i = 0; i < 3; i++) {
        uint64_t unit = 1ull << (30 - 10 * i);
        if (bytes >= unit && bytes % unit == 0) {
            snprintf(text, size, "%" PRIu64 "%c", bytes / unit, suffixes[i]);
            return text;
        }
    }
    snprintf(text, size, "%" PRIu64, bytes);
    return text;
}

int att_bytes_parse(const char *text, uint64_t *bytes)
{
    if (text == NULL)
        return -ATT_EUSAGE;
    if (strcasecmp(text, "inf") == 0) {
        *bytes = UINT64_MAX;
        return ATT_OK;
    }
    if (!isdigit((unsigned char)text[0]))
        return -ATT_EUSAGE;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0)
        return -ATT_EUSAGE;
    int shift = 0;
    switch (toupper((unsigned char)*end)) {
    case 'T':
        shift += 10; /* fall through */
    case 'G':
        shift += 10; /* fall through */
    case 'M':
        shift += 10; /* fall through */
    case 'K':
        shift += 10;
        end++;
        break;
    default:
        break;
    }
    if (*end != '\0' || (shift > 0 && value > UINT64_MAX >> shift))
        return -ATT_EUSAGE;
    *bytes = (uint64_t)value << shift;
    return ATT_OK;
}

const char *att_setting_text(att_setting_t s, char *text, size_t size)
{
    if (att_setting_is_keep(s)) {
        snprintf(text, size, "keep");
        return text;
    }
    int n = snprintf(text, size, "%s/%s", att_algorithm_name(s.algorithm),
                     att_protocol_name(s.protocol));
    if (s.transport != ATT_TRANSPORT_KEEP)
        n += snprintf(text + n, size - (size_t)n, "/%s", att_transport_name(s.transport));
    if (s.channels != 0)
        n += snprintf(text + n, size - (size_t)n, " ch=%u", s.channels);
    if (s.threads != 0)
        n += snprintf(text + n, size - (size_t)n, " thr=%u", s.threads);
    char bytes[24];
    if (s.chunk_bytes != 0)
        snprintf(text + n, size - (size_t)n, " chunk=%s",
                 att_bytes_text(s.chunk_bytes, bytes, sizeof bytes));
    return text;
}
