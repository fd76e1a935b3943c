/*
 * sim_report: what `attune sim` prints and writes: the table, JSON rows (format below) and CSV.
 *
 *     {"version":1, "tool", "units", "rows":[{"surface","held_out","strategy","seeds","noise",
 *      "calls_at_stop_median","gap_at_descent_stop","gap_final_geomean","gap_final_p99",
 *      "gap_final_worst","calls_to":{"10","5","2","1"},"regret", ...}], "comparisons":[...]}
 *
 * Gaps are fractions over the optimum; null: never. docs/sim.md explains every key.
 */
#ifndef ATT_CLI_SIM_REPORT_H
#define ATT_CLI_SIM_REPORT_H

#include "cli/sim_verdict.h"
#include "sim/row.h"

#include <jansson.h>
#include <stdio.h>

/* Gathers rows and duels; owns copies. */
typedef struct att_sim_report {
    json_t *rows, *comparisons;
    att_sim_verdict_t verdict; /* on the first strategy; printed when there are several surfaces */
    uint32_t failed;           /* rows in which a strategy failed */
    uint32_t plots_failed;     /* each costs its picture only */
    att_error_t plot_error;    /* of the first of them */
    FILE *csv, *trace;         /* NULL: not wanted */
} att_sim_report_t;

/* Makes the folders that are missing; an error when the file could not be written then. */
int att_sim_report_try(const char *path, att_error_t *error);
/* Each path may be NULL. A file that cannot be written is an error now, not after the runs. */
int att_sim_report_open(att_sim_report_t *report, const char *json_path, const char *csv_path,
                        const char *trace_path, att_error_t *error);
/* Print the heading of a surface, then one line a row. */
void att_sim_report_heading(const char *surface, const struct att_sim_task *task, int load,
                            const att_sim_contest_t *contest, double noise);
int att_sim_report_row(att_sim_report_t *report, const att_sim_row_t *row, att_error_t *error);
void att_sim_report_duels_heading(const char *against);
int att_sim_report_duel(att_sim_report_t *report, const char *surface, const att_sim_duel_t *duel,
                        att_error_t *error);
/* Print the verdict on `strategy`, write the JSON (path NULL: none) and close everything. */
int att_sim_report_close(att_sim_report_t *report, const char *strategy, const char *json_path,
                         att_error_t *error);
/* Close without a word. */
void att_sim_report_drop(att_sim_report_t *report);

#endif
