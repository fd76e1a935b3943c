/*
 * bench_sweep_report: what a sweep prints and writes. Only driver 0 uses it.
 */
#ifndef ATT_CLI_BENCH_SWEEP_REPORT_H
#define ATT_CLI_BENCH_SWEEP_REPORT_H

#include "cli/bench_candidate.h"
#include "cli/bench_job.h"

#include <jansson.h>

/* One row, finished. */
typedef struct att_sweep_row {
    const att_shape_t *shape;
    const att_candidates_t *grid;   /* sorted */
    const att_candidates_t *finals; /* sorted */
    int native_pair;                /* NCCL's own, -1 unknown */
    int batch;
    uint64_t wrong;
    bool checked;
} att_sweep_row_t;

void att_sweep_report_header(const att_bench_job_t *job);
/* Print the row and return it for the JSON file. */
json_t *att_sweep_report_row(const att_bench_job_t *job, const att_sweep_row_t *row);
/* The table of all rows, and the file of -J. Takes over `tasks`. */
int att_sweep_report_end(const att_bench_job_t *job, json_t *tasks, att_error_t *error);

#endif
