/*
 * bench_sample: one sample of one setting, as `attune bench --sweep` and `attune record` take it.
 * All drivers of the run call each of these together.
 *
 * A sample: all drivers meet, each enqueues `batch` calls, and the time from the first to the end
 * of the last, divided by `batch`, is taken on each rank: between two CUDA events on its stream, or
 * by the fabric's clock. It is the smallest of these over the ranks (waiting for late peers does
 * not count), or the largest for Broadcast and Reduce, where a rank does not need every other.
 */
#ifndef ATT_CLI_BENCH_SAMPLE_H
#define ATT_CLI_BENCH_SAMPLE_H

#include "cli/bench_driver.h"

#include "attune/setting.h"

/* What NCCL's tuner table says of a row. */
typedef struct att_bench_look {
    uint32_t legal_pairs;          /* ATT_PAIR_BIT, on every rank */
    int native_pair;               /* the cheapest, -1 unknown */
    float cost_us[ATT_PAIR_COUNT]; /* NCCL's estimates, negative: not available */
} att_bench_look_t;

/* Make one call with NCCL's choice and note the table; the result is compared and counted in
 * *wrong. Leaves NCCL's choice in force. */
int att_bench_look(att_bench_driver_t *driver, const att_shape_t *shape, att_bench_look_t *look,
                   uint64_t *wrong, att_error_t *error);
/* The first use of an algorithm connects it, which takes long: once for each pair, untimed. */
int att_bench_warm_pairs(att_bench_driver_t *driver, const att_shape_t *shape, uint32_t pairs,
                         att_error_t *error);
/* Put `setting` in force, `discard` calls, one sample. *refused is set when NCCL did not take it;
 * it may be NULL. */
int att_bench_sample_setting(att_bench_driver_t *driver, const att_shape_t *shape,
                             att_setting_t setting, int discard, int batch, double *us,
                             bool *refused, att_error_t *error);
/* One compared call with `setting`; wrong elements are added to *wrong. Nothing without -c. */
int att_bench_check_setting(att_bench_driver_t *driver, const att_shape_t *shape,
                            att_setting_t setting, uint64_t *wrong, att_error_t *error);
/* Calls a sample: --batch, or by size. */
int att_bench_default_batch(const att_bench_job_t *job, const att_shape_t *shape);
/* --max-channels, or NCCL_MAX_CTAS, or 32. */
int att_bench_most_channels(const att_bench_job_t *job);

#endif
