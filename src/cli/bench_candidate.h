/*
 * bench_candidate: a setting of a sweep with its samples, and the list of those that a row is swept
 * over. The list is built from facts that all drivers share, so that it is the same on each.
 */
#ifndef ATT_CLI_BENCH_CANDIDATE_H
#define ATT_CLI_BENCH_CANDIDATE_H

#include "cli/bench_shape.h"

#include "attune/setting.h"

#include <stdbool.h>
#include <stdint.h>

/* A setting is not sampled when its first calls take longer than this times NCCL's choice: the
 * shorter of two calls, as one may be held up, against the median of some of NCCL's, as one may be
 * lucky. */
#define ATT_SLOW_FIRST   3.0
#define ATT_NATIVE_CALLS 5

typedef struct att_candidate {
    att_setting_t setting;
    bool native;     /* NCCL's choice */
    bool also;       /* given by --also */
    bool refused;    /* NCCL does not have the pair */
    bool slow;       /* not sampled any more */
    double first_us; /* the shorter of its first calls, untimed otherwise */
    double *samples; /* microseconds */
    uint32_t sample_count;
    double median_us, least_us, most_us; /* of the samples */
} att_candidate_t;

typedef struct att_candidates {
    att_candidate_t *items;
    int count, capacity;
    uint32_t sample_capacity; /* of each */
} att_candidates_t;

/* An empty list whose items can take `samples` samples each. */
void att_candidates_init(att_candidates_t *list, uint32_t samples);
void att_candidates_free(att_candidates_t *list);
/* Add a setting unless it is there; the item, or NULL without memory. */
att_candidate_t *att_candidates_add(att_candidates_t *list, att_setting_t setting);
/* NCCL's choice and the grid. */
int att_candidates_grid(att_candidates_t *list, const att_shape_t *shape, uint32_t legal_pairs,
                        int max_channels);
/* Add a sample and keep the median. */
void att_candidate_sample(att_candidate_t *candidate, uint32_t capacity, double us);
/* Settings, NCCL's choice (the first) never, are not sampled any more when all that was seen of
 * them, the first call too, took more than 1.5 times all that was seen of another: no single lucky
 * sample puts out the others. */
void att_candidates_drop_slow(att_candidates_t *list);
/* By median; then those without samples, by their first call; refused ones last. */
void att_candidates_sort(att_candidates_t *list);
/* The numbers 0 .. count - 1 in an order that depends on the seed only. */
void att_candidates_shuffle(int *order, int count, uint64_t seed);

#endif
