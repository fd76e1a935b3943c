/*
 * comparison: does a setting win against a reference by more than the noise? Fed with pairs of
 * blocks that ran next to each other, reference and challenger in alternating order, so that what
 * changes slowly (clocks, load, other jobs) falls out of each pair.
 *
 * The gain of a pair is ln(reference / challenger). The challenger wins when the lower bound of the
 * median gain is above 0 and the median gain is above ATT_COMPARISON_LEAST. The bound is the one of
 * statistics.h. The comparison is decided at 7, 14, 28, ... pairs, up to ATT_COMPARISON_LOOKS
 * times: what is plain costs seven pairs, and what is close beside much noise gets the pairs that
 * it takes. It is given up before when what is lost by that, on average over what the gain may be,
 * is less than the caller says more pairs are worth. Each look uses the level 5 % / looks
 * (Bonferroni): over all looks together a setting that is no better is kept in at most 5 % of all
 * comparisons.
 */
#ifndef ATT_SEARCH_COMPARISON_H
#define ATT_SEARCH_COMPARISON_H

#include <stdint.h>

#define ATT_COMPARISON_LOOKS  6
#define ATT_COMPARISON_LEVEL  (0.05 / ATT_COMPARISON_LOOKS)
#define ATT_COMPARISON_FIRST  7u /* pairs of the first look; each look takes twice as many */
#define ATT_COMPARISON_LISTS  48 /* lists of pairs before it is decided with what came back */
#define ATT_COMPARISON_ROOM   (ATT_COMPARISON_FIRST << (ATT_COMPARISON_LOOKS - 1))
#define ATT_COMPARISON_LEAST  0.005       /* relative gain below which a switch is not worth it */
#define ATT_COMPARISON_ERRORS (2 * 2.394) /* standard errors between the bounds, normal noise */

typedef enum att_verdict {
    ATT_VERDICT_OPEN = 0, /* more pairs needed */
    ATT_VERDICT_WIN = 1,
    ATT_VERDICT_NONE = 2,  /* no gain beyond the noise */
    ATT_VERDICT_BLIND = 3, /* too few pairs came back to tell */
    ATT_VERDICT_HARM = 4   /* wins, but what runs beside loses more than the noise (guard.h) */
} att_verdict_t;

typedef struct att_comparison {
    double gains[ATT_COMPARISON_ROOM]; /* log ratios */
    uint32_t count;
    uint32_t lists, looks;
    double median, lower, upper; /* relative gains as of att_comparison_bounds; -1 and infinity
                                    while there are too few pairs for a bound */
} att_comparison_t;

void att_comparison_add(att_comparison_t *comparison, double reference_us, double challenger_us);
void att_comparison_bounds(att_comparison_t *comparison);
/* Standard error of the median gain; infinite while there are too few pairs. */
double att_comparison_error(const att_comparison_t *comparison);
/* A list of pairs has ended. `worth`: the expected gain below which it is given up. */
att_verdict_t att_comparison_look(att_comparison_t *comparison, double worth);

#endif
