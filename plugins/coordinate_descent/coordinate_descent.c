/*
 * coordinate_descent: changes one knob at a time, in three variants.
 *
 * variant=log (default), our own. Knobs are moved by factors, not by amounts: from 4K to 8K
 * is as far as from 1M to 2M.
 *   1. Screen: every subspace gets its counterpart of NCCL's choice and some spread points.
 *   2. Explore the best subspace from its best point: all octaves of the chunk, then of the
 *      channels, then both against each other (more channels with smaller chunks keep the
 *      bytes in flight, a valley that no single knob follows); again while it helps. The best
 *      point is tried once in every other subspace; those within 8 % are explored too.
 *   3. Polish the overall best with steps of 1/2, 1/4 and 1/8 octave, measuring the best one
 *      again each time, because the best of many looks better than it is.
 *   4. Restart, while the budget lasts, from the best of a few points that are far from all
 *      points known so far; a start that comes within 5 % is polished too.
 *
 * variant=paper: AutoCCL as published (NSDI'25, algorithms 1 and 2). Subspaces one after the
 * other; a random start; a knob is raised by lr of its range; lr starts at 0.01 and becomes
 * the relative bandwidth gained; a point that is not better is a failure and the next knob's
 * turn; M + 1 failures in a row end a subspace (M = free knobs; measuring the start is the
 * first failure, as printed). Deviations, with the reason:
 *   - steps are rounded to the knob's step and are at least one: it would stand still;
 *   - a knob at its upper end is a failure without a trial, as there is nothing to run;
 *   - a point is not measured twice (the paper's history table);
 *   - M counts the knobs that are free here (the paper's is 3); chunk "keep" is never used;
 *   - `budget` bounds the trials, evenly over the subspaces: the published search has no bound
 *     and creeps, because a small gain makes a small step.
 *
 * variant=code: AutoCCL as its code does it (mode 5). 2/7 of the budget goes to random
 * points, 5/7 to descent, evenly over the subspaces, which take turns. The descent starts at
 * the best sampled point. The points ahead on the signed axis are ordered by (distance along
 * the axis, angle to it in raw units); of the k nearest the 3 farthest are tried; k is 3 or,
 * after a success, 0.8 * relative time saved * number of points ahead. A better point is
 * moved to; else the sign is flipped, then the axis changed; two failures per axis lead to a
 * random restart; `restarts` starts end the subspace. A subspace is left when its best is
 * more than 1.5 times the overall best after 10 % of its budget, or 3 times after 5 trials. A
 * trial's score is the mean of its fastest 75 %. Deviations, with the reason:
 *   - points are addressed by arithmetic, not by sorted lists of all of them (232,527 in one
 *     task), so points already tried count among the k nearest and are then passed over;
 *   - off the axis only the next free knob varies: the same for up to two free knobs;
 *   - the budget counts trials, not calls: the host decides how many calls a trial needs.
 *
 * Scores are durations over those of NCCL's choice at the same time, so that a drift of the
 * job does not look like a gain.
 */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P_VARIANT, P_BUDGET, P_RESTARTS, P_SCREEN, P_TOP_K, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"variant", ATT_PARAMETER_CHOICE, 0, "log", "log|paper|code",
     "own search in log scale, AutoCCL as published, AutoCCL as its code does it"},
    {"budget", ATT_PARAMETER_INT, 0, "150", NULL, "trials, all subspaces together, at least 1"},
    {"restarts", ATT_PARAMETER_INT, 0, "5", NULL, "starts of each descent, at least 1 (log, code)"},
    {"screen", ATT_PARAMETER_INT, 0, "5", NULL, "spread points a subspace before descending (log)"},
    {"top_k", ATT_PARAMETER_INT, 0, "3", NULL, "points tried a round, at least 1 (code)"},
};

range_t range_of(const att_subspace_t *u, int knob)
{
    range_t r = knob == CHANNELS  ? (range_t){u->channels_min, u->channels_max, u->channels_step}
                : knob == THREADS ? (range_t){u->threads_min, u->threads_max, u->threads_step}
                                  : (range_t){u->chunk_min, u->chunk_max, u->chunk_step};
    if (r.step == 0)
        r.step = 1;
    if (r.max != 0)
        r.max = r.min + (r.max - r.min) / r.step * r.step;
    return r;
}

int is_free(const att_subspace_t *u, int knob)
{
    range_t r = range_of(u, knob);
    return r.max > r.min;
}

int free_knobs(const att_subspace_t *u, int knobs[KNOBS])
{
    int n = 0;
    for (int k = 0; k < KNOBS; k++)
        if (is_free(u, k))
            knobs[n++] = k;
    return n;
}

uint32_t get(const att_setting_t *x, int knob)
{
    return knob == CHANNELS ? x->channels : knob == THREADS ? x->threads : x->chunk_bytes;
}

void set(att_setting_t *x, int knob, uint32_t value)
{
    if (knob == CHANNELS)
        x->channels = (uint16_t)value;
    else if (knob == THREADS)
        x->threads = (uint16_t)value;
    else
        x->chunk_bytes = value;
}

uint32_t legal(range_t r, double value)
{
    if (r.max == 0)
        return 0;
    if (value <= r.min)
        return r.min;
    if (value >= r.max)
        return r.max;
    return r.min + (uint32_t)((value - r.min) / r.step + 0.5) * r.step;
}

