/*
 * straggler: who arrives late at collectives, since when, and what it costs the others.
 *
 * A step is one collective with all of its ranks matched, on the common clock. Arrival is the start
 * of a rank's kernel. Lateness of a rank in a step is its arrival minus the lower median of all
 * arrivals: one late rank does not move the median (durations would hide it: everybody waits).
 *
 * A rank is named in a step when it arrived last and its lateness is
 *   - more than 3 times the uncertainty of the clocks between the ranks of the step, and
 *   - above the rank's own calm steps: twice the 95th percentile of its lateness there, and
 *   - at least 5 % of the median time from step to step (less does not matter), and
 *   - not alone: 4 of 5 steps in a row, so that a single hiccup names nobody.
 * Calm steps are the windows of 16 steps in which the rank was least late (by the third largest of
 * each), and those like them. A rank that is late in all of its windows has no calm ones: the other
 * ranks' stand in for them when its lateness is at least 20 % of the time from step to step
 * ("constant").
 */
#ifndef ATT_PROFILE_STRAGGLER_H
#define ATT_PROFILE_STRAGGLER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct att_straggler_step {
    int64_t at_ns; /* last arrival */
    uint64_t call;
    uint32_t task;
    uint32_t uncertainty_ns; /* of the difference of two ranks' times; 0 on one clock */
    uint32_t last;           /* rank that arrived last */
    bool named;
} att_straggler_step_t;

/* A stretch of steps in which a rank was late. */
typedef struct att_straggler_episode {
    uint32_t rank;
    uint32_t from, to;  /* steps, inclusive */
    uint32_t named;     /* of them */
    double lateness_ns; /* median over the named steps */
    double wait_ns;     /* that the others spent on it: until the last but one arrived, each */
    bool constant;
} att_straggler_episode_t;

typedef struct att_straggler_rank {
    uint64_t first, last; /* steps in which it arrived first, last */
    uint64_t named;
    double wait_caused_ns;     /* over steps in which it was last, sum over the others */
    double waited_ns;          /* its own, until the last one arrived */
    double median_ns, high_ns; /* lateness: median and 95th percentile */
    double calm_ns;            /* limit above which it is late, from its calm steps */
    bool constant;
} att_straggler_rank_t;

struct att_straggler; /* one communicator */

/* -ATT_ENOMEM. */
int att_straggler_create(uint32_t ranks, struct att_straggler **straggler);
void att_straggler_destroy(struct att_straggler *straggler); /* NULL is fine */
/* One step; arrivals_ns by rank. In order of time. 4 bytes a rank are kept. */
int att_straggler_add(struct att_straggler *straggler, const att_straggler_step_t *step,
                      const int64_t *arrivals_ns);
/* After the last step. */
int att_straggler_finish(struct att_straggler *straggler);

uint32_t att_straggler_ranks(const struct att_straggler *straggler);
const att_straggler_step_t *att_straggler_steps(const struct att_straggler *straggler,
                                                uint32_t *count);
/* Lateness of every rank in a step, nanoseconds. */
const float *att_straggler_lateness(const struct att_straggler *straggler, uint32_t step);
const att_straggler_rank_t *att_straggler_rank(const struct att_straggler *straggler,
                                               uint32_t rank);
/* By rank, then time. */
const att_straggler_episode_t *att_straggler_episodes(const struct att_straggler *straggler,
                                                      uint32_t *count);
/* Median time from step to step. */
double att_straggler_period_ns(const struct att_straggler *straggler);

#endif
