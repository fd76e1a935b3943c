/* logscale: the variant log; coordinate_descent.c describes it. */
#include "search.h"

#include <math.h>

enum { AXES = KNOBS + 1 }; /* and channels against chunk */
enum { SCREEN = 0, CHOOSE, EXPLORE, POLISH, RESTART, LAND, WANDER };

#define LOOKS    4    /* measurements of one point at most */
#define FINEST   3    /* level: steps of 2^-3 octaves */
#define LEFT     1.3  /* a subspace slower than this after the screen is left */
#define NEAR     1.25 /* ... after another one was explored: the screen compares few points */
#define SPREAD   6    /* points before a restart */
#define POLISHED 1.05 /* a random start slower than this is not polished */

/* x with a knob moved by so many octaves; at least one legal step. 0 when it is at its end. */
static int move(const att_subspace_t *u, att_setting_t *x, int knob, double octaves)
{
    range_t r = range_of(u, knob);
    uint32_t from = get(x, knob);
    if (from == 0) /* chunk "keep" has no place on the axis */
        return 0;
    double wanted = from * exp2(octaves);
    uint32_t to = legal(r, wanted);
    if (to == from && octaves > 0 && from < r.max)
        to = from + r.step;
    if (to == from && octaves < 0 && from > r.min)
        to = from - r.step;
    set(x, knob, to);
    /* Far beyond the end says no more than the end. */
    return to != from && wanted < r.max * 2.0 && wanted * 2.0 > r.min;
}

static void scan(search_t *s, uint32_t subspace, att_setting_t x, int knob, double octaves,
                 int reach)
{
    const att_subspace_t *u = &s->space->subspaces[subspace];
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 1; i <= reach; i++) {
            att_setting_t y = x;
            if (!move(u, &y, knob, sign * i * octaves))
                break;
            propose(s, subspace, y);
        }
}

static void scan_against(search_t *s, uint32_t subspace, att_setting_t x, int a, int b,
                         double octaves, int reach)
{
    const att_subspace_t *u = &s->space->subspaces[subspace];
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 1; i <= reach; i++) {
            att_setting_t y = x;
            if (!move(u, &y, a, sign * i * octaves) || !move(u, &y, b, -sign * i * octaves))
                break;
            propose(s, subspace, y);
        }
}

static void screen(search_t *s)
{
    for (uint32_t i = 0; i < s->space->subspace_count; i++) {
        const att_subspace_t *u = &s->space->subspaces[i];
        att_setting_t x = blank(u);
        range_t c = range_of(u, CHANNELS);
        x.channels = (uint16_t)legal(
            c, s->space->incumbent.channels > 0 ? s->space->incumbent.channels : c.max);
        x.threads = (uint16_t)legal(range_of(u, THREADS), UINT32_MAX);
        propose(s, i, x);
        /* A lattice with an irrational slope (Weyl): even for any number of points. */
        double shift[KNOBS] = {draw(s), draw(s), draw(s)};
        static const double slope[KNOBS] = {0.7548776662, 0.3819660113, 0.5698402910};
        for (int64_t n = 0; n < s->screen; n++) {
            for (int k = 0; k < KNOBS; k++) {
                range_t r = range_of(u, k);
                if (r.max == 0)
                    continue;
                double f = fmod(shift[k] + (double)n * slope[k], 1);
                set(&x, k, legal(r, r.min * pow((double)r.max / r.min, f)));
            }
            propose(s, i, x);
        }
    }
}

static void start(search_t *s, int from, int level, int last_level, int first)
{
    descent_t *d = &s->descents[0];
    d->subspace = s->points[from].subspace;
    d->best = from;
    d->level = level;
    d->last_level = last_level;
    d->first = first;
    d->axis = 0;
    d->rounds = 0;
    d->moved = 0;
    s->round_from = s->count;
}

/* The best point of the best subspace that was not descended yet and is near enough to the overall
 * best. -1 when there is none. */
static int next_subspace(const search_t *s, double near)
{
    int from = -1;
    for (uint32_t i = 0; i < s->space->subspace_count; i++) {
        int best = best_of(s, i, 0);
        if (!s->descents[i].over && score_of(s, best) < score_of(s, from) &&
            score_of(s, best) <= near * score_of(s, s->best))
            from = best;
    }
    return from;
}

/* What is good in one subspace is often good in its neighbours: one trial each. */
static void transplant(search_t *s, att_setting_t x)
{
    for (uint32_t i = 0; i < s->space->subspace_count; i++) {
        const att_subspace_t *u = &s->space->subspaces[i];
        att_setting_t y = blank(u);
        for (int k = 0; k < KNOBS; k++)
            if (get(&x, k) != 0)
                set(&y, k, legal(range_of(u, k), get(&x, k)));
        propose(s, i, y);
    }
}

/* Distance of two settings in octaves of all knobs, squared. */
static double distance(const att_subspace_t *u, const att_setting_t *x, const att_setting_t *y)
{
    double sum = 0;
    for (int k = 0; k < KNOBS; k++)
        if (is_free(u, k) && get(x, k) != 0 && get(y, k) != 0) {
            double octaves = log2((double)get(x, k) / get(y, k));
            sum += octaves * octaves;
        }
    return sum;
}

