/*
 * bandit: round-robin over arms, a baseline after the bandit tuner of Madan and Raigosa (Stanford
 * CS244C 2026, an NCCL tuner plugin).
 *
 * An arm is an algorithm and protocol; channels stay those of NCCL's choice and the chunk is kept,
 * as there. The arms are asked in turn, `rounds` times, one sample each (there: one call each). An
 * arm's score is the trimmed mean of its samples over NCCL's choice, a fifth dropped at either end;
 * NCCL's own choice, their arm AUTO, has 1. Deviations: the published one has three fixed pairs and
 * AUTO and tunes AllReduce only; here the arms are what is legal.
 */
#include "attune/knob.h"
#include "attune/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P_ROUNDS, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"rounds", ATT_PARAMETER_INT, 0, "10", NULL, "samples of each arm, 1 to 64"},
};

#define ROUNDS 64
#define TRIM   0.2

struct arm {
    att_setting_t setting;
    uint32_t count;
    double scores[ROUNDS];
};

struct state {
    uint32_t arm_count;
    uint64_t asked, all;
    struct arm arms[];
};

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *rounds = &options->options[P_ROUNDS];
    return rounds->integer < 1 || rounds->integer > ROUNDS
               ? att_option_refuse(rounds, "1 to 64", why, size)
               : ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    int64_t rounds = options->options[P_ROUNDS].integer;
    struct state *s = calloc(1, sizeof *s + space->subspace_count * sizeof *s->arms);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    att_setting_t like = space->incumbent;
    like.chunk_bytes = 0;
    s->arm_count = space->subspace_count;
    s->all = (uint64_t)rounds * s->arm_count;
    /* The seed decides who begins. */
    uint64_t random = options->seed;
    uint32_t first = (uint32_t)(att_draw(&random) * s->arm_count);
    for (uint32_t i = 0; i < s->arm_count; i++)
        s->arms[i].setting =
            att_subspace_setting(&space->subspaces[(first + i) % s->arm_count], like);
    *state = s;
    return ATT_STRATEGY_OK;
}

/* A round at a time, never two of one arm. */
static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    for (*count = 0; *count < max && *count < s->arm_count && s->asked < s->all; s->asked++)
        settings[(*count)++] = s->arms[s->asked % s->arm_count].setting;
    return ATT_STRATEGY_OK;
}

static uint32_t samples(void *state, const att_setting_t *setting)
{
    (void)state;
    (void)setting;
    return 1;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    if (result->sample_count == 0 || !(result->baseline_median_us > 0))
        return ATT_STRATEGY_OK; /* nothing learnt about this arm */
    for (uint32_t i = 0; i < s->arm_count; i++) {
        struct arm *arm = &s->arms[i];
        if (att_setting_equal(arm->setting, *setting) && arm->count < ROUNDS) {
            arm->scores[arm->count++] = result->median_us / result->baseline_median_us;
            return ATT_STRATEGY_OK;
        }
    }
    return ATT_STRATEGY_EINVALID;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double trimmed_mean(const struct arm *arm)
{
    double sorted[ROUNDS], sum = 0;
    if (arm->count == 0)
        return INFINITY;
    memcpy(sorted, arm->scores, arm->count * sizeof *sorted);
    qsort(sorted, arm->count, sizeof *sorted, ascending);
    uint32_t cut = (uint32_t)(TRIM * arm->count);
    for (uint32_t i = cut; i < arm->count - cut; i++)
        sum += sorted[i];
    return sum / (arm->count - 2 * cut);
}

static int best(void *state, att_setting_t *setting)
{
    const struct state *s = state;
    double least = 1;
    *setting = ATT_SETTING_KEEP;
    for (uint32_t i = 0; i < s->arm_count; i++) {
        double score = trimmed_mean(&s->arms[i]);
        if (score < least) {
            least = score;
            *setting = s->arms[i].setting;
        }
    }
    return ATT_STRATEGY_OK;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "bandit",
    .version = "1",
    .description = "algorithm and protocol in turn, nothing else; a baseline",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = free,
    .samples = samples,
    .check = check,
};
