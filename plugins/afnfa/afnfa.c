/*
 * afnfa: a random forest trained offline picks one setting, a baseline after AFNFA (Wang et al.,
 * APNet'23), in two forms.
 *
 * form=environment: as the poster. One setting for an environment: `samples` (345) settings drawn
 *   from the space train the forest, simulated annealing over its prediction picks the setting.
 * What the poster sets through environment variables: algorithm, transport, channels and the
 * buffer, whose sizes double; not the protocol, which is the one that NCCL estimates fastest, and
 * not the threads. Rows of all tasks of a recording count, as there. form=task: as AutoCCL's
 * authors reproduced it (NSDI'25, section 6.1). `share` (1 %) of the space trains a forest for this
 * task alone, the setting with the largest prediction is picked.
 *
 * Where the samples come from:
 *   train=FILE[:FILE...]  recordings (recording.h), of the idle machine as a rule. They are charged
 * as calls (offline_samples) when strategies are compared; nothing but the pick is run. otherwise
 * the strategy's own random trials, one sample each, paid for in calls of the job.
 *
 * The speed that the forest predicts is the fastest duration of a task over the setting's. There is
 * no comparison with NCCL's choice, as there: attune's guard makes it afterwards.
 */
#include "attune/knob.h"
#include "attune/strategy.h"
#include "forest.h"
#include "recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { P_FORM, P_TRAIN, P_SAMPLES, P_SHARE, P_TREES, P_STEPS, P_COUNT };
enum { ENVIRONMENT = 0, TASK = 1 };

static const att_parameter_t parameters[P_COUNT] = {
    {"form", ATT_PARAMETER_CHOICE, 0, "environment", "environment|task",
     "one setting for an environment as published, or one a task as AutoCCL's authors did"},
    {"train", ATT_PARAMETER_STRING, 0, "", NULL,
     "recordings FILE[:FILE...] (T4, CSV) to learn from; empty: own random trials"},
    {"samples", ATT_PARAMETER_INT, 0, "345", NULL,
     "settings to learn from, 8 to 20000 (form=environment)"},
    {"share", ATT_PARAMETER_REAL, 0, "0.01", NULL,
     "share of the space to learn from, above 0 to 1 (form=task), at least 8 settings"},
    {"trees", ATT_PARAMETER_INT, 0, "100", NULL, "of the forest, 1 to 10000"},
    {"steps", ATT_PARAMETER_INT, 0, "2000", NULL, "of annealing over the prediction, at least 1"},
};

#define SAMPLES 20000 /* most */
#define TREES   10000
#define LEAST   8
#define HOT     0.05 /* temperatures of annealing, in speeds (1 is the fastest seen) */
#define COLD    0.001

struct state {
    const att_space_t *space;
    const att_option_t *options;
    uint64_t random;
    int subspaces[64]; /* that are searched */
    uint32_t subspace_count;
    int goal;    /* samples to learn from */
    int offline; /* of them recorded */
    int asked, told, count;
    float *features, *speeds; /* of `count` samples; speeds are durations until they are learnt */
    bool learnt, over;
    att_setting_t pick;
};

/* ---- the space that AFNFA has ---- */

/* form=environment: of each algorithm and transport the protocol that comes first, which is the one
 * that NCCL estimates to be the fastest. */
static void choose_subspaces(struct state *s)
{
    for (uint32_t i = 0; i < s->space->subspace_count && s->subspace_count < 64; i++) {
        const att_subspace_t *u = &s->space->subspaces[i];
        bool known = false;
        for (uint32_t k = 0; k < s->subspace_count; k++) {
            const att_subspace_t *v = &s->space->subspaces[s->subspaces[k]];
            known = known || (u->algorithm == v->algorithm && u->transport == v->transport);
        }
        if (!known || s->options[P_FORM].integer == TASK)
            s->subspaces[s->subspace_count++] = (int)i;
    }
}

