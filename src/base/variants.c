#include "base/variants.h"

#include "base/names.h"
#include "base/protocol.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define VALUES 8

typedef struct axis {
    uint32_t count;
    int values[VALUES];
} axis_t;

static int add(axis_t *axis, int value, const char *word, int span, att_error_t *error)
{
    for (uint32_t i = 0; i < axis->count; i++)
        if (axis->values[i] == value)
            return att_fail(error, ATT_EUSAGE, "--variants: '%.*s' stands there twice", span, word);
    if (axis->count == VALUES)
        return att_fail(error, ATT_EUSAGE, "--variants: more than %d values of one knob", VALUES);
    axis->values[axis->count++] = value;
    return ATT_OK;
}

static int add_threads(axis_t *axis, const char *word, int span, att_error_t *error)
{
    int threads = 0;
    for (int i = 0; i < span && threads < 10000; i++)
        threads = isdigit((unsigned char)word[i]) ? threads * 10 + word[i] - '0' : 10000;
    if (threads != 128 && threads != 256 && threads != 512)
        return att_fail(
            error, ATT_EUSAGE,
            "--variants: nt '%.*s' is not accepted; NCCL_NTHREADS takes 128, 256 or 512", span,
            word);
    return add(axis, threads, word, span, error);
}

static int add_transport(axis_t *axis, const char *word, int span, att_error_t *error)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s", span, word);
    int transport = att_transport_parse(name);
    if (transport < 0 || span >= (int)sizeof name)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: t '%.*s' is not accepted; expected p2p, shm or net", span,
                        word);
    return add(axis, transport, word, span, error);
}

static int read_axis(const char *item, int length, axis_t *threads, axis_t *transports,
                     att_error_t *error)
{
    bool nt = strncmp(item, "nt=", 3) == 0;
    if (!nt && strncmp(item, "t=", 2) != 0)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: '%.*s' is not accepted; expected nt=THREADS,... or "
                        "t=TRANSPORT,...",
                        length, item);
    int rc = ATT_OK;
    for (int at = nt ? 3 : 2; rc == ATT_OK && at <= length;) {
        int span = (int)strcspn(item + at, ",;");
        rc = nt ? add_threads(threads, item + at, span, error)
                : add_transport(transports, item + at, span, error);
        at += span + 1;
    }
    return rc;
}

/* FNV-1a */
static uint32_t mix(uint32_t digest, uint32_t value)
{
    return (digest ^ value) * 0x01000193u;
}

int att_variants_parse(const char *text, att_variants_t *variants, att_error_t *error)
{
    axis_t threads = {.count = 1, .values = {0}};
    axis_t transports = {.count = 1, .values = {ATT_TRANSPORT_KEEP}};
    memset(variants, 0, sizeof *variants);
    while (*text != '\0') {
        int length = (int)strcspn(text, ";");
        int rc = length > 0 ? read_axis(text, length, &threads, &transports, error) : ATT_OK;
        if (rc != ATT_OK)
            return rc;
        text += length + (text[length] == ';');
    }
    uint32_t count = threads.count * transports.count - 1;
    if (count > ATT_VARIANTS)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: %u combinations, but a communicator has at most %d variants",
                        count, ATT_VARIANTS);
    uint32_t digest = 0x811c9dc5u;
    for (uint32_t t = 0; t < transports.count; t++)
        for (uint32_t n = t == 0; n < threads.count; n++) {
            att_variant_t *item = &variants->items[variants->count++];
            *item = (att_variant_t){(uint16_t)threads.values[n], (int8_t)transports.values[t]};
            digest = mix(mix(digest, item->threads), (uint32_t)(item->transport + 1));
        }
    variants->digest = count > 0 ? digest | 1 : 0;
    return ATT_OK;
}

int att_variants_find(const att_variants_t *variants, att_setting_t setting)
{
    if (setting.threads == 0 && setting.transport == ATT_TRANSPORT_KEEP)
        return -1;
    for (uint32_t i = 0; i < variants->count; i++)
        if (variants->items[i].threads == setting.threads &&
            variants->items[i].transport == setting.transport)
            return (int)i;
    return -2;
}

uint64_t att_variants_bytes(uint32_t count, uint32_t channels)
{
    const uint64_t connection = ATT_BUFFER_LL + ATT_BUFFER_LL128 + ATT_BUFFER_SIMPLE;
    return count * (channels * 4 * connection + 1048576);
}
