/*
 * summary: the outcome of a run: `summary.json` for programs, a table for people.
 */
#ifndef ATT_CLI_SUMMARY_H
#define ATT_CLI_SUMMARY_H

#include "cli/findings.h"
#include "cli/tasks_file.h"

#include <stdio.h>

#define ATT_SUMMARY_VERSION 1

/* One run as it is shown. Nothing is owned. */
typedef struct att_summary {
    const char *name;
    const char *fabric;  /* "gpu", "real", "model" */
    const char *surface; /* NULL without one */
    const char *load;    /* "none", "light", "heavy" */
    int ranks;           /* 0 unknown */
    const char *cut_off; /* how the sidecar ended when it left no closing report, else NULL */
    const att_findings_t *findings;
    const att_tasks_t *tasks;
} att_summary_t;

/* Fill the fields from what the run left; `asked_fabric` ("none" = a GPU's NCCL), `asked_surface`
 * and `asked_load` hold where no fabric file says otherwise; `sidecar_end` is how the sidecar
 * ended. */
void att_summary_init(att_summary_t *summary, const char *name, const char *asked_fabric,
                      const char *asked_surface, const char *asked_load, const char *sidecar_end,
                      const att_findings_t *findings, const att_tasks_t *tasks);

/* {"version":1,"runs":[...]}; what was not measured or not checked is null. */
int att_summary_write(const att_summary_t *summary, const char *path, att_error_t *error);

/* One line a task, then what the search cost, coverage, waits and the checks. */
void att_summary_print(const att_summary_t *summary, FILE *out);

#endif
