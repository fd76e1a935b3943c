/*
 * knob: the resource knobs of a setting as numbers that a search can move. Public header for
 * strategies; everything is inline, so that a plugin links nothing.
 */
#ifndef ATTUNE_KNOB_H
#define ATTUNE_KNOB_H

#include "attune/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_knob {
    ATT_KNOB_CHANNELS = 0,
    ATT_KNOB_THREADS = 1,
    ATT_KNOB_CHUNK = 2,
    ATT_KNOB_COUNT = 3
} att_knob_t;

/* Legal values: min, min + step, ..., max. max = 0: the knob can only be kept (0). */
typedef struct att_range {
    uint32_t min, max, step;
} att_range_t;

/* `max` of the result is a legal value itself. Chunk "keep" (0) is legal besides. */
static inline att_range_t att_knob_range(const att_subspace_t *s, att_knob_t knob)
{
    att_range_t r = {s->chunk_min, s->chunk_max, s->chunk_step};
    if (knob == ATT_KNOB_CHANNELS) {
        r.min = s->channels_min;
        r.max = s->channels_max;
        r.step = s->channels_step;
    } else if (knob == ATT_KNOB_THREADS) {
        r.min = s->threads_min;
        r.max = s->threads_max;
        r.step = s->threads_step;
    }
    r.step = r.step > 0 ? r.step : 1;
    if (r.max != 0)
        r.max = r.min + (r.max - r.min) / r.step * r.step;
    return r;
}

/* The legal value nearest to `value`; 0 where the knob is kept. */
static inline uint32_t att_range_near(att_range_t r, double value)
{
    if (r.max == 0 || value >= r.max)
        return r.max;
    return value <= r.min ? r.min : r.min + (uint32_t)((value - r.min) / r.step + 0.5) * r.step;
}

static inline uint32_t att_knob_get(const att_setting_t *setting, att_knob_t knob)
{
    return knob == ATT_KNOB_CHANNELS  ? setting->channels
           : knob == ATT_KNOB_THREADS ? setting->threads
                                      : setting->chunk_bytes;
}

static inline void att_knob_set(att_setting_t *setting, att_knob_t knob, uint32_t value)
{
    if (knob == ATT_KNOB_CHANNELS)
        setting->channels = (uint16_t)value;
    else if (knob == ATT_KNOB_THREADS)
        setting->threads = (uint16_t)value;
    else
        setting->chunk_bytes = value;
}

/* The setting of a subspace whose knobs are the nearest legal ones to those of `like`; where `like`
 * keeps a knob that cannot be kept, the largest. */
static inline att_setting_t att_subspace_setting(const att_subspace_t *s, att_setting_t like)
{
    att_setting_t x = ATT_SETTING_KEEP;
    x.algorithm = s->algorithm;
    x.protocol = s->protocol;
    x.transport = s->transport;
    for (int k = 0; k < ATT_KNOB_COUNT; k++) {
        uint32_t value = att_knob_get(&like, (att_knob_t)k);
        att_range_t r = att_knob_range(s, (att_knob_t)k);
        if (value != 0 || k != ATT_KNOB_CHUNK)
            att_knob_set(&x, (att_knob_t)k, att_range_near(r, value != 0 ? value : r.max));
    }
    return x;
}

/* Uniform in [0, 1), splitmix64: begin with the seed that the options give. */
static inline double att_draw(uint64_t *random)
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

#ifdef __cplusplus
}
#endif

#endif
