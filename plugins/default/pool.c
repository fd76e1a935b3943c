#include "pool.h"

#include "attune/knob.h"

#include <math.h>

#define LATTICE     (SURROGATE_ROOM * 2 / 3) /* the rest is for neighbours */
#define LEVELS      16                       /* of one knob */
#define FINEST      3                        /* neighbours 2^-3 octaves away, then one step */
#define PRIOR_SHARE 0.3                      /* of what NCCL's own estimates say that is believed */
#define PRIOR_MOST  0.5
/* Believed before any trial: fewer channels than NCCL takes are slower, small chunks a little. */
#define CHANNELS_SLOPE 0.25 /* an octave */
#define CHUNK_SLOPE    0.05
#define ROUND_SLOPE    0.1 /* an octave of what the channels take at once beyond the message */

static double octaves(uint32_t value)
{
    return value > 0 ? log2(value) : 0;
}

static place_t place_of(const att_subspace_t *u, int subspace, const att_setting_t *x)
{
    /* NCCL's own chunk is near the largest one for large messages. */
    uint32_t chunk = x->chunk_bytes > 0 ? x->chunk_bytes : u->chunk_max / 2;
    return (place_t){.channels = (float)octaves(x->channels),
                     .threads = (float)octaves(x->threads),
                     .chunk = (float)octaves(chunk),
                     .subspace = (int16_t)subspace,
                     .algorithm = x->algorithm,
                     .protocol = x->protocol,
                     .transport = u->transport,
                     .kept = u->chunk_max > 0 && x->chunk_bytes == 0,
                     .full = x->channels > 0 && x->channels == u->channels_max};
}

uint16_t pool_channels(const att_space_t *space, const att_subspace_t *u)
{
    uint16_t channels = space->incumbent.channels;
    return channels > 0 ? channels : (uint16_t)((u->channels_max + 1) / 2);
}

/* `belief` is for what makes the collective itself slower by some share; chunks that take far more
 * rounds show in a step as well. */
static double prior_of(const att_space_t *space, int subspace, const att_setting_t *x,
                       double belief)
{
    const att_subspace_t *u = &space->subspaces[subspace];
    double prior = 0, fastest = u->prior_us;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (space->subspaces[i].prior_us > 0)
            fastest = fmin(fastest, space->subspaces[i].prior_us);
    if (fastest > 0)
        prior += fmin(PRIOR_MOST, PRIOR_SHARE * log(u->prior_us / fastest));
    if (x->channels > 0 && x->channels < pool_channels(space, u))
        prior += CHANNELS_SLOPE * log2((double)pool_channels(space, u) / x->channels);
    prior *= belief;
    if (x->chunk_bytes > 0 && x->chunk_bytes < u->chunk_max / 8)
        prior += CHUNK_SLOPE * log2(u->chunk_max / 8.0 / x->chunk_bytes);
    /* A ring passes on a rank's share of the message. */
    double share = (double)space->bytes;
    if (x->algorithm == ATT_ALGORITHM_RING && space->ranks > 0)
        share /= space->ranks;
    double round = (double)x->channels * x->chunk_bytes;
    if (round > share && share > 0)
        prior += ROUND_SLOPE * log2(round / share);
    return prior;
}

int pool_find(pool_t *pool, int subspace, att_setting_t x)
{
    surrogate_t *s = pool->surrogate;
    for (int i = 0; i < s->count; i++)
        if (att_setting_equal(pool->settings[i], x))
            return i;
    int i = surrogate_add(s, place_of(&pool->space->subspaces[subspace], subspace, &x),
                          prior_of(pool->space, subspace, &x, pool->belief));
    if (i >= 0)
        pool->settings[i] = x;
    return i;
}

void pool_believe(pool_t *pool, double belief)
{
    surrogate_t *s = pool->surrogate;
    pool->belief = belief;
    for (int i = 0; i < s->count; i++)
        s->prior[i] = prior_of(pool->space, s->places[i].subspace, &pool->settings[i], belief);
}

/* Values of a knob from the largest down, `fine` a quarter octave apart in the first octave, half
 * of one in the second, then whole ones: many channels are close in number and differ in speed. */
static int levels(att_range_t r, int fine, uint32_t values[LEVELS])
{
    int n = 0;
    double down = 0;
    values[n++] = r.max;
    while (n < LEVELS && values[n - 1] > r.min) {
        down += !fine || down > 1.99 ? 1 : down > 0.99 ? 0.5 : 0.25;
        uint32_t value = att_range_near(r, r.max * exp2(-down));
        if (value < values[n - 1])
            values[n++] = value;
    }
    return n;
}

