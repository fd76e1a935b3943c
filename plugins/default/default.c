/*
 * default: finds a near-optimal setting with few, noisy calls.
 *
 *   1. Open: one trial of every algorithm, protocol and transport, near NCCL's own choice.
 *   2. Learn: a Gaussian process over all candidates of all subspaces (surrogate.h) pools what all
 *      trials say, NCCL's own estimates being a weak prior. It is about the collective: where a
 *      sample is a step, only the collective's share of it is believed.
 *   3. Ask for what promises most a call: the expected improvement over the best one believed in,
 *      less for noise that the trial leaves (augmented expected improvement: D. Huang et al.,
 *      Global optimization of stochastic black-box systems via sequential kriging meta-models,
 *      J. Global Optimization 34, 2006), less for time that a slow setting costs, for as many
 *      samples as pay off: one where nothing is known, more where the decision is close, again
 *      where the best is doubtful. Several settings at once, each as if the others were known.
 *      A long stay in one subspace is interrupted by a look at what another one promises, with less
 *      fear of slow settings: one unlucky trial must not hide the better side of a ridge.
 *   4. Refine: neighbours of the best one become candidates, from an octave away to one step.
 *   5. Stop when no trial promises more than `stop`, or after `budget` trials.
 */
#include "attune/strategy.h"

#include "attune/knob.h"
#include "pool.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define FIRST_NOISE   0.04  /* relative, of one sample, until it is known */
#define NOISE_WEIGHT  4.0   /* degrees of freedom that this guess is worth */
#define NOISE_CHANGED 1.6   /* begin again when the estimate is off by this factor */
#define BEND          0.10  /* above the best: clearly slow */
#define OUTLIER       4.0   /* standard deviations above the fastest sample of a trial */
#define FORGET        0.1   /* weight of the latest baseline */
#define JUMP          5.0   /* standard errors of the baseline: the job has changed */
#define OVERHEAD      1.0   /* calls of a trial that give no sample */
#define PATIENCE      3.0   /* 0: only calls count, 1: time; more: a slow one has to promise more */
#define GROWTH        0.10  /* of patience, for each trial beyond ... */
#define YOUNG         30    /* ... these: what is still to be found becomes less; ... */
#define MOST          6.0   /* ... up to this, or the other side of a valley is never seen */
#define STAY          20    /* trials in the best one's subspace before a look at the others */
#define CURIOSITY     3.0   /* patience at such a look */
#define LURE          0.006 /* what it has to promise at least, relative */
#define DREAD         2.0   /* an unknown setting is expected to be slower than likely */
#define SURE          1.0   /* standard deviations by which a doubtful one must be better */
#define BELOW         0.25  /* octaves about NCCL's channels in which subspaces are opened */
#define ABOVE         1.0
#define ANCHOR        2   /* samples that NCCL's choice is worth as a trial of its likely knobs */
#define LEAST         70  /* trials before a search ends by itself */
#define OPENING       1   /* samples of the first trial of a subspace */
#define FAILED        1.0 /* log duration that stands for "does not work" */
#define BUDGET        299 /* trials at most */
_Static_assert(BUDGET + 1 <= SURROGATE_ROWS, "the anchor needs a row, too");

enum { P_BUDGET, P_BATCH, P_STOP, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"budget", ATT_PARAMETER_INT, 0, "200", NULL, "trials at most, 1 to 299"},
    {"batch", ATT_PARAMETER_INT, 0, "5", NULL, "trials asked for at once, at least 1"},
    {"stop", ATT_PARAMETER_REAL, 0, "0.0002", NULL,
     "ends when no trial promises to gain more than this share of the duration; 0: never"},
};

static const int sample_counts[] = {1, 2, 4, 7};
#define SAMPLE_COUNTS (int)(sizeof sample_counts / sizeof *sample_counts)
#define TYPICAL       2 /* index of the number of samples that `stop` is about */

