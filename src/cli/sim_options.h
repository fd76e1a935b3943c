/*
 * sim_options: the flags of `attune sim`, in one table that gives parsing and --help.
 */
#ifndef ATT_CLI_SIM_OPTIONS_H
#define ATT_CLI_SIM_OPTIONS_H

#include "base/status.h"
#include "sim/contest.h"

#include <stdio.h>

#define ATT_SIM_SURFACES 64

typedef struct att_sim_options {
    enum { ATT_SIM_MODE_SURFACES, ATT_SIM_MODE_SUITE, ATT_SIM_MODE_PAPER } mode;
    const char *suite_file; /* NULL: the shipped one */
    uint32_t surface_count;
    const char *surfaces[ATT_SIM_SURFACES]; /* borrowed from argv */
    int collective;                         /* -1: the surface's first */
    uint64_t bytes;                         /* 0: the surface's first */
    const char *load;                       /* word or schedule; NULL: the surface's first load */
    double drift;
    double noise; /* < 0: the surface's own */
    uint32_t strategy_count;
    const char *strategies[ATT_SIM_STRATEGIES];
    const char *against; /* strategy that the others are compared with; NULL: the first */
    uint32_t seeds;
    uint64_t first_seed;
    uint64_t budget; /* 0: three times the descent stop */
    int samples, discard;
    double max_slowdown;
    uint32_t lead;
    int six_knobs;
    att_sim_objective_t objective;
    att_sim_step_t step;
    const char *plugin_path;
    uint32_t workers;
    double limit_s;
    const char *json, *csv, *plots, *trace; /* NULL: not wanted */
    int quiet;
} att_sim_options_t;

/* 0; 1 after --help; -ATT_EUSAGE with one line. */
int att_sim_options_parse(int argc, char **argv, att_sim_options_t *options, att_error_t *error);
void att_sim_options_help(FILE *out);

#endif