typedef struct lattice {
    uint32_t channels[LEVELS], threads[LEVELS], chunks[LEVELS + 1];
    int channel_count, thread_count, chunk_count;
} lattice_t;

static lattice_t lattice_of(const att_subspace_t *u)
{
    lattice_t l;
    l.channel_count = levels(att_knob_range(u, ATT_KNOB_CHANNELS), 1, l.channels);
    l.thread_count = levels(att_knob_range(u, ATT_KNOB_THREADS), 0, l.threads);
    l.chunks[0] = 0;
    l.chunk_count = 1;
    if (u->chunk_max > 0)
        l.chunk_count += levels(att_knob_range(u, ATT_KNOB_CHUNK), 0, l.chunks + 1);
    return l;
}

static int points(const lattice_t *l)
{
    return l->channel_count * l->thread_count * l->chunk_count;
}

void pool_fill(pool_t *pool, uint64_t *random)
{
    int all = 0;
    for (uint32_t i = 0; i < pool->space->subspace_count; i++) {
        lattice_t l = lattice_of(&pool->space->subspaces[i]);
        all += points(&l);
    }
    for (uint32_t i = 0; i < pool->space->subspace_count; i++) {
        const att_subspace_t *u = &pool->space->subspaces[i];
        lattice_t l = lattice_of(u);
        for (int n = points(&l); n-- > 0;) {
            if (all > LATTICE && att_draw(random) * all > LATTICE)
                continue;
            att_setting_t x = att_subspace_setting(u, ATT_SETTING_KEEP);
            x.channels = (uint16_t)l.channels[n % l.channel_count];
            x.threads = (uint16_t)l.threads[n / l.channel_count % l.thread_count];
            x.chunk_bytes = l.chunks[n / l.channel_count / l.thread_count];
            pool_find(pool, (int)i, x);
        }
    }
}

/* x with a knob moved by so many octaves, at least one step. False at the end of its range. */
static bool move(const att_subspace_t *u, att_setting_t *x, att_knob_t knob, double by)
{
    att_range_t r = att_knob_range(u, knob);
    uint32_t from = att_knob_get(x, knob);
    if (from == 0) /* chunk "keep" has no place on the axis */
        return false;
    uint32_t to = att_range_near(r, from * exp2(by));
    if (to == from && by > 0 && from < r.max)
        to = from + r.step;
    if (to == from && by < 0 && from > r.min)
        to = from - r.step;
    att_knob_set(x, knob, to);
    return to != from;
}

static void refine_by(pool_t *pool, int candidate, double by)
{
    att_setting_t x = pool->settings[candidate], y;
    int subspace = pool->surrogate->places[candidate].subspace;
    const att_subspace_t *u = &pool->space->subspaces[subspace];
    for (int k = 0; k < ATT_KNOB_COUNT; k++) {
        y = x;
        if (move(u, &y, (att_knob_t)k, by))
            pool_find(pool, subspace, y);
    }
    /* More channels with smaller chunks keep the bytes in flight: a valley off the axes. */
    for (int sign = -1; sign <= 1; sign += 2) {
        y = x;
        if (move(u, &y, ATT_KNOB_CHANNELS, by) && move(u, &y, ATT_KNOB_CHUNK, sign * by))
            pool_find(pool, subspace, y);
    }
}

/* The same setting with other threads, NCCL's own among them. */
static void refine_threads(pool_t *pool, int candidate)
{
    att_setting_t x = pool->settings[candidate];
    place_t place = pool->surrogate->places[candidate];
    for (uint32_t i = 0; i < pool->space->subspace_count; i++) {
        const att_subspace_t *u = &pool->space->subspaces[i];
        if (u->algorithm != place.algorithm || u->protocol != place.protocol ||
            u->transport != place.transport || x.channels > u->channels_max ||
            x.chunk_bytes > u->chunk_max)
            continue;
        lattice_t l = lattice_of(u);
        for (int n = 0; n < l.thread_count; n++) {
            x.threads = (uint16_t)l.threads[n];
            pool_find(pool, (int)i, x);
        }
    }
}

void pool_refine(pool_t *pool, int candidate)
{
    att_setting_t x = pool->settings[candidate];
    int subspace = pool->surrogate->places[candidate].subspace;
    const att_subspace_t *u = &pool->space->subspaces[subspace];
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int level = 0; level <= FINEST; level++)
            refine_by(pool, candidate, sign * exp2(-level));
        att_setting_t y = x;
        if (move(u, &y, ATT_KNOB_CHANNELS, sign * 1e-9))
            pool_find(pool, subspace, y);
    }
    refine_threads(pool, candidate);
    x.chunk_bytes = 0;
    pool_find(pool, subspace, x);
}
