/*
 * annealing: simulated annealing over the whole space, a baseline for comparison.
 *
 * It starts at the counterpart of NCCL's choice. A step draws a neighbour: in one of five another
 * algorithm, protocol or transport with the same knobs, else one free knob moved by up to two
 * octaves (chunk "keep" and back in one of eight). A faster neighbour is moved to, a slower one
 * with probability exp(-(excess / temperature)); the excess is relative. The temperature falls from
 * `hot` to `cold` by a constant factor a trial (S. Kirkpatrick et al., Optimization by simulated
 * annealing, Science 220, 1983).
 */
#include "attune/knob.h"
#include "attune/strategy.h"

#include <math.h>
#include <stdlib.h>

enum { P_TRIALS, P_HOT, P_COLD, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"trials", ATT_PARAMETER_INT, 0, "100", NULL, "settings to try, at least 1"},
    {"hot", ATT_PARAMETER_REAL, 0, "0.2", NULL,
     "temperature at the start, relative duration above 0"},
    {"cold", ATT_PARAMETER_REAL, 0, "0.005", NULL, "temperature at the end, likewise, at most hot"},
};

#define JUMP    0.2   /* of the steps go to another subspace */
#define KEEP    0.125 /* of the steps of the chunk go to NCCL's own */
#define OCTAVES 2.0

struct state {
    const att_space_t *space;
    int64_t trials, asked;
    double temperature, cooling;
    uint64_t random;
    int open;
    uint32_t subspace, next_subspace;
    att_setting_t at, next, best;
    double at_score, best_score; /* duration over NCCL's own at the same time */
};

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (o[P_TRIALS].integer < 1)
        return att_option_refuse(&o[P_TRIALS], "at least 1", why, size);
    if (!(o[P_HOT].real > 0))
        return att_option_refuse(&o[P_HOT], "above 0", why, size);
    if (!(o[P_COLD].real > 0) || o[P_COLD].real > o[P_HOT].real)
        return att_option_refuse(&o[P_COLD], "above 0, at most hot", why, size);
    return ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    const att_option_t *o = options->options;
    struct state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    s->space = space;
    s->trials = o[P_TRIALS].integer;
    s->temperature = o[P_HOT].real;
    s->cooling = pow(o[P_COLD].real / o[P_HOT].real, 1.0 / (double)s->trials);
    s->random = options->seed;
    s->at_score = INFINITY;
    s->best_score = 1;
    s->best = ATT_SETTING_KEEP;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (space->subspaces[i].algorithm == space->incumbent.algorithm &&
            space->subspaces[i].protocol == space->incumbent.protocol)
            s->next_subspace = i;
    s->next = att_subspace_setting(&space->subspaces[s->next_subspace], space->incumbent);
    *state = s;
    return ATT_STRATEGY_OK;
}

static uint32_t below(struct state *s, uint32_t n)
{
    return (uint32_t)(att_draw(&s->random) * n);
}

static void move(struct state *s, const att_subspace_t *u)
{
    att_knob_t knobs[ATT_KNOB_COUNT];
    uint32_t n = 0;
    for (int k = 0; k < ATT_KNOB_COUNT; k++) {
        att_range_t r = att_knob_range(u, (att_knob_t)k);
        if (r.max > r.min)
            knobs[n++] = (att_knob_t)k;
    }
    if (n == 0)
        return;
    att_knob_t knob = knobs[below(s, n)];
    att_range_t r = att_knob_range(u, knob);
    uint32_t from = att_knob_get(&s->at, knob);
    if (from == 0)
        from = att_range_near(r, sqrt((double)r.min * r.max));
    double octaves = OCTAVES * (2 * att_draw(&s->random) - 1);
    uint32_t to = att_range_near(r, from * exp2(octaves));
    if (to == from)
        to = octaves > 0 && from < r.max ? from + r.step : from > r.min ? from - r.step : from;
    if (knob == ATT_KNOB_CHUNK && att_draw(&s->random) < KEEP)
        to = 0;
    att_knob_set(&s->next, knob, to);
}

static void draw_neighbour(struct state *s)
{
    uint32_t count = s->space->subspace_count;
    s->next = s->at;
    s->next_subspace = s->subspace;
    if (count > 1 && att_draw(&s->random) < JUMP) {
        s->next_subspace = (s->subspace + 1 + below(s, count - 1)) % count;
        s->next = att_subspace_setting(&s->space->subspaces[s->next_subspace], s->at);
    } else {
        move(s, &s->space->subspaces[s->subspace]);
    }
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    *count = 0;
    if (max == 0 || s->open || s->asked == s->trials)
        return ATT_STRATEGY_OK;
    if (s->asked > 0)
        draw_neighbour(s);
    s->asked++;
    s->open = 1;
    settings[(*count)++] = s->next;
    return ATT_STRATEGY_OK;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    s->open = 0;
    double us = result->sample_count > 0 ? result->median_us : INFINITY;
    double score = result->baseline_median_us > 0 ? us / result->baseline_median_us : us;
    double excess = score / s->at_score - 1;
    /* Not finite: nothing was measured here or there. */
    bool accept = !isfinite(s->at_score) || excess <= 0 ||
                  att_draw(&s->random) < exp(-excess / s->temperature);
    if (accept) {
        s->at = *setting;
        s->subspace = s->next_subspace;
        s->at_score = score;
    }
    if (score < s->best_score) {
        s->best_score = score;
        s->best = *setting;
    }
    s->temperature *= s->cooling;
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    const struct state *s = state;
    *setting = s->best;
    return ATT_STRATEGY_OK;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "annealing",
    .version = "1",
    .description = "simulated annealing over the whole space; a baseline",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = free,
    .check = check,
};
