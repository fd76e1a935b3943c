/* report tasks: the tasks of a report, what they come to, and how each search went on. */
#ifndef ATT_CLI_REPORT_TASKS_H
#define ATT_CLI_REPORT_TASKS_H

#include "cli/report_trials.h"
#include "cli/tasks_file.h"

/* A list; `raw` is the file's own, for what tasks_file.h does not hold. In the file's order. */
json_t *att_report_tasks(const att_tasks_t *tasks, const json_t *raw);

/* Counts, the geometric mean and the extremes of speedups. */
json_t *att_report_summary(const json_t *tasks);

/* Gives each task its `curve`: [[trial, speedup], ...] of every trial that was the best so far of
 * its search; drift begins a new one. */
void att_report_curves(json_t *tasks, const att_report_trials_t *trials);

#endif