typedef struct search {
    const att_space_t *space;
    pool_t pool;
    surrogate_t *surrogate;
    int64_t budget, batch;
    double stop;
    uint64_t random;
    uint32_t opened; /* subspaces that had their first trial */
    int open;        /* asked, not told */
    bool over;
    double squares, freedom; /* of samples about their trial's mean */
    double reference;        /* log of the baseline, slow; NAN before the first */
    double fastest;          /* smallest y told; 0 is NCCL's choice */
    int best;                /* candidate, -1 none */
    int stay;                /* trials in a row in the best one's subspace */
    int anchors;             /* rows that are no trials */
    double shares[BUDGET];   /* of the collective in the samples of trials, where they are steps; */
    int share_count;         /* in order */
} search_t;

/* What needs no trial: NCCL's choice takes as long as NCCL's choice. One unlucky first trial must
 * not speak against the algorithm and protocol that NCCL itself takes. */
static void anchor(search_t *s)
{
    const att_space_t *space = s->space;
    for (uint32_t i = 0; i < space->subspace_count && s->anchors == 0; i++) {
        const att_subspace_t *u = &space->subspaces[i];
        if (u->algorithm != space->incumbent.algorithm || u->protocol != space->incumbent.protocol)
            continue;
        att_setting_t x = att_subspace_setting(u, space->incumbent);
        x.channels =
            (uint16_t)att_range_near(att_knob_range(u, ATT_KNOB_CHANNELS), pool_channels(space, u));
        x.chunk_bytes = 0;
        int candidate = pool_find(&s->pool, (int)i, x);
        int row = candidate < 0 ? -1 : surrogate_begin(s->surrogate, candidate, ANCHOR);
        if (row >= 0) {
            s->surrogate->rows[row].y = 0;
            s->anchors = 1;
        }
    }
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (o[P_BUDGET].integer < 1 || o[P_BUDGET].integer > BUDGET)
        return att_option_refuse(&o[P_BUDGET], "1 to 299", why, size);
    if (o[P_BATCH].integer < 1)
        return att_option_refuse(&o[P_BATCH], "at least 1", why, size);
    if (o[P_STOP].real < 0)
        return att_option_refuse(&o[P_STOP], "at least 0", why, size);
    return ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    const att_option_t *o = options->options;
    if (space->subspace_count > POOL_SUBSPACES)
        return ATT_STRATEGY_EOPTION;
    search_t *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    s->surrogate = surrogate_create(FIRST_NOISE * FIRST_NOISE);
    if (s->surrogate == NULL) {
        free(s);
        return ATT_STRATEGY_ENOMEM;
    }
    s->space = space;
    s->budget = o[P_BUDGET].integer;
    s->batch = o[P_BATCH].integer;
    s->stop = o[P_STOP].real;
    s->random = options->seed;
    s->reference = NAN;
    s->best = -1;
    s->pool.space = space;
    s->pool.surrogate = s->surrogate;
    s->pool.belief = 1;
    pool_fill(&s->pool, &s->random);
    anchor(s);
    *state = s;
    return ATT_STRATEGY_OK;
}

/* ---- what is believed ---- */

static double noise_of(const search_t *s)
{
    return (s->squares + NOISE_WEIGHT * FIRST_NOISE * FIRST_NOISE) / (s->freedom + NOISE_WEIGHT);
}

/* Of those tried, the one that is surely fast: lucky ones have a wide margin. */
static int surest(const search_t *s)
{
    const surrogate_t *g = s->surrogate;
    int best = -1;
    double least = INFINITY;
    for (int n = 0; n < g->row_count; n++) {
        int m = g->rows[n].candidate;
        double bound = g->mean[m] + SURE * sqrt(g->variance[m]);
        if (!isnan(g->rows[n].y) && bound < least) {
            least = bound;
            best = m;
        }
    }
    return best;
}

/* How much of what is thought of the collective counts in a sample: as much as it has in fast
 * trials, slow ones are longer. Not the least: of one or two samples, any trial may be far off. */
static double belief_of(const search_t *s)
{
    return s->share_count > 0 ? s->shares[s->share_count / 4] : 1;
}