double draw(search_t *s) /* uniform in [0, 1): splitmix64 */
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int find(const search_t *s, att_setting_t x)
{
    for (int i = 0; i < s->count; i++)
        if (att_setting_equal(s->points[i].setting, x))
            return i;
    return -1;
}

int propose(search_t *s, uint32_t subspace, att_setting_t x)
{
    int i = find(s, x);
    if (i >= 0)
        return i;
    if (s->count == s->room) {
        int room = s->room * 2;
        point_t *more = realloc(s->points, (size_t)room * sizeof *more);
        if (more == NULL)
            return -1;
        s->points = more;
        s->room = room;
    }
    s->points[s->count] = (point_t){.setting = x, .subspace = subspace, .score = NAN};
    return s->count++;
}

att_setting_t blank(const att_subspace_t *u)
{
    att_setting_t x = {0};
    x.algorithm = u->algorithm;
    x.protocol = u->protocol;
    x.transport = u->transport;
    for (int k = 0; k < KNOBS; k++)
        if (k != CHUNK)
            set(&x, k, range_of(u, k).min);
    return x;
}

att_setting_t random_point(search_t *s, const att_subspace_t *u, int in_log)
{
    att_setting_t x = blank(u);
    for (int k = 0; k < KNOBS; k++) {
        range_t r = range_of(u, k);
        if (r.max == 0)
            continue;
        double f = draw(s);
        set(&x, k,
            legal(r, in_log ? r.min * pow((double)r.max / r.min, f) : r.min + f * (r.max - r.min)));
    }
    return x;
}

double score_of(const search_t *s, int i)
{
    return i < 0 ? INFINITY : s->points[i].score;
}

int best_of(const search_t *s, uint32_t subspace, int first)
{
    int best = -1;
    for (int i = first; i < s->count; i++)
        if (s->points[i].subspace == subspace && s->points[i].score < score_of(s, best))
            best = i;
    return best;
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    static const int least[P_COUNT] = {0, 1, 1, 0, 1};
    for (int i = P_BUDGET; i < P_COUNT; i++)
        if (o[i].integer < least[i])
            return att_option_refuse(&o[i], least[i] > 0 ? "at least 1" : "at least 0", why, size);
    return ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    const att_option_t *o = options->options;
    if (space->subspace_count > SUBSPACES)
        return ATT_STRATEGY_EOPTION;
    search_t *s = calloc(1, sizeof *s);
    point_t *p = calloc(256, sizeof *p);
    if (s == NULL || p == NULL) {
        free(s);
        free(p);
        return ATT_STRATEGY_ENOMEM;
    }
    s->space = space;
    s->variant = (int)o[P_VARIANT].integer;
    s->budget = o[P_BUDGET].integer;
    s->restarts = o[P_RESTARTS].integer;
    s->screen = o[P_SCREEN].integer;
    s->top_k = o[P_TOP_K].integer;
    s->random = options->seed;
    s->points = p;
    s->room = 256;
    s->best = s->again = -1;
    *state = s;
    return ATT_STRATEGY_OK;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    search_t *s = state;
    *count = 0;
    if (s->asked == s->count && s->open == 0 && s->trials < s->budget) {
        int more = s->variant == VARIANT_LOG     ? next_log(s)
                   : s->variant == VARIANT_PAPER ? next_paper(s)
                                                 : next_code(s);
        if (!more)
            s->budget = s->trials;
    }
    while (*count < max && s->trials < s->budget && (s->again >= 0 || s->asked < s->count)) {
        int i = s->again >= 0 ? s->again : s->asked++;
        s->again = -1;
        settings[(*count)++] = s->points[i].setting;
        s->trials++;
        s->open++;
    }
    return ATT_STRATEGY_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* AutoCCL's score: the mean of the fastest 75 % of the samples. */
static double fastest_mean(const att_result_t *result)
{
    uint32_t n = result->sample_count, use = (n * 3 + 3) / 4;
    double *sorted = malloc(n * sizeof *sorted), sum = 0;
    if (sorted == NULL)
        return result->median_us;
    memcpy(sorted, result->samples_us, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    for (uint32_t i = 0; i < use; i++)
        sum += sorted[i];
    free(sorted);
    return sum / use;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    search_t *s = state;
    int i = find(s, *setting);
    if (i < 0 || s->open == 0)
        return ATT_STRATEGY_EINVALID;
    s->open--;
    /* TIMEOUT, ILLEGAL and LOSSY tell nothing about the speed: such a point is no way to go. */
    double us = result->sample_count == 0    ? INFINITY
                : s->variant == VARIANT_CODE ? fastest_mean(result)
                                             : result->median_us;
    double score = result->baseline_median_us > 0 ? us / result->baseline_median_us : us;
    point_t *p = &s->points[i];
    p->score = p->measured > 0 ? (p->score * p->measured + score) / (p->measured + 1) : score;
    p->measured++;
    /* A second look may show that the best one was only lucky. */
    s->best = -1;
    for (int k = 0; k < s->count; k++)
        if (s->points[k].score < score_of(s, s->best))
            s->best = k;
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    search_t *s = state;
    *setting = score_of(s, s->best) < 1 ? s->points[s->best].setting : ATT_SETTING_KEEP;
    return ATT_STRATEGY_OK;
}

static void destroy(void *state)
{
    search_t *s = state;
    if (s != NULL)
        free(s->points);
    free(s);
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "coordinate_descent",
    .version = "1",
    .description = "one knob at a time: own log-scale search, or AutoCCL's as published or coded",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = destroy,
    .check = check,
};
