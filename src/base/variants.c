#include "base/variants.h"

#include "base/names.h"
#include "base/protocol.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define VALUES 8

#define LEAST_BUFFER 65536u
#define MOST_BUFFER  16777216u

typedef struct axis {
    uint32_t count;
    int values[VALUES];
} axis_t;

enum { THREADS, TRANSPORTS, BUFFERS, AXES };

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

/* NCCL takes any number, its kernels do not (data/knobs.json, buffer). */
static int add_buffer(axis_t *axis, const char *word, int span, att_error_t *error)
{
    char text[24];
    uint64_t bytes = 0;
    snprintf(text, sizeof text, "%.*s", span, word);
    if (span >= (int)sizeof text || att_bytes_parse(text, &bytes) != ATT_OK ||
        bytes < LEAST_BUFFER || bytes > MOST_BUFFER || (bytes & (bytes - 1)) != 0)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: buffer '%.*s' is not accepted; expected bytes, a power of two "
                        "from 64K to 16M",
                        span, word);
    return add(axis, (int)bytes, word, span, error);
}

static int read_axis(const char *item, int length, axis_t axes[AXES], att_error_t *error)
{
    static const struct {
        const char *name;
        int (*add)(axis_t *axis, const char *word, int span, att_error_t *error);
    } knobs[AXES] = {[THREADS] = {"nt=", add_threads},
                     [TRANSPORTS] = {"t=", add_transport},
                     [BUFFERS] = {"buffer=", add_buffer}};
    int k = 0;
    while (k < AXES && strncmp(item, knobs[k].name, strlen(knobs[k].name)) != 0)
        k++;
    if (k == AXES)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: '%.*s' is not accepted; expected nt=THREADS,..., "
                        "t=TRANSPORT,... or buffer=BYTES,...",
                        length, item);
    int rc = ATT_OK;
    for (int at = (int)strlen(knobs[k].name); rc == ATT_OK && at <= length;) {
        int span = (int)strcspn(item + at, ",;");
        rc = knobs[k].add(&axes[k], item + at, span, error);
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
    axis_t axes[AXES] = {[THREADS] = {.count = 1, .values = {0}},
                         [TRANSPORTS] = {.count = 1, .values = {ATT_TRANSPORT_KEEP}},
                         [BUFFERS] = {.count = 1, .values = {0}}};
    memset(variants, 0, sizeof *variants);
    while (*text != '\0') {
        int length = (int)strcspn(text, ";");
        int rc = length > 0 ? read_axis(text, length, axes, error) : ATT_OK;
        if (rc != ATT_OK)
            return rc;
        text += length + (text[length] == ';');
    }
    const axis_t *threads = &axes[THREADS], *transports = &axes[TRANSPORTS],
                 *buffers = &axes[BUFFERS];
    uint32_t count = threads->count * transports->count * buffers->count - 1;
    if (count > ATT_VARIANTS)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: %u combinations, but a communicator has at most %d variants",
                        count, ATT_VARIANTS);
    uint32_t digest = 0x811c9dc5u;
    for (uint32_t i = 1; i <= count; i++) { /* threads run fastest, buffers slowest */
        uint32_t n = i % threads->count, rest = i / threads->count;
        uint32_t t = rest % transports->count, b = rest / transports->count;
        att_variant_t *item = &variants->items[variants->count++];
        *item = (att_variant_t){(uint16_t)threads->values[n], (int8_t)transports->values[t],
                                (uint32_t)buffers->values[b]};
        digest = mix(mix(digest, item->threads), (uint32_t)(item->transport + 1));
        digest = item->buffer != 0 ? mix(digest, item->buffer) : digest;
    }
    variants->buffers = buffers->count > 1;
    variants->digest = count > 0 ? digest | 1 : 0;
    return ATT_OK;
}

uint32_t att_variant_chunk(const att_variant_t *variant, int collective, int algorithm,
                           int protocol)
{
    bool uses = protocol == ATT_PROTOCOL_SIMPLE &&
                (algorithm == ATT_ALGORITHM_RING || algorithm == ATT_ALGORITHM_TREE);
    return variant->buffer != 0 && uses
               ? att_protocol_chunk_most(collective, algorithm, protocol, variant->buffer)
               : 0;
}

int att_variants_find(const att_variants_t *variants, int collective, att_setting_t setting)
{
    uint32_t chunk = variants->buffers ? setting.chunk_bytes : 0;
    if (setting.threads == 0 && setting.transport == ATT_TRANSPORT_KEEP && chunk == 0)
        return -1;
    for (uint32_t i = 0; i < variants->count; i++) {
        const att_variant_t *item = &variants->items[i];
        if (item->threads == setting.threads && item->transport == setting.transport &&
            (item->buffer != 0) == (chunk != 0) &&
            att_variant_chunk(item, collective, setting.algorithm, setting.protocol) == chunk)
            return (int)i;
    }
    return -2;
}

uint64_t att_variants_bytes(const att_variants_t *variants, uint32_t channels)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < variants->count; i++) {
        uint32_t simple = variants->items[i].buffer;
        uint64_t connection =
            (uint64_t)ATT_BUFFER_LL + ATT_BUFFER_LL128 + (simple != 0 ? simple : ATT_BUFFER_SIMPLE);
        bytes += channels * 4 * connection + 1048576;
    }
    return bytes;
}