/* Chunks: NCCL's own, then the smallest and its doubles. */
static uint32_t chunk_count(const att_subspace_t *u)
{
    uint32_t n = 1;
    for (uint64_t chunk = u->chunk_min; u->chunk_max > 0 && chunk <= u->chunk_max; chunk *= 2)
        n++;
    return n;
}

static uint32_t channel_count(const att_subspace_t *u)
{
    att_range_t r = att_knob_range(u, ATT_KNOB_CHANNELS);
    return r.max == 0 ? 1 : (r.max - r.min) / r.step + 1;
}

static uint64_t lattice_size(const struct state *s)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < s->subspace_count; i++) {
        const att_subspace_t *u = &s->space->subspaces[s->subspaces[i]];
        size += (uint64_t)channel_count(u) * chunk_count(u);
    }
    return size;
}

static att_setting_t point(const att_subspace_t *u, uint32_t channel, uint32_t chunk)
{
    att_setting_t x = att_subspace_setting(u, ATT_SETTING_KEEP);
    att_range_t r = att_knob_range(u, ATT_KNOB_CHANNELS);
    x.channels = (uint16_t)(r.max == 0 ? 0 : r.min + channel * r.step);
    if (chunk > 0)
        x.chunk_bytes = att_range_near(att_knob_range(u, ATT_KNOB_CHUNK),
                                       (double)u->chunk_min * exp2((double)chunk - 1));
    return x;
}

static att_setting_t lattice_at(const struct state *s, uint64_t i)
{
    const att_subspace_t *u = s->space->subspaces;
    for (uint32_t k = 0; k < s->subspace_count; k++) {
        u = &s->space->subspaces[s->subspaces[k]];
        uint64_t size = (uint64_t)channel_count(u) * chunk_count(u);
        if (i < size)
            break;
        i -= size;
    }
    return point(u, (uint32_t)(i % channel_count(u)), (uint32_t)(i / channel_count(u)));
}

static att_setting_t draw_setting(struct state *s)
{
    return lattice_at(s, (uint64_t)(att_draw(&s->random) * (double)lattice_size(s)));
}

/* ---- samples ---- */

static void add_sample(struct state *s, att_setting_t setting, double speed)
{
    if (s->count == s->goal)
        return;
    forest_features(setting, s->features + (size_t)s->count * FOREST_FEATURES);
    s->speeds[s->count++] = (float)speed;
}

static bool counts(const struct state *s, const recorded_t *row)
{
    if (s->options[P_FORM].integer == TASK &&
        ((row->collective >= 0 && row->collective != (int)s->space->collective) ||
         (row->bytes > 0 && row->bytes != s->space->bytes)))
        return false;
    for (uint32_t i = 0; i < s->subspace_count; i++) {
        const att_subspace_t *u = &s->space->subspaces[s->subspaces[i]];
        if (u->algorithm == row->setting.algorithm && u->protocol == row->setting.protocol &&
            u->transport == row->setting.transport)
            return true;
    }
    return false;
}

static double fastest_of(const recording_t *r, const recorded_t *row)
{
    double least = row->us;
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].collective == row->collective && r->rows[i].bytes == row->bytes)
            least = fmin(least, r->rows[i].us);
    return least;
}

/* Draw what is to be learnt from the rows that count, without replacement. */
static int learn_recorded(struct state *s)
{
    char why[300];
    recording_t r = {0};
    const char *file = s->options[P_TRAIN].text;
    if (recording_read_all(file, &r, why, sizeof why) != 0) {
        fprintf(stderr, "attune: strategy afnfa: %s\n", why);
        return ATT_STRATEGY_EOPTION;
    }
    int use = 0;
    for (int i = 0; i < r.count; i++)
        if (counts(s, &r.rows[i])) {
            recorded_t row = r.rows[i];
            r.rows[i] = r.rows[use];
            r.rows[use++] = row;
        }
    for (int i = 0; i < use && s->count < s->goal; i++) {
        int k = i + (int)(att_draw(&s->random) * (use - i));
        recorded_t row = r.rows[k];
        r.rows[k] = r.rows[i];
        r.rows[i] = row;
        add_sample(s, row.setting, fastest_of(&r, &row) / row.us);
    }
    recording_free(&r);
    s->offline = s->count;
    if (s->count >= LEAST)
        return ATT_STRATEGY_OK;
    fprintf(stderr, "attune: strategy afnfa: %s: %d rows fit this task, at least %d are needed\n",
            file, s->count, LEAST);
    return ATT_STRATEGY_EOPTION;
}

