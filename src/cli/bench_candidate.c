#include "cli/bench_candidate.h"

#include "base/status.h"
#include "search/space.h"
#include "search/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_LATER 1.5

void att_candidates_init(att_candidates_t *list, uint32_t samples)
{
    memset(list, 0, sizeof *list);
    list->sample_capacity = samples;
}

void att_candidates_free(att_candidates_t *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i].samples);
    free(list->items);
    memset(list, 0, sizeof *list);
}

att_candidate_t *att_candidates_add(att_candidates_t *list, att_setting_t setting)
{
    for (int i = 0; i < list->count; i++)
        if (att_setting_equal(list->items[i].setting, setting))
            return &list->items[i];
    if (list->count == list->capacity) {
        int capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        att_candidate_t *items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    att_candidate_t *item = &list->items[list->count];
    memset(item, 0, sizeof *item);
    item->samples = malloc(list->sample_capacity * sizeof *item->samples);
    if (item->samples == NULL)
        return NULL;
    item->setting = setting;
    item->native = att_setting_is_keep(setting);
    list->count++;
    return item;
}

/* 1, 2, 4, then steps of 2 up to 8 and of 4 beyond, and the largest. */
static int channel_values(int most, int *values)
{
    int count = 0;
    for (int value = 1; value < most; value += value < 2 ? 1 : (value < 8 ? 2 : 4))
        values[count++] = value;
    values[count++] = most;
    return count;
}

/* NCCL's own, then powers of two of the grain up to the largest, and the largest. */
static int chunk_values(const att_shape_t *shape, int algorithm, int protocol, uint32_t *values)
{
    uint32_t most = att_chunk_max(shape->collective, algorithm, protocol);
    uint32_t from = protocol == ATT_PROTOCOL_SIMPLE ? 16384
                    : protocol == ATT_PROTOCOL_LL   ? 4096
                                                    : 4 * att_chunk_grain(protocol);
    int count = 0;
    values[count++] = 0;
    for (uint32_t value = from; value < most; value *= 2)
        values[count++] = value;
    if (most > 0)
        values[count++] = most;
    return count;
}

int att_candidates_grid(att_candidates_t *list, const att_shape_t *shape, uint32_t legal_pairs,
                        int max_channels)
{
    int channels[64];
    uint32_t chunks[32];
    int channel_count = channel_values(max_channels, channels);
    if (att_candidates_add(list, ATT_SETTING_KEEP) == NULL)
        return -ATT_ENOMEM;
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
            if (!(legal_pairs & ATT_PAIR_BIT(a, p)))
                continue;
            int chunk_count = chunk_values(shape, a, p, chunks);
            for (int i = 0; i < channel_count * chunk_count; i++) {
                att_setting_t setting = ATT_SETTING_KEEP;
                setting.algorithm = (int8_t)a;
                setting.protocol = (int8_t)p;
                setting.channels = (uint16_t)channels[i / chunk_count];
                setting.chunk_bytes = chunks[i % chunk_count];
                if (att_candidates_add(list, setting) == NULL)
                    return -ATT_ENOMEM;
            }
        }
    return ATT_OK;
}

void att_candidate_sample(att_candidate_t *candidate, uint32_t capacity, double us)
{
    if (candidate->sample_count < capacity)
        candidate->samples[candidate->sample_count++] = us;
    if (candidate->sample_count == 1 || us < candidate->least_us)
        candidate->least_us = us;
    if (us > candidate->most_us)
        candidate->most_us = us;
    candidate->median_us = att_median(candidate->samples, candidate->sample_count);
}

void att_candidates_drop_slow(att_candidates_t *list)
{
    double limit_us = HUGE_VAL;
    for (int i = 0; i < list->count; i++) {
        const att_candidate_t *c = &list->items[i];
        if (c->sample_count > 0)
            limit_us = fmin(limit_us, SLOW_LATER * fmax(c->first_us, c->most_us));
    }
    for (int i = 1; i < list->count; i++) {
        att_candidate_t *c = &list->items[i];
        c->slow |= c->sample_count > 0 && fmin(c->first_us, c->least_us) > limit_us;
    }
}

static int order_of(const att_candidate_t *c)
{
    return c->refused ? 2 : c->sample_count == 0;
}

static int compare(const void *a, const void *b)
{
    const att_candidate_t *x = a, *y = b;
    int first = order_of(x), second = order_of(y);
    if (first != second)
        return first - second;
    double left = first == 0 ? x->median_us : x->first_us;
    double right = first == 0 ? y->median_us : y->first_us;
    return (left > right) - (left < right);
}

void att_candidates_sort(att_candidates_t *list)
{
    qsort(list->items, (size_t)list->count, sizeof *list->items, compare);
}

void att_candidates_shuffle(int *order, int count, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        int j = (int)(state % (uint64_t)(i + 1));
        int swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}
