/*
 * bench_convert: turns the JSON file of `attune bench --sweep` into recorded surfaces, one a task.
 *
 * What a sweep keeps of its grid is the median and the number of samples; raw samples are there of
 * its second, interleaved measurement and become "again". What the sweep dropped after a first call
 * above 3 times NCCL's choice becomes "at least" that.
 */
#ifndef ATT_CLI_BENCH_CONVERT_H
#define ATT_CLI_BENCH_CONVERT_H

#include "cli/bench_record_options.h"

/* Prints one line a surface. */
int att_bench_convert(const att_record_options_t *options, att_error_t *error);

#endif
