/* space: what strategies may search on a surface, and its optimum. */
#include "surface/definition.h"

#include <math.h>
#include <stdlib.h>

#define THREADS_MIN 96 /* 3 warps, NCCL's least (graph/tuning.cc, 2.30) */
#define CHUNK_RATIO 1.03

/* Smallest chunk worth a trial, whole grains; the same as of a live search. */
static uint32_t least_chunk(int protocol)
{
    static const uint32_t least[ATT_PROTOCOL_COUNT] = {2048, 3840, 4096};
    return least[protocol];
}

static int by_prior(const void *a, const void *b)
{
    const att_subspace_t *x = a, *y = b;
    if (x->prior_us != y->prior_us)
        return x->prior_us < y->prior_us ? -1 : 1;
    int dx = (x->algorithm * ATT_PROTOCOL_COUNT + x->protocol) * 4 + x->transport;
    int dy = (y->algorithm * ATT_PROTOCOL_COUNT + y->protocol) * 4 + y->transport;
    return dx - dy;
}

/* Bytes that one channel would move alone: a larger chunk changes nothing (search/space.c). */
static uint64_t useful_bytes(const struct att_surface *surface, int collective, int algorithm,
                             uint64_t bytes)
{
    int blocks = algorithm != ATT_ALGORITHM_TREE && collective != ATT_COLLECTIVE_BROADCAST &&
                 collective != ATT_COLLECTIVE_REDUCE;
    return blocks ? bytes / (uint64_t)surface->info.ranks : bytes;
}

static att_subspace_t modelled_subspace(const struct att_surface *surface, int collective,
                                        uint64_t bytes, const att_surface_pair_t *pair,
                                        int transport)
{
    att_subspace_t s = {.algorithm = pair->native.algorithm,
                        .protocol = pair->native.protocol,
                        .transport = (int8_t)transport,
                        .channels_min = 1,
                        .channels_max = (uint16_t)surface->info.channels_ceiling,
                        .channels_step = 1,
                        .prior_us = (float)att_surface_cost_us(surface, collective, bytes,
                                                               pair->native.algorithm,
                                                               pair->native.protocol)};
    if (transport != ATT_TRANSPORT_KEEP) {
        s.threads_min = THREADS_MIN;
        s.threads_max = ATT_SURFACE_THREADS_MAX;
        s.threads_step = 32;
    }
    uint64_t most = useful_bytes(surface, collective, s.algorithm, bytes);
    if (most > pair->chunk_max)
        most = pair->chunk_max;
    most -= most % pair->chunk_grain;
    uint32_t least = least_chunk(s.protocol);
    least += (pair->chunk_grain - least % pair->chunk_grain) % pair->chunk_grain;
    if (most > least) {
        s.chunk_min = least;
        s.chunk_max = (uint32_t)most;
        s.chunk_step = pair->chunk_grain;
    }
    return s;
}

uint32_t att_surface_space(const struct att_surface *surface, int collective, uint64_t bytes,
                           int all_knobs, att_subspace_t *subspaces)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED) {
        const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
        return task != NULL ? att_table_space(task, subspaces) : 0;
    }
    uint32_t count = 0, offered = att_surface_pairs(surface, collective);
    for (int i = 0; i < ATT_PAIR_COUNT; i++) {
        if (!(offered & 1u << i))
            continue;
        const att_surface_pair_t *pair = &surface->collectives[collective].pairs[i];
        if (!all_knobs)
            subspaces[count++] =
                modelled_subspace(surface, collective, bytes, pair, ATT_TRANSPORT_KEEP);
        for (int t = 0; all_knobs && t < ATT_TRANSPORT_COUNT; t++)
            if (pair->transports & 1u << t)
                subspaces[count++] = modelled_subspace(surface, collective, bytes, pair, t);
    }
    qsort(subspaces, count, sizeof *subspaces, by_prior);
    return count;
}

