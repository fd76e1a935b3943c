/*
 * row: what is said about one strategy on one task: medians and quantiles over its runs. NAN and
 * INFINITY mean "never".
 */
#ifndef ATT_SIM_ROW_H
#define ATT_SIM_ROW_H

#include "sim/contest.h"
#include "sim/wilcoxon.h"

typedef struct att_sim_row {
    const char *surface, *strategy; /* borrowed */
    int held_out;
    uint32_t seeds;
    double noise;
    uint64_t descent_stop, budget;
    uint32_t failed; /* runs in which the strategy failed; the first reason: */
    char why[200];
    double calls_at_stop;       /* median */
    double calls_at_settled;    /* median */
    double gap_at_descent_stop; /* geometric mean of 1 + gap, minus 1 */
    double gap_final, gap_median, gap_p90, gap_p99, gap_worst; /* first: geometric mean */
    double calls_to[ATT_SIM_LEVELS];      /* median; INFINITY: most runs never */
    double calls_to_mean[ATT_SIM_LEVELS]; /* a run that never comes there counts the whole budget */
    double calls_to_stay[ATT_SIM_LEVELS]; /* median, and to the end */
    double share_to[ATT_SIM_LEVELS];      /* of the runs that come there */
    double regret;       /* time lost against the optimum within the budget, in optimal calls */
    double regret_share; /* the same over the budget */
    double slower_share; /* of the calls, with a setting slower than NCCL's choice */
    double trial_calls;  /* calls in lists, median */
    double trials;       /* median */
    double offline;      /* mean samples from elsewhere, charged */
    double kept_share;   /* of the runs that end on NCCL's choice */
    double ask_us;       /* wall time of a question, mean */
    double speedup, step_speedup; /* geometric means over NCCL's choice: of the collective, of the
                                     step (NAN without compute) */
} att_sim_row_t;

void att_sim_row_fill(const att_sim_contest_t *contest, uint32_t strategy,
                      const struct att_sim_task *task, int last_load, att_sim_row_t *row);

/* What two strategies are compared in, run by run. Smaller is better. */
typedef enum att_sim_measure {
    ATT_SIM_GAP_AT_STOP = 0,
    ATT_SIM_GAP_FINAL = 1,
    ATT_SIM_CALLS_TO_2 = 2,
    ATT_SIM_REGRET = 3,
    ATT_SIM_MEASURES = 4
} att_sim_measure_t;
const char *att_sim_measure_name(att_sim_measure_t measure);

typedef struct att_sim_duel {
    att_sim_measure_t measure;
    const char *a, *b;                            /* strategies */
    double median_a, median_b, median_difference; /* of a - b */
    att_wilcoxon_t test;
} att_sim_duel_t;

/* Pairs share seeds. -ATT_ENOMEM or 0. */
int att_sim_duel(const att_sim_contest_t *contest, uint32_t a, uint32_t b,
                 att_sim_measure_t measure, att_sim_duel_t *duel);

#endif