static void learn(search_t *s)
{
    double noise = noise_of(s), ratio = noise / s->surrogate->noise;
    if (ratio > NOISE_CHANGED || ratio < 1 / NOISE_CHANGED)
        surrogate_renew(s->surrogate, noise);
    if (belief_of(s) != s->pool.belief)
        pool_believe(&s->pool, belief_of(s));
    surrogate_learn(s->surrogate, s->fastest + BEND);
    s->best = surest(s);
    if (s->best >= 0)
        pool_refine(&s->pool, s->best);
}

/* ---- what to ask ---- */

typedef struct choice {
    int candidate; /* -1: nothing promises anything */
    int samples;
    double gain; /* what a trial with the typical number of samples promises at most */
} choice_t;

/* E max(gain, 0) of a normal gain. */
static double improvement(double gain, double deviation)
{
    double t = gain / deviation;
    if (t < -5)
        return 0;
    return gain * 0.5 * erfc(-t * M_SQRT1_2) + deviation * 0.3989422804 * exp(-0.5 * t * t);
}

/* Of all candidates, or of those outside of a subspace (-1: none). */
static choice_t choose(const search_t *s, double patience, int outside)
{
    const surrogate_t *g = s->surrogate;
    double target = s->best >= 0 ? g->mean[s->best] : 0, most = 0;
    choice_t choice = {.candidate = -1};
    for (int m = 0; m < g->count; m++) {
        if (g->places[m].subspace == outside)
            continue;
        double better = improvement(target - g->mean[m], sqrt(g->variance[m]));
        if (better <= 0)
            continue;
        /* Time that the trial is expected to take, in calls of the best. */
        double slow = exp(g->mean[m] + DREAD * g->variance[m] - target);
        double pace = 1 / pow(slow, patience);
        for (int k = 0; k < SAMPLE_COUNTS; k++) {
            double left = g->noise / sample_counts[k];
            double gain = better * (1 - sqrt(left / (g->variance[m] + left)));
            if (k == TYPICAL && gain > choice.gain)
                choice.gain = gain;
            gain *= pace / (OVERHEAD + sample_counts[k]);
            if (gain > most) {
                most = gain;
                choice.candidate = m;
                choice.samples = sample_counts[k];
            }
        }
    }
    return choice;
}

/* The next one to be asked for. */
static choice_t next(search_t *s)
{
    double patience = fmin(PATIENCE + GROWTH * fmax(s->surrogate->row_count - YOUNG, 0), MOST);
    choice_t choice = choose(s, patience, -1);
    if (s->best < 0 || choice.candidate < 0)
        return choice;
    const place_t *places = s->surrogate->places;
    int home = places[s->best].subspace;
    if (s->stay >= STAY) {
        choice_t look = choose(s, CURIOSITY, home);
        s->stay = 0;
        if (look.candidate >= 0 && look.gain > LURE)
            choice = look;
    }
    s->stay = places[choice.candidate].subspace == home ? s->stay + 1 : 0;
    return choice;
}

static bool emit(search_t *s, int candidate, int samples, att_setting_t *settings, uint32_t *count)
{
    if (candidate < 0 || s->surrogate->row_count - s->anchors >= s->budget ||
        surrogate_begin(s->surrogate, candidate, samples) < 0)
        return false;
    settings[(*count)++] = s->pool.settings[candidate];
    s->open++;
    return true;
}

/* NCCL's counterpart in a subspace, a little to the side, another one for each seed. */
static void open_next(search_t *s, att_setting_t *settings, uint32_t *count)
{
    int subspace = (int)s->opened++;
    const att_subspace_t *u = &s->space->subspaces[subspace];
    att_setting_t x = att_subspace_setting(u, s->space->incumbent);
    att_range_t channels = att_knob_range(u, ATT_KNOB_CHANNELS);
    x.channels = (uint16_t)att_range_near(channels, pool_channels(s->space, u) *
                                                        exp2(ABOVE * att_draw(&s->random) - BELOW));
    x.chunk_bytes = 0;
    emit(s, pool_find(&s->pool, subspace, x), OPENING, settings, count);
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    search_t *s = state;
    *count = 0;
    if (s->open > 0 || s->over)
        return ATT_STRATEGY_OK;
    if (s->opened < s->space->subspace_count) {
        while (*count < max && s->opened < s->space->subspace_count)
            open_next(s, settings, count);
        return ATT_STRATEGY_OK;
    }
    while (*count < max && *count < s->batch) {
        choice_t choice = next(s);
        if (*count == 0 && choice.gain < s->stop && s->surrogate->row_count >= LEAST)
            break;
        if (!emit(s, choice.candidate, choice.samples, settings, count))
            break;
    }
    s->over = *count == 0;
    return ATT_STRATEGY_OK;
}