static void destroy(void *state)
{
    struct state *s = state;
    if (s != NULL) {
        free(s->features);
        free(s->speeds);
    }
    free(s);
}

/* The recordings are read here too: one that is missing or damaged must not cost a run. */
static int check_recordings(const att_option_t *train, char *why, size_t size)
{
    char reason[ATT_STRATEGY_WHY];
    recording_t r = {0};
    if (train->text[0] == '\0')
        return ATT_STRATEGY_OK;
    if (recording_read_all(train->text, &r, reason, sizeof reason) != 0)
        return att_option_refuse(train, reason, why, size);
    recording_free(&r);
    return ATT_STRATEGY_OK;
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (o[P_SAMPLES].integer < LEAST || o[P_SAMPLES].integer > SAMPLES)
        return att_option_refuse(&o[P_SAMPLES], "8 to 20000", why, size);
    if (!(o[P_SHARE].real > 0) || o[P_SHARE].real > 1)
        return att_option_refuse(&o[P_SHARE], "above 0, at most 1", why, size);
    if (o[P_TREES].integer < 1 || o[P_TREES].integer > TREES)
        return att_option_refuse(&o[P_TREES], "1 to 10000", why, size);
    if (o[P_STEPS].integer < 1)
        return att_option_refuse(&o[P_STEPS], "at least 1", why, size);
    return check_recordings(&o[P_TRAIN], why, size);
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    const att_option_t *o = options->options;
    struct state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    s->space = space;
    s->options = o;
    s->random = options->seed;
    s->pick = ATT_SETTING_KEEP;
    choose_subspaces(s);
    double goal = o[P_FORM].integer == TASK ? ceil(o[P_SHARE].real * (double)lattice_size(s))
                                            : (double)o[P_SAMPLES].integer;
    s->goal = (int)fmin(fmax(goal, LEAST), SAMPLES);
    s->features = malloc(sizeof *s->features * FOREST_FEATURES * (size_t)s->goal);
    s->speeds = malloc(sizeof *s->speeds * (size_t)s->goal);
    int rc = s->features == NULL || s->speeds == NULL ? ATT_STRATEGY_ENOMEM
             : o[P_TRAIN].text[0] != '\0'             ? learn_recorded(s)
                                                      : ATT_STRATEGY_OK;
    if (rc != ATT_STRATEGY_OK)
        destroy(s);
    else
        *state = s;
    return rc;
}

/* ---- the pick ---- */

/* Predicted speeds of the whole lattice; NULL and why. */
static float *predict_all(const struct state *s, struct forest *forest, char *why, size_t size)
{
    uint64_t n = lattice_size(s);
    float *features = malloc(sizeof *features * FOREST_FEATURES * n);
    float *speeds = malloc(sizeof *speeds * n);
    int rc = features == NULL || speeds == NULL ? -1 : 0;
    for (uint64_t i = 0; rc == 0 && i < n; i++)
        forest_features(lattice_at(s, i), features + i * FOREST_FEATURES);
    if (rc == 0)
        rc = forest_predict(forest, features, (int)n, speeds, why, size);
    free(features);
    if (rc == 0)
        return speeds;
    free(speeds);
    return NULL;
}

static uint64_t largest(const struct state *s, const float *speeds)
{
    uint64_t best = 0, n = lattice_size(s);
    for (uint64_t i = 1; i < n; i++)
        if (speeds[i] > speeds[best])
            best = i;
    return best;
}

