/*
 * report run: everything a run folder tells, as one JSON value: what `attune report --json` prints
 * and the page shows. What is not in the folder is null, and `missing` says what it was and how to
 * get it. docs/report.md lists the fields.
 */
#ifndef ATT_CLI_REPORT_RUN_H
#define ATT_CLI_REPORT_RUN_H

#include "cli/report_trials.h"
#include "cli/run_end.h"

#include <jansson.h>

#define ATT_REPORT_VERSION 1

typedef struct att_report_run {
    json_t *value;
    att_report_trials_t trials; /* for the curves; empty without trials.jsonl */
    char end[ATT_RUN_END_TEXT]; /* that the sidecar is gone without a closing report, else "" */
} att_report_run_t;

/* -ATT_ENOENT: no such folder, or nothing of a run in it; -ATT_EINPUT, -ATT_EVERSION: tasks.json
 * cannot be read. Damage to any other file is told in `missing`. */
int att_report_run_read(const char *folder, att_report_run_t *run, att_error_t *error);
void att_report_run_free(att_report_run_t *run);

#endif
