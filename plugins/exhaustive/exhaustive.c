/*
 * exhaustive: tries every setting of a grid once: `grid` values of the chunk in log scale besides
 * "keep", all channels or `grid` of them in log scale, likewise for threads. With grid=0 every
 * legal value is taken.
 *
 * The order is a stride through the whole grid, so that a search that is cut short has seen all
 * parts of it evenly. The number of settings is printed at the start, because it is large.
 */
#include "attune/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { P_GRID, P_CHANNELS, P_ANNOUNCE, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"grid", ATT_PARAMETER_INT, 0, "12", NULL,
     "values per knob in log scale, at least 2; 0 takes all"},
    {"channels", ATT_PARAMETER_CHOICE, 0, "grid", "grid|all", "a grid of channels, or all"},
    {"announce", ATT_PARAMETER_BOOL, 0, "1", NULL, "print the number of settings"},
};

typedef struct search {
    att_setting_t *settings;
    uint64_t count, room;
    uint64_t asked, at, stride;
    double best_score;
    att_setting_t best;
} search_t;

typedef struct axis {
    uint32_t *values;
    uint32_t count;
} axis_t;

static int add(search_t *s, att_setting_t x)
{
    if (s->count == s->room) {
        uint64_t room = s->room > 0 ? 2 * s->room : 1024;
        att_setting_t *more = realloc(s->settings, room * sizeof *more);
        if (more == NULL)
            return -1;
        s->settings = more;
        s->room = room;
    }
    s->settings[s->count++] = x;
    return 0;
}

/* `points` distinct values from min to max in log scale, or all; 0 alone, or in front of the others
 * (`keep`), is the kept knob. */
static int make_axis(uint32_t min, uint32_t max, uint32_t step, int64_t points, int keep,
                     axis_t *axis)
{
    step = step > 0 ? step : 1;
    uint32_t all = max > 0 ? (max - min) / step + 1 : 0;
    uint32_t most = points > 0 && points < all ? (uint32_t)points : all;
    axis->values = malloc((most + 1) * sizeof *axis->values);
    axis->count = 0;
    if (axis->values == NULL)
        return -1;
    if (keep || all == 0)
        axis->values[axis->count++] = 0;
    for (uint32_t i = 0; i < most; i++) {
        double f = most > 1 ? (double)i / (most - 1) : 0;
        uint32_t at =
            most == all ? i : (uint32_t)((min * pow((double)max / min, f) - min) / step + 0.5);
        at = at < all ? at : all - 1;
        if (axis->count == 0 || axis->values[axis->count - 1] != min + at * step)
            axis->values[axis->count++] = min + at * step;
    }
    return 0;
}

static int add_subspace(search_t *s, const att_subspace_t *u, int64_t grid, int all_channels)
{
    axis_t c = {0}, t = {0}, k = {0};
    int rc = make_axis(u->channels_min, u->channels_max, u->channels_step, all_channels ? 0 : grid,
                       0, &c) |
             make_axis(u->threads_min, u->threads_max, u->threads_step, grid, 0, &t) |
             make_axis(u->chunk_min, u->chunk_max, u->chunk_step, grid, 1, &k);
    for (uint32_t i = 0; rc == 0 && i < c.count; i++)
        for (uint32_t j = 0; rc == 0 && j < t.count; j++)
            for (uint32_t l = 0; rc == 0 && l < k.count; l++)
                rc = add(s, (att_setting_t){.algorithm = u->algorithm,
                                            .protocol = u->protocol,
                                            .transport = u->transport,
                                            .channels = (uint16_t)c.values[i],
                                            .threads = (uint16_t)t.values[j],
                                            .chunk_bytes = k.values[l]});
    free(c.values);
    free(t.values);
    free(k.values);
    return rc;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void destroy(void *state)
{
    search_t *s = state;
    if (s != NULL)
        free(s->settings);
    free(s);
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *grid = &options->options[P_GRID];
    return grid->integer < 0 || grid->integer == 1
               ? att_option_refuse(grid, "0, or at least 2", why, size)
               : ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    int64_t grid = options->options[P_GRID].integer;
    search_t *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    s->best_score = 1;
    s->best = ATT_SETTING_KEEP;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (add_subspace(s, &space->subspaces[i], grid,
                         options->options[P_CHANNELS].integer == 1) != 0) {
            destroy(s);
            return ATT_STRATEGY_ENOMEM;
        }
    s->stride = (uint64_t)((double)s->count * 0.6180339887) | 1;
    while (common_divisor(s->stride, s->count) != 1)
        s->stride++;
    s->at = options->seed % s->count;
    if (options->options[P_ANNOUNCE].integer)
        fprintf(stderr, "exhaustive: %llu settings in %u subspaces\n", (unsigned long long)s->count,
                space->subspace_count);
    *state = s;
    return ATT_STRATEGY_OK;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    search_t *s = state;
    for (*count = 0; *count < max && s->asked < s->count; s->asked++) {
        settings[(*count)++] = s->settings[s->at];
        s->at = (s->at + s->stride) % s->count;
    }
    return ATT_STRATEGY_OK;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    search_t *s = state;
    if (result->outcome != ATT_OUTCOME_OK || !(result->baseline_median_us > 0))
        return ATT_STRATEGY_OK;
    double score = result->median_us / result->baseline_median_us;
    if (score < s->best_score) {
        s->best_score = score;
        s->best = *setting;
    }
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    *setting = ((search_t *)state)->best;
    return ATT_STRATEGY_OK;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "exhaustive",
    .version = "1",
    .description = "tries every setting of a grid",
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
