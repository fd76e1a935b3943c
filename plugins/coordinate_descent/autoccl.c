/* autoccl: the variants paper and code; coordinate_descent.c describes them. */
#include "search.h"

#include <math.h>

/* Judge the point asked last. The start against itself gains nothing, which is a failure too. */
static void judge_step(search_t *s, descent_t *d, int knobs)
{
    double now = score_of(s, s->round_from), opt = score_of(s, d->best);
    if (now < opt) {
        d->step = 1 - now / opt;
        d->best = s->round_from;
        d->failures = 0;
    } else {
        d->failures++;
        d->axis = (d->axis + 1) % knobs;
        d->step = 0.01;
    }
}

int next_paper(search_t *s)
{
    descent_t *d = &s->descents[0];
    uint32_t subspaces = s->space->subspace_count;
    uint32_t share = (uint32_t)((s->budget + subspaces - 1) / subspaces);
    for (; d->subspace < subspaces; d->subspace++, d->trials = 0) {
        const att_subspace_t *u = &s->space->subspaces[d->subspace];
        int knobs[KNOBS], n = free_knobs(u, knobs);
        if (d->trials == 0) {
            *d = (descent_t){.subspace = d->subspace, .step = 0.01, .trials = 1};
            d->best = s->round_from = propose(s, d->subspace, random_point(s, u, 0));
            return d->best >= 0;
        }
        while (n > 0 && d->trials < share) {
            judge_step(s, d, n);
            if (d->failures > n)
                break;
            att_setting_t x = s->points[d->best].setting;
            int knob = knobs[d->axis];
            range_t r = range_of(u, knob);
            uint32_t from = get(&x, knob), to = legal(r, from + d->step * (r.max - r.min));
            set(&x, knob, to > from ? to : legal(r, (double)from + r.step));
            int known = s->count;
            s->round_from = propose(s, d->subspace, x);
            if (s->round_from < 0)
                return 0;
            if (s->round_from == known) {
                d->trials++;
                return 1;
            }
        }
    }
    return 0;
}

/* ---- variant code ---- */

static uint64_t values(range_t r)
{
    return r.max == 0 ? 1 : (r.max - r.min) / r.step + 1;
}

/* The rank-th nearest point ahead of x on an axis, by (distance along it, distance of the other
 * knob). 0: beyond the last one. */
static int ahead(const att_subspace_t *u, att_setting_t *x, int axis, int other, int sign,
                 uint64_t rank)
{
    range_t r = range_of(u, axis);
    uint64_t across = other < 0 ? 1 : values(range_of(u, other));
    uint64_t level = rank / across + 1, place = rank % across;
    uint64_t levels = (sign > 0 ? r.max - get(x, axis) : get(x, axis) - r.min) / r.step;
    if (level > levels)
        return 0;
    set(x, axis, get(x, axis) + (uint32_t)((int64_t)level * sign * r.step));
    if (other >= 0) {
        range_t o = range_of(u, other);
        uint64_t here = (get(x, other) - o.min) / o.step, up = across - 1 - here;
        /* 0, +1, -1, +2, -2, ... and on alone on the side that is longer. */
        uint64_t both = 2 * (here < up ? here : up);
        int64_t delta;
        if (place <= both)
            delta = place % 2 ? (int64_t)(place / 2 + 1) : -(int64_t)(place / 2);
        else
            delta = up > here ? (int64_t)(place - here) : -(int64_t)(place - up);
        set(x, other, (uint32_t)((int64_t)get(x, other) + delta * o.step));
    }
    return 1;
}

static int next_round(search_t *s, descent_t *d)
{
    const att_subspace_t *u = &s->space->subspaces[d->subspace];
    int knobs[KNOBS], n = free_knobs(u, knobs);
    while (n > 0) {
        if (d->failures == 2 * n) {
            if (++d->starts >= s->restarts)
                return 0;
            d->failures = d->axis = 0;
            d->sign = 1;
            d->step = 0;
            d->best = propose(s, d->subspace, random_point(s, u, 0));
            return d->best >= 0;
        }
        att_setting_t x = s->points[d->best].setting;
        int axis = knobs[d->axis], other = n > 1 ? knobs[(d->axis + 1) % n] : -1;
        range_t r = range_of(u, axis);
        uint64_t levels = (d->sign > 0 ? r.max - get(&x, axis) : get(&x, axis) - r.min) / r.step;
        uint64_t m = levels * (other < 0 ? 1 : values(range_of(u, other)));
        uint64_t k = (uint64_t)(d->step * (double)m);
        k = k < 3 ? 3 : k;
        k = k > m ? m : k;
        int before = s->count;
        for (uint64_t rank = k; rank-- > 0 && s->count - before < s->top_k;) {
            att_setting_t y = x;
            if (ahead(u, &y, axis, other, d->sign, rank) && propose(s, d->subspace, y) < 0)
                return 0;
        }
        if (s->count > before)
            return 1;
        d->failures++; /* nothing new ahead */
        if (d->sign < 0)
            d->axis = (d->axis + 1) % n;
        d->sign = -d->sign;
        d->step = 0;
    }
    return 0;
}

static void judge_round(search_t *s, descent_t *d, int first)
{
    int found = best_of(s, d->subspace, first);
    double now = score_of(s, found), was = score_of(s, d->best);
    d->trials += (uint32_t)(s->count - first);
    if (found == d->best) /* the start itself */
        return;
    int n, knobs[KNOBS];
    n = free_knobs(&s->space->subspaces[d->subspace], knobs);
    if (now < was) {
        d->step = isfinite(was) ? 0.8 * (1 - now / was) : 0;
        d->best = found;
        d->failures = 0;
    } else {
        d->failures++;
        d->step = 0;
        if (d->sign < 0)
            d->axis = n > 0 ? (d->axis + 1) % n : 0;
        d->sign = -d->sign;
    }
    int best = best_of(s, d->subspace, 0);
    double ratio = score_of(s, best) / score_of(s, s->best);
    if ((ratio > 1.5 && d->trials * 10 >= d->budget) || (ratio > 3 && d->trials >= 5))
        d->over = 1;
    if (d->trials >= d->budget)
        d->over = 1;
}

int next_code(search_t *s)
{
    uint32_t n = s->space->subspace_count;
    if (s->phase == 0) { /* sample */
        int64_t each = s->budget * 2 / 7 / n;
        for (uint32_t i = 0; i < n; i++)
            for (int64_t k = 0; k < (each > 0 ? each : 1); k++)
                propose(s, i, random_point(s, &s->space->subspaces[i], 0));
        s->phase = 1;
        return 1;
    }
    if (s->phase == 1) {
        int64_t each = s->budget * 5 / 7 / n;
        for (uint32_t i = 0; i < n; i++) {
            descent_t *d = &s->descents[i];
            d->subspace = i;
            d->best = best_of(s, i, 0);
            d->sign = 1;
            d->budget = (uint32_t)(each > 0 ? each : 1);
            d->over = d->best < 0;
        }
        s->phase = 2;
        s->turn = n; /* nobody's round is to be judged */
    } else if (s->turn < n) {
        judge_round(s, &s->descents[s->turn], s->round_from);
    }
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t turn = (s->turn + i) % n;
        descent_t *d = &s->descents[turn];
        if (d->over)
            continue;
        s->round_from = s->count;
        if (next_round(s, d)) {
            s->turn = turn;
            return 1;
        }
        d->over = 1;
    }
    return 0;
}