/* In one of four steps any point, else other channels, up to an octave away, or another chunk. */
static uint64_t neighbour(struct state *s, uint64_t at)
{
    const att_subspace_t *u = s->space->subspaces;
    uint64_t first = 0;
    for (uint32_t k = 0; k < s->subspace_count; k++) {
        u = &s->space->subspaces[s->subspaces[k]];
        uint64_t size = (uint64_t)channel_count(u) * chunk_count(u);
        if (at < first + size)
            break;
        first += size;
    }
    double choice = att_draw(&s->random), where = att_draw(&s->random);
    uint32_t channels = channel_count(u);
    uint64_t channel = (at - first) % channels, chunk = (at - first) / channels;
    if (choice < 0.25)
        return (uint64_t)(where * (double)lattice_size(s));
    if (choice < 0.625)
        channel = (uint64_t)fmin((double)channels - 1, (double)(channel + 1) * exp2(2 * where - 1));
    else
        chunk = (uint64_t)(where * chunk_count(u));
    return first + chunk * channels + channel;
}

static uint64_t annealed(struct state *s, const float *speeds)
{
    int64_t steps = s->options[P_STEPS].integer;
    uint64_t at = (uint64_t)(att_draw(&s->random) * (double)lattice_size(s)), best = at;
    for (int64_t i = 0; i < steps; i++) {
        double temperature = HOT * pow(COLD / HOT, (double)i / (double)steps);
        uint64_t next = neighbour(s, at);
        double gain = (double)speeds[next] - (double)speeds[at];
        if (gain >= 0 || att_draw(&s->random) < exp(gain / temperature))
            at = next;
        if (speeds[at] > speeds[best])
            best = at;
    }
    return best;
}

static int learn(struct state *s)
{
    char why[300] = "no memory";
    struct forest *forest =
        forest_grow(s->features, s->speeds, s->count, (int)s->options[P_TREES].integer, s->random,
                    why, sizeof why);
    float *speeds = forest != NULL ? predict_all(s, forest, why, sizeof why) : NULL;
    forest_destroy(forest);
    s->learnt = true;
    if (speeds == NULL) {
        fprintf(stderr, "attune: strategy afnfa: %s\n", why);
        return ATT_STRATEGY_EINVALID;
    }
    bool task = s->options[P_FORM].integer == TASK;
    s->pick = lattice_at(s, task ? largest(s, speeds) : annealed(s, speeds));
    free(speeds);
    return ATT_STRATEGY_OK;
}

/* ---- the conversation ---- */

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    *count = 0;
    if (s->asked > s->told || s->over)
        return ATT_STRATEGY_OK;
    if (s->offline == 0)
        for (; *count < max && s->asked < s->goal; s->asked++)
            settings[(*count)++] = draw_setting(s);
    if (*count > 0)
        return ATT_STRATEGY_OK;
    s->over = true;
    if (s->count < LEAST) /* almost nothing came back */
        return ATT_STRATEGY_OK;
    int rc = learn(s);
    settings[0] = s->pick;
    *count = rc == ATT_STRATEGY_OK;
    s->asked += *count > 0;
    return rc;
}

static uint32_t samples(void *state, const att_setting_t *setting)
{
    (void)setting;
    return ((const struct state *)state)->learnt ? 0 : 1;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    s->told++;
    if (!s->learnt && result->sample_count > 0 && result->baseline_median_us > 0)
        add_sample(s, *setting, result->baseline_median_us / result->median_us);
    return ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    const struct state *s = state;
    *setting = s->pick;
    return ATT_STRATEGY_OK;
}

static uint64_t offline_samples(void *state)
{
    return (uint64_t)((const struct state *)state)->offline;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "afnfa",
    .version = "1",
    .description = "one setting from a random forest trained offline; a baseline",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = destroy,
    .offline_samples = offline_samples,
    .samples = samples,
    .check = check,
};
