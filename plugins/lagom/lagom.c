/*
 * lagom: greedy on compute lost against communication saved, a baseline after Lagom (arXiv
 * 2602.20656), which looks at the step and not at the collective: channels that make a collective
 * faster take SMs from the compute that it overlaps.
 *
 * It starts at the fewest resources in the subspace of NCCL's choice. A round tries one doubling of
 * each free knob (chunk: halving too). Of those whose communication got faster it takes the one
 * with the smallest H = compute lost / communication saved, as long as H < 1; it stops when more is
 * lost than saved, or nothing is saved. The end point is tried in every other subspace too, and the
 * search goes on in the one with the fastest step.
 *
 * The result says how long the collective took within the step (collective_us). What compute lost
 * is the communication saved that did not arrive in the step: while the collective is exposed the
 * step gains all of it (H = 0), once it is hidden the step only loses (H > 1). Without
 * collective_us the samples are the collective itself, H is 0, and this is steepest descent.
 * Deviations from the paper, whose code is not public: compute is measured through the step, not
 * modelled as linear in the channels; algorithm, protocol and transport are searched by one visit.
 */
#include "attune/knob.h"
#include "attune/strategy.h"

#include <math.h>
#include <stdlib.h>

enum { P_TRIALS, P_CHANNELS, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"trials", ATT_PARAMETER_INT, 0, "66", NULL, "settings to try at most, 1 to 1000"},
    {"channels", ATT_PARAMETER_INT, 0, "1", NULL, "channels at the start, at least 1"},
};

#define SAVED  0.01 /* share of the collective that counts as saved: noise is not */
#define TRIALS 1000

enum { START, CLIMB, VISIT, END };

struct point {
    att_setting_t setting;
    uint32_t subspace;
    double step, collective; /* over NCCL's step at the same time; INFINITY: not measured */
};

struct state {
    const att_space_t *space;
    int64_t trials;
    int phase;
    struct point at;
    struct point round[64]; /* asked together */
    uint32_t count, given, told;
    bool visited;
    double best_step;
    att_setting_t best;
};

static void propose(struct state *s, uint32_t subspace, att_setting_t x)
{
    if (s->count == sizeof s->round / sizeof *s->round)
        return;
    s->round[s->count++] = (struct point){
        .setting = x, .subspace = subspace, .step = INFINITY, .collective = INFINITY};
}

static void begin_round(struct state *s, int phase)
{
    s->phase = phase;
    s->count = s->given = s->told = 0;
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (o[P_TRIALS].integer < 1 || o[P_TRIALS].integer > TRIALS)
        return att_option_refuse(&o[P_TRIALS], "1 to 1000", why, size);
    if (o[P_CHANNELS].integer < 1)
        return att_option_refuse(&o[P_CHANNELS], "at least 1", why, size);
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
    s->best = ATT_SETTING_KEEP;
    s->best_step = 1;
    uint32_t home = 0;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (space->subspaces[i].algorithm == space->incumbent.algorithm &&
            space->subspaces[i].protocol == space->incumbent.protocol)
            home = i;
    const att_subspace_t *u = &space->subspaces[home];
    att_setting_t x = att_subspace_setting(u, ATT_SETTING_KEEP);
    for (int k = 0; k < ATT_KNOB_COUNT; k++) {
        att_range_t r = att_knob_range(u, (att_knob_t)k);
        /* Where to start between few threads or a small chunk is left to the seed. */
        uint64_t random = options->seed + (uint64_t)k;
        double value = k == ATT_KNOB_CHANNELS ? (double)o[P_CHANNELS].integer
                                              : r.min * exp2(2 * att_draw(&random));
        att_knob_set(&x, (att_knob_t)k, att_range_near(r, value));
    }
    begin_round(s, START);
    propose(s, home, x);
    *state = s;
    return ATT_STRATEGY_OK;
}

static void propose_moves(struct state *s)
{
    const att_subspace_t *u = &s->space->subspaces[s->at.subspace];
    for (int k = 0; k < ATT_KNOB_COUNT; k++)
        for (int down = 0; down <= (k == ATT_KNOB_CHUNK); down++) {
            att_setting_t x = s->at.setting;
            uint32_t from = att_knob_get(&x, (att_knob_t)k);
            uint32_t to = att_range_near(att_knob_range(u, (att_knob_t)k), from * (down ? 0.5 : 2));
            if (from == 0 || to == from)
                continue;
            att_knob_set(&x, (att_knob_t)k, to);
            propose(s, s->at.subspace, x);
        }
}

/* H of a move from s->at: of the communication saved, the share that did not arrive in the step
 * because compute lost it. Without knowledge of the step 0. INFINITY when nothing is saved. */
static double price(const struct state *s, const struct point *to)
{
    double saved = s->at.collective - to->collective;
    if (!(saved > SAVED * s->at.collective))
        return INFINITY;
    return fmax(0, (to->step - s->at.step + saved) / saved);
}

static void end_climb(struct state *s)
{
    begin_round(s, s->visited ? END : VISIT);
    s->visited = true;
    if (s->phase == VISIT)
        for (uint32_t i = 0; i < s->space->subspace_count; i++)
            if (i != s->at.subspace)
                propose(s, i, att_subspace_setting(&s->space->subspaces[i], s->at.setting));
    if (s->count == 0)
        s->phase = END;
}

static void judge_climb(struct state *s)
{
    const struct point *cheapest = NULL;
    double least = 1;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct point *p = &s->round[i];
        double h = price(s, p);
        if (h < least || (cheapest != NULL && h <= least && p->collective < cheapest->collective)) {
            least = h;
            cheapest = p;
        }
    }
    if (cheapest == NULL) {
        end_climb(s);
        return;
    }
    s->at = *cheapest;
    begin_round(s, CLIMB);
    propose_moves(s);
    if (s->count == 0)
        end_climb(s);
}

static void judge(struct state *s)
{
    if (s->phase == CLIMB) {
        judge_climb(s);
        return;
    }
    if (s->phase == START)
        s->at = s->round[0];
    bool moved = s->phase == START;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->round[i].step < s->at.step) {
            s->at = s->round[i];
            moved = true;
        }
    begin_round(s, moved ? CLIMB : END);
    if (!moved)
        return;
    propose_moves(s);
    if (s->count == 0)
        end_climb(s);
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    *count = 0;
    if (s->phase != END && s->given == s->count && s->told == s->count)
        judge(s);
    if (s->phase == END)
        return ATT_STRATEGY_OK;
    while (*count < max && s->given < s->count && s->trials > 0) {
        settings[(*count)++] = s->round[s->given++].setting;
        s->trials--;
    }
    return ATT_STRATEGY_OK;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    struct point *p = NULL;
    for (uint32_t i = 0; i < s->given && p == NULL; i++)
        if (att_setting_equal(s->round[i].setting, *setting))
            p = &s->round[i];
    if (p == NULL)
        return ATT_STRATEGY_EINVALID;
    s->told++;
    if (result->sample_count == 0)
        return ATT_STRATEGY_OK;
    double base = result->baseline_median_us > 0 ? result->baseline_median_us : 1;
    bool knows = result->size >= offsetof(att_result_t, collective_us) + sizeof(double) &&
                 result->collective_us > 0;
    p->step = result->median_us / base;
    p->collective = knows ? result->collective_us / base : p->step;
    if (p->step < s->best_step) {
        s->best_step = p->step;
        s->best = *setting;
    }
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
    .name = "lagom",
    .version = "1",
    .description = "greedy on compute lost against communication saved; a baseline",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = free,
    .check = check,
};
