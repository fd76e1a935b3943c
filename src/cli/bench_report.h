/*
 * bench_report: the table in nccl-tests' columns, the JSON file, and the file for `attune run`.
 * Only driver 0 uses it.
 */
#ifndef ATT_CLI_BENCH_REPORT_H
#define ATT_CLI_BENCH_REPORT_H

#include "cli/bench_measure.h"

#include <jansson.h>

typedef struct att_bench_report {
    const att_bench_job_t *job;
    json_t *results;  /* rows of the JSON file */
    json_t *last;     /* the newest result of each row, for `attune run` */
    uint64_t failed;  /* sides with wrong elements: "Out of bounds values" */
    uint64_t wrong;   /* wrong elements */
    double busbw_sum; /* over the sides printed */
    uint64_t busbw_count;
    json_t *gemm; /* compute done beside, or NULL */
} att_bench_report_t;

void att_bench_report_init(att_bench_report_t *report, const att_bench_job_t *job);
void att_bench_report_free(att_bench_report_t *report);
void att_bench_report_columns(const att_shape_t *shape);
/* Print a row and keep it. */
void att_bench_report_row(att_bench_report_t *report, int row, int round,
                          const att_bench_side_t sides[2]);
/* Count a row that is not printed. */
void att_bench_report_count(att_bench_report_t *report, const att_bench_side_t sides[2]);
void att_bench_report_gemm(att_bench_report_t *report, uint64_t products, double seconds);
void att_bench_report_footer(const att_bench_report_t *report);
/* The file of -J, and <ATTUNE_RUN_DIR>/bench-<pid>.json where that variable is set. */
int att_bench_report_write(const att_bench_report_t *report, att_error_t *error);

/* What the results were measured on: version, NCCL, device, ranks, clock, arguments, date. */
json_t *att_bench_provenance(const att_bench_job_t *job);

#endif