/* The row of the latest trial of a setting that has not been told. */
static row_t *row_of(search_t *s, const att_setting_t *setting)
{
    surrogate_t *g = s->surrogate;
    for (int n = g->row_count; n-- > 0;)
        if (isnan(g->rows[n].y) &&
            att_setting_equal(s->pool.settings[g->rows[n].candidate], *setting))
            return &g->rows[n];
    return NULL;
}

static uint32_t samples(void *state, const att_setting_t *setting)
{
    const row_t *row = row_of(state, setting);
    return row != NULL ? (uint32_t)row->samples : 0;
}

/* ---- what was measured ---- */

/* Logarithm of the duration: the mean, with outliers of a busy machine cut. */
static double duration(search_t *s, const att_result_t *result)
{
    double least = INFINITY, sum = 0, squares = 0;
    uint32_t n = result->sample_count;
    for (uint32_t i = 0; i < n; i++)
        least = fmin(least, log(result->samples_us[i]));
    double limit = least + OUTLIER * sqrt(noise_of(s));
    for (uint32_t i = 0; i < n; i++)
        sum += fmin(log(result->samples_us[i]), limit);
    for (uint32_t i = 0; i < n; i++)
        squares += pow(fmin(log(result->samples_us[i]), limit) - sum / n, 2);
    s->squares += squares;
    s->freedom += n - 1;
    return sum / n;
}

/* The baseline is noisy too and hardly changes: follow it slowly, unless it jumps. */
static void follow(search_t *s, const att_result_t *result)
{
    if (!(result->baseline_median_us > 0))
        return;
    double baseline = log(result->baseline_median_us);
    double error = 1.25 * sqrt(noise_of(s) / fmax(result->baseline_count, 1));
    if (isnan(s->reference) || fabs(baseline - s->reference) > JUMP * error)
        s->reference = baseline;
    else
        s->reference += FORGET * (baseline - s->reference);
}

static void note_share(search_t *s, const att_result_t *result)
{
    bool knows = result->size >= offsetof(att_result_t, collective_us) + sizeof(double);
    if (!knows || !(result->collective_us > 0) || !(result->mean_us > 0) ||
        s->share_count == BUDGET)
        return;
    double share = fmin(result->collective_us / result->mean_us, 1);
    int i = s->share_count++;
    for (; i > 0 && s->shares[i - 1] > share; i--)
        s->shares[i] = s->shares[i - 1];
    s->shares[i] = share;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    search_t *s = state;
    row_t *row = row_of(s, setting);
    if (row == NULL)
        return ATT_STRATEGY_EINVALID;
    follow(s, result);
    note_share(s, result);
    if (result->sample_count == 0)
        row->y = s->fastest + FAILED;
    else
        row->y = duration(s, result) - (isnan(s->reference) ? 0 : s->reference);
    s->fastest = fmin(s->fastest, row->y);
    if (--s->open == 0)
        learn(s);
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    const search_t *s = state;
    bool faster = s->best >= 0 && s->surrogate->mean[s->best] < 0;
    *setting = faster ? s->pool.settings[s->best] : ATT_SETTING_KEEP;
    return ATT_STRATEGY_OK;
}

static void destroy(void *state)
{
    search_t *s = state;
    if (s != NULL)
        surrogate_destroy(s->surrogate);
    free(s);
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "default",
    .version = "1",
    .description = "a Gaussian process over all subspaces; few calls, noise in mind",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = destroy,
    .samples = samples,
    .check = check,
};
