/*
 * search: what the variants of coordinate_descent share: knobs, the points asked and told so far,
 * and the state of a descent. Points are never measured twice.
 */
#ifndef COORDINATE_DESCENT_SEARCH_H
#define COORDINATE_DESCENT_SEARCH_H

#include "attune/strategy.h"

enum { VARIANT_LOG = 0, VARIANT_PAPER = 1, VARIANT_CODE = 2 };
enum { CHANNELS = 0, THREADS = 1, CHUNK = 2, KNOBS = 3 };

#define SUBSPACES 64

typedef struct point {
    att_setting_t setting;
    uint32_t subspace;
    double score; /* duration over NCCL's own, mean of all measurements; NAN while it is out for the
                     first time, INFINITY when it failed */
    int measured;
} point_t;

/* A descent: of one subspace each (code), or the only one at work (log, paper). */
typedef struct descent {
    uint32_t subspace;
    int best; /* index of its best point */
    int axis, sign;
    double step;
    int failures;
    int starts;
    int level, last_level, rounds, moved; /* log */
    int first;                            /* log: first point that belongs to it */
    uint32_t trials, budget;              /* code */
    int over;
} descent_t;

typedef struct search {
    const att_space_t *space;
    int variant;
    int64_t budget, restarts, screen, top_k;
    uint64_t random; /* state of the generator */
    point_t *points;
    int count, room;
    int asked;  /* points before this one were asked, the others wait */
    int again;  /* a known point to be measured again, -1 none */
    int trials; /* settings asked */
    int open;   /* asked, not told */
    int best;   /* index over all, -1 none */
    int phase;
    int round_from; /* first point of the latest round */
    descent_t descents[SUBSPACES];
    uint32_t turn;
} search_t;

/* Legal values min, min + step, ..., max; all 0 where the knob is kept. */
typedef struct range {
    uint32_t min, max, step;
} range_t;

range_t range_of(const att_subspace_t *subspace, int knob);
int is_free(const att_subspace_t *subspace, int knob);
int free_knobs(const att_subspace_t *subspace, int knobs[KNOBS]); /* returns how many */
uint32_t get(const att_setting_t *x, int knob);
void set(att_setting_t *x, int knob, uint32_t value);
uint32_t legal(range_t range, double value); /* the nearest legal value */

double draw(search_t *s);                            /* uniform in [0, 1) */
att_setting_t blank(const att_subspace_t *subspace); /* all knobs at their least, chunk kept */
att_setting_t random_point(search_t *s, const att_subspace_t *subspace, int in_log);
/* Add a setting to those that wait, unless it is known. Returns its index, -1 without memory. */
int propose(search_t *s, uint32_t subspace, att_setting_t x);
double score_of(const search_t *s, int i); /* INFINITY for -1 */
/* Best point of a subspace among those from `first` on, -1 none. */
int best_of(const search_t *s, uint32_t subspace, int first);

/* Called when everything asked was told: add points. 0: the search has ended. */
int next_log(search_t *s);
int next_paper(search_t *s);
int next_code(search_t *s);

#endif
