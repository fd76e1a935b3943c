#include "cli/bench_record_grid.h"

#include "search/space.h"

#include <stdlib.h>
#include <string.h>

/* 8 KiB to 512 KiB, two values an octave. */
static const uint32_t default_chunks[] = {8192,  12288,  16384,  24576,  32768,  49152, 65536,
                                          98304, 131072, 196608, 262144, 393216, 524288};
#define DEFAULT_CHUNKS (int)(sizeof default_chunks / sizeof *default_chunks)

typedef struct list {
    att_setting_t *items;
    int count, capacity;
} list_t;

static int add(list_t *list, att_setting_t setting, att_error_t *error)
{
    if (list->count == list->capacity) {
        int capacity = list->capacity > 0 ? 2 * list->capacity : 1024;
        att_setting_t *items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return att_fail(error, ATT_ENOMEM, "no memory for a grid");
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = setting;
    return ATT_OK;
}

/* "keep", then the values that this pair can take, in whole grains, each once. */
static int chunks_of(const att_record_options_t *o, const att_shape_t *shape, int algorithm,
                     int protocol, uint32_t *values)
{
    uint32_t most = att_chunk_max(shape->collective, algorithm, protocol);
    uint32_t grain = att_chunk_grain(protocol);
    const uint32_t *wanted = o->chunk_count > 0 ? o->chunks : default_chunks;
    int wanted_count = o->chunk_count > 0 ? o->chunk_count : DEFAULT_CHUNKS, count = 0;
    values[count++] = 0;
    for (int i = 0; i < wanted_count; i++) {
        uint32_t value = wanted[i] - wanted[i] % grain;
        bool there = value == 0 || value > most;
        for (int j = 0; j < count; j++)
            there |= values[j] == value;
        if (!there)
            values[count++] = value;
    }
    return count;
}

static int add_pair(const att_record_options_t *o, const att_bench_job_t *job,
                    const att_shape_t *shape, int algorithm, int protocol, list_t *list,
                    att_error_t *error)
{
    uint32_t chunks[ATT_RECORD_VALUES + 1];
    int chunk_count = chunks_of(o, shape, algorithm, protocol, chunks);
    int most = att_bench_most_channels(job), rc = ATT_OK;
    int channel_count = o->channel_count > 0 ? o->channel_count : most;
    for (int t = -1; t < o->thread_count; t++)
        for (int c = 0; c < channel_count; c++) {
            uint32_t channels = o->channel_count > 0 ? o->channels[c] : (uint32_t)c + 1;
            for (int k = 0; rc == 0 && (int)channels <= most && k < chunk_count; k++)
                rc = add(list,
                         (att_setting_t){.algorithm = (int8_t)algorithm,
                                         .protocol = (int8_t)protocol,
                                         .transport = ATT_TRANSPORT_KEEP,
                                         .channels = (uint16_t)channels,
                                         .threads = (uint16_t)(t < 0 ? 0 : o->threads[t]),
                                         .chunk_bytes = chunks[k]},
                         error);
        }
    return rc;
}

int att_record_grid(const att_record_options_t *options, const att_bench_job_t *job,
                    const att_shape_t *shape, uint32_t legal_pairs, att_setting_t **settings,
                    int *count, att_error_t *error)
{
    list_t list = {0};
    int rc = add(&list, ATT_SETTING_KEEP, error);
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; rc == 0 && p < ATT_PROTOCOL_COUNT; p++)
            if (legal_pairs & ATT_PAIR_BIT(a, p))
                rc = add_pair(options, job, shape, a, p, &list, error);
    if (rc == 0 && list.count < 2)
        rc = att_fail(error, ATT_EILLEGAL,
                      "the grid is empty: --channels has no value up to %d (--max-channels, "
                      "NCCL_MAX_CTAS)",
                      att_bench_most_channels(job));
    if (rc != 0) {
        free(list.items);
        return rc;
    }
    *settings = list.items;
    *count = list.count;
    return ATT_OK;
}
