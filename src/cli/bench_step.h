/*
 * bench step: what comes before a timed call: the mark of an iteration for traces, and the delay of
 * one rank that --delay asks for, to try tools that look for late ranks.
 */
#ifndef ATT_CLI_BENCH_STEP_H
#define ATT_CLI_BENCH_STEP_H

#include "base/status.h"

#include <stdint.h>

struct att_bench_driver;

/* --delay RANK:MS[:FROM[:COUNT]]. Zeroed: nobody is delayed. */
typedef struct att_bench_delay {
    int wanted;
    int rank;
    double ms;
    uint64_t from, count; /* timed calls, counted from 0 over the whole run; count 0: to the end */
} att_bench_delay_t;

int att_bench_delay_parse(const char *text, att_bench_delay_t *delay, att_error_t *error);

/* On the modelled fabric time passes on the rank's clock; elsewhere its thread sleeps. */
void att_bench_step(struct att_bench_driver *driver);

#endif