typedef struct best {
    double us; /* 0: none yet */
    att_setting_t setting;
} best_t;

typedef struct question {
    const struct att_surface *surface;
    int collective, load;
    uint64_t bytes;
} question_t;

static void try_setting(const question_t *q, att_setting_t setting, best_t *best)
{
    double us = att_surface_duration_us(q->surface, q->collective, q->bytes, setting, q->load);
    if (us > 0 && (best->us <= 0 || us < best->us))
        *best = (best_t){us, setting};
}

/* Chunks of [from, to] in steps of one grain, or geometric ones. */
static void try_chunks(const question_t *q, const att_subspace_t *s, att_setting_t setting,
                       uint32_t from, uint32_t to, int geometric, best_t *best)
{
    uint32_t step = s->chunk_step > 0 ? s->chunk_step : 1;
    for (uint64_t chunk = from; chunk <= to;) {
        setting.chunk_bytes = (uint32_t)chunk;
        try_setting(q, setting, best);
        uint64_t next = geometric ? (uint64_t)((double)chunk * CHUNK_RATIO) : chunk + step;
        next -= (next - s->chunk_min) % step;
        chunk = next > chunk ? next : chunk + step;
    }
}

static void try_subspace(const question_t *q, const att_subspace_t *s, int all_knobs, best_t *best)
{
    best_t mine = {0};
    uint32_t threads_step = s->threads_step > 0 ? s->threads_step : 1;
    for (uint32_t nc = s->channels_min; nc <= s->channels_max; nc++)
        for (uint32_t nt = s->threads_min; nt <= s->threads_max; nt += threads_step) {
            att_setting_t x = {.algorithm = s->algorithm,
                               .protocol = s->protocol,
                               .transport = s->transport,
                               .channels = (uint16_t)nc,
                               .threads = (uint16_t)nt};
            try_setting(q, x, &mine);
            if (s->chunk_max != 0)
                try_chunks(q, s, x, s->chunk_min, s->chunk_max, all_knobs, &mine);
        }
    uint32_t at = mine.setting.chunk_bytes;
    if (all_knobs && at != 0) {
        uint32_t margin = at / 16;
        uint32_t from = at - margin > s->chunk_min ? at - margin : s->chunk_min;
        from -= (from - s->chunk_min) % (s->chunk_step > 0 ? s->chunk_step : 1);
        try_chunks(q, s, mine.setting, from,
                   at + margin < s->chunk_max ? at + margin : s->chunk_max, 0, &mine);
    }
    if (mine.us > 0 && (best->us <= 0 || mine.us < best->us))
        *best = mine;
}

static double recorded_optimum(const att_table_task_t *task, att_setting_t *setting)
{
    const att_surface_point_t *best = NULL;
    for (size_t i = 0; i < task->count; i++) {
        const att_surface_point_t *point = &task->points[i];
        if (!point->at_least && (best == NULL || point->time_us < best->time_us))
            best = point;
    }
    if (best == NULL)
        return -1.0;
    if (setting != NULL)
        *setting = best->setting;
    return best->time_us;
}

double att_surface_optimum(const struct att_surface *surface, int collective, uint64_t bytes,
                           int load, int all_knobs, att_setting_t *setting)
{
    att_subspace_t subspaces[ATT_SURFACE_SUBSPACES];
    question_t q = {surface, collective, load, bytes};
    best_t best = {0};
    if (load < 0 || load >= surface->info.load_count)
        return -1.0;
    if (surface->info.kind == ATT_SURFACE_RECORDED) {
        const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
        return task != NULL ? recorded_optimum(task, setting) : -1.0;
    }
    uint32_t count = att_surface_space(surface, collective, bytes, all_knobs, subspaces);
    for (uint32_t i = 0; i < count; i++)
        try_subspace(&q, &subspaces[i], all_knobs, &best);
    if (best.us <= 0)
        return -1.0;
    if (setting != NULL)
        *setting = best.setting;
    return best.us;
}