/* Add a few points, each far from all that are known: of some random ones the one whose nearest
 * neighbour is the farthest. */
static void spread(search_t *s, uint32_t subspace)
{
    const att_subspace_t *u = &s->space->subspaces[subspace];
    s->round_from = s->count;
    for (int i = 0; i < SPREAD; i++) {
        att_setting_t far = random_point(s, u, 1);
        double most = -1;
        for (int n = 0; n < 12; n++) {
            att_setting_t x = random_point(s, u, 1);
            double nearest = INFINITY;
            for (int p = 0; p < s->count; p++)
                if (s->points[p].subspace == subspace)
                    nearest = fmin(nearest, distance(u, &x, &s->points[p].setting));
            if (nearest > most) {
                most = nearest;
                far = x;
            }
        }
        propose(s, subspace, far);
    }
}

/* Octaves of one knob around x, as far as they go. */
static void scan_octaves(search_t *s, uint32_t subspace, att_setting_t x, int knob)
{
    const att_subspace_t *u = &s->space->subspaces[subspace];
    if (knob == CHUNK && x.chunk_bytes == 0 && is_free(u, CHUNK)) {
        range_t r = range_of(u, CHUNK);
        x.chunk_bytes = legal(r, sqrt((double)r.min * r.max));
        propose(s, subspace, x);
    }
    scan(s, subspace, x, knob, 1, 16);
}

/* All axes at once, finer than an octave. */
static void scan_star(search_t *s, uint32_t subspace, att_setting_t x, int level)
{
    double octaves = exp2(-level);
    int reach = level == 1 ? 2 : 1;
    for (int k = 0; k < KNOBS; k++)
        scan(s, subspace, x, k, octaves, reach);
    scan_against(s, subspace, x, CHANNELS, CHUNK, octaves, reach);
}

/* Add the next points of the descent. 0: it has ended. */
static int descend(search_t *s)
{
    descent_t *d = &s->descents[0];
    while (s->asked == s->count) {
        for (int i = s->round_from; i < s->count; i++)
            if (s->points[i].subspace == d->subspace && s->points[i].score < score_of(s, d->best)) {
                d->best = i;
                d->moved = 1;
            }
        if (d->level > 0) {
            int best = best_of(s, d->subspace, d->first);
            d->moved = d->moved || best != d->best;
            d->best = best;
        }
        s->round_from = s->count;
        att_setting_t x = s->points[d->best].setting;
        if (d->axis == AXES) { /* a round is over: again while it helps */
            d->axis = 0;
            if (!d->moved || d->rounds >= 3) {
                d->rounds = 0;
                d->level++;
            }
            d->moved = 0;
        }
        if (d->level > d->last_level)
            return 0;
        if (d->axis == 0)
            d->rounds++;
        if (d->level > 0) {
            /* The best of many looks better than it is: measure it again beside its neighbours. */
            if (s->points[d->best].measured < LOOKS)
                s->again = d->best;
            scan_star(s, d->subspace, x, d->level);
            d->axis = AXES;
        } else {
            static const int order[AXES - 1] = {CHUNK, CHANNELS, THREADS};
            if (d->axis < AXES - 1)
                scan_octaves(s, d->subspace, x, order[d->axis]);
            else
                scan_against(s, d->subspace, x, CHANNELS, CHUNK, 1, 2);
            d->axis++;
        }
    }
    return 1;
}

int next_log(search_t *s)
{
    descent_t *d = &s->descents[0];
    while (s->asked == s->count) {
        switch (s->phase) {
        case SCREEN:
            screen(s);
            s->phase = CHOOSE;
            break;
        case CHOOSE: { /* the best subspace, then those that come near it */
            int from = next_subspace(s, d->starts == 0 ? LEFT : NEAR);
            if (s->best < 0)
                return 0;
            if (from >= 0 && s->trials * 10 < s->budget * 7) {
                d->starts = 1;
                s->descents[s->points[from].subspace].over = 1;
                start(s, from, 0, 0, 0);
                s->phase = EXPLORE;
            } else {
                start(s, s->best, 1, FINEST, 0);
                s->phase = POLISH;
            }
            break;
        }
        case EXPLORE:
            if (!descend(s)) {
                transplant(s, s->points[d->best].setting);
                s->phase = CHOOSE;
            }
            break;
        case POLISH:
            if (!descend(s))
                s->phase = RESTART;
            break;
        case RESTART:
            if (d->starts++ >= s->restarts)
                return 0;
            spread(s, s->points[s->best].subspace);
            s->phase = LAND;
            break;
        case LAND: {
            int first = s->round_from;
            int from = best_of(s, s->points[s->best].subspace, first);
            s->phase = RESTART;
            if (from >= 0) {
                start(s, from, 0, 0, first);
                s->phase = WANDER;
            }
            break;
        }
        case WANDER:
            if (!descend(s)) {
                /* A start that leads nowhere is not polished. */
                s->phase = RESTART;
                if (score_of(s, d->best) <= POLISHED * score_of(s, s->best)) {
                    start(s, d->best, 1, FINEST, d->first);
                    s->phase = POLISH;
                }
            }
            break;
        }
    }
    return 1;
}
