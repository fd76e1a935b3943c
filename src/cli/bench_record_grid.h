/*
 * bench_record_grid: the settings that `attune record` measures: every combination of the lists,
 * as far as NCCL and the protocol can take it.
 */
#ifndef ATT_CLI_BENCH_RECORD_GRID_H
#define ATT_CLI_BENCH_RECORD_GRID_H

#include "cli/bench_record_options.h"
#include "cli/bench_sample.h"

/* NCCL's choice, then the grid of the legal pairs; the same on every driver. -ATT_ENOMEM,
 * -ATT_EILLEGAL when a list has no value that anything can take. The caller frees *settings. */
int att_record_grid(const att_record_options_t *options, const att_bench_job_t *job,
                    const att_shape_t *shape, uint32_t legal_pairs, att_setting_t **settings,
                    int *count, att_error_t *error);

#endif
