/*
 * bench_options: the command line of `attune bench`.
 */
#ifndef ATT_CLI_BENCH_OPTIONS_H
#define ATT_CLI_BENCH_OPTIONS_H

#include "attune/setting.h"
#include "base/status.h"
#include "cli/bench_device.h"
#include "cli/bench_step.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ATT_BENCH_MAX_SIZES 1024

/* Which calls are made: out-of-place, in-place, or both in turn. Bits. */
typedef enum att_bench_place {
    ATT_BENCH_OUT_OF_PLACE = 1,
    ATT_BENCH_IN_PLACE = 2,
    ATT_BENCH_BOTH_PLACES = 3
} att_bench_place_t;

typedef struct att_bench_options {
    /* what is run */
    int collectives[ATT_COLLECTIVE_COUNT]; /* att_collective_t */
    int collective_count;
    uint64_t sizes[ATT_BENCH_MAX_SIZES]; /* bytes, as nccl-tests counts them */
    int size_count;
    uint64_t min_bytes, max_bytes, step_bytes, step_factor; /* as given; for the header */
    int type;                                               /* att_nccl_type_t */
    int op;                                                 /* att_nccl_op_t */
    int root;
    att_bench_place_t place;
    /* how often */
    int iterations;
    int warmup;
    int rounds;
    double seconds; /* repeat for this long; 0: rounds decide */
    int check;      /* 0 none, 1 first and last iteration, n: n - 1 further single calls */
    bool sync_every;
    /* by whom */
    int processes, threads, ranks_per_thread;
    bool bind; /* processes to processors */
    /* beside */
    bool gemm;
    bool gemm_type_given;
    att_gemm_shape_t gemm_shape;
    double compute_us;
    att_bench_delay_t delay;
    /* settings */
    bool has_setting;
    att_setting_t setting;
    bool sweep;
    const char *also; /* summary.json or tasks.json of a run, or its folder */
    int max_channels;
    int grid_repeats, repeats, keep;
    int batch; /* calls a sample; 0: by size */
    uint64_t seed;
    /* output */
    const char *json;
    double watch_s; /* 0: off */
    /* attune record: what is recorded; NULL in attune bench */
    const struct att_record_options *record;
} att_bench_options_t;

/* Is the i-th of a row of calls in place? */
bool att_bench_options_in_place(const att_bench_options_t *options, int i);
int att_bench_options_ranks(const att_bench_options_t *options);

/* 0; or -ATT_EUSAGE with one line; empty text: help was asked for. Strings point into argv. others:
 * options that the caller has taken out of argv ("--out", ends with NULL), which one that is not
 * known may have been meant to be; NULL is fine. */
int att_bench_options_parse(att_bench_options_t *options, int argc, char **argv,
                            const char *const *others, att_error_t *error);
void att_bench_options_help(FILE *out);

#endif
