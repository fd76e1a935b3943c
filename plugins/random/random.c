/*
 * random: tries settings drawn at random and keeps the fastest. A complete strategy, to start
 * your own from. Every draw takes a subspace (algorithm, protocol, transport), then each of its
 * free knobs; chunks in log scale (8K is as likely as 1M), one in eight keeps NCCL's.
 */
#include "attune/strategy.h"

#include <math.h>
#include <stdlib.h>

static const att_parameter_t parameters[] = {
    {"trials", ATT_PARAMETER_INT, 0, "60", NULL, "settings to try, at least 1"}};

struct state {
    const att_space_t *space;
    int64_t left;       /* settings still to be asked */
    uint64_t random;    /* state of the generator: the same seed asks the same questions */
    double best_score;  /* duration over NCCL's own at the same time; below 1 is faster */
    att_setting_t best; /* KEEP until something is faster than NCCL's choice */
};

/* Uniform in [0, 1): splitmix64. */
static double draw(struct state *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* A legal value of a knob near x: min, min + step, ... <= max; 0 where the knob is kept. */
static uint32_t legal(double x, uint32_t min, uint32_t max, uint32_t step)
{
    step = step > 0 ? step : 1;
    return max == 0 ? 0 : min + (uint32_t)fmin(x - min, max - min) / step * step;
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *trials = &options->options[0];
    return trials->integer < 1 ? att_option_refuse(trials, "at least 1", why, size)
                               : ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    struct state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    s->space = space;
    s->left = options->options[0].integer;
    s->random = options->seed;
    s->best_score = 1;
    s->best = ATT_SETTING_KEEP;
    *state = s;
    return ATT_STRATEGY_OK;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    for (*count = 0; *count < max && s->left > 0; s->left--) {
        const att_subspace_t *u =
            &s->space->subspaces[(uint32_t)(draw(s) * s->space->subspace_count)];
        att_setting_t x = {u->algorithm, u->protocol, u->transport, 0, 0, 0, 0, 0};
        double channels = u->channels_min + draw(s) * (u->channels_max - u->channels_min + 1.0);
        double threads = u->threads_min + draw(s) * (u->threads_max - u->threads_min + 1.0);
        x.channels = (uint16_t)legal(channels, u->channels_min, u->channels_max, u->channels_step);
        x.threads = (uint16_t)legal(threads, u->threads_min, u->threads_max, u->threads_step);
        if (u->chunk_max > 0 && draw(s) >= 0.125) {
            double chunk = u->chunk_min * pow((double)u->chunk_max / u->chunk_min, draw(s));
            x.chunk_bytes = legal(chunk, u->chunk_min, u->chunk_max, u->chunk_step);
        }
        settings[(*count)++] = x;
    }
    return ATT_STRATEGY_OK;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    if (result->outcome != ATT_OUTCOME_OK || !(result->baseline_median_us > 0))
        return ATT_STRATEGY_OK; /* no time, or far too slow: nothing to learn here */
    double score = result->median_us / result->baseline_median_us;
    if (score < s->best_score) {
        s->best_score = score;
        s->best = *setting;
    }
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    *setting = ((struct state *)state)->best;
    return ATT_STRATEGY_OK;
}

// clang-format off
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI, .size = sizeof attune_strategy, .name = "random", .version = "1",
    .description = "draws settings at random", .parameters = parameters, .parameter_count = 1,
    .flags = ATT_STRATEGY_BATCH, .create = create, .ask = ask, .tell = tell, .best = best,
    .destroy = free, .check = check};
