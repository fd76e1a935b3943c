/*
 * bench_sweep: `attune bench --sweep`: the yardstick that tuned settings are held against.
 *
 * For each row (out-of-place) it measures NCCL's choice and a grid of settings (algorithm,
 * protocol, channels, chunk), drops the slow ones early, and measures the best of the grid, NCCL's
 * choice and the settings of --also again, interleaved in random order.
 *
 * One sample: all drivers meet, each enqueues `batch` calls, and the time from the first to the end
 * of the last, divided by `batch`, is taken on each rank: between two CUDA events on its stream, or
 * by the fabric's clock. The sample is the smallest of these over the ranks (waiting for late peers
 * does not count), or the largest for Broadcast and Reduce, where a rank does not need every other.
 */
#ifndef ATT_CLI_BENCH_SWEEP_H
#define ATT_CLI_BENCH_SWEEP_H

#include "cli/bench_driver.h"

/* All drivers call it. *passed is false when results were wrong (on driver 0; true elsewhere). */
int att_bench_sweep_run(att_bench_driver_t *driver, bool *passed, att_error_t *error);

#endif
