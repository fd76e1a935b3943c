/*
 * run end: whether the sidecar of a run folder has left its closing report (state "finished"),
 * still reports, or is gone without. Known from the manifest, where `attune run` says how its
 * sidecar ended, else from the age of tasks.json, which a running sidecar writes once a second, of
 * thousands of tasks every few.
 */
#ifndef ATT_CLI_RUN_END_H
#define ATT_CLI_RUN_END_H

#include "cli/tasks_file.h"

#define ATT_RUN_QUIET_S      5.0  /* a running sidecar reports every second, ... */
#define ATT_RUN_QUIET_TASK_S 5e-4 /* ... with thousands of tasks less often */
#define ATT_RUN_END_TEXT     200

typedef struct att_run_end {
    char sidecar[64];    /* how it ended, "killed by signal 9 (Killed)"; "" not known to have */
    double report_age_s; /* of tasks.json, 0 when there is none */
} att_run_end_t;

/* To be called before tasks.json is read: then what is read is newer than what was looked at, and
 * a sidecar that ends in between is not taken for one that is gone. */
void att_run_end_look(const char *folder, att_run_end_t *end);

/* It has not reported for longer than a running one of so many tasks takes. */
bool att_run_is_quiet(const att_run_end_t *end, const att_tasks_t *tasks);
/* One line for who reads the numbers of a run whose sidecar is gone; "" when it has finished or is
 * under way. Returns text. */
const char *att_run_end_text(const att_run_end_t *end, const att_tasks_t *tasks,
                             char text[ATT_RUN_END_TEXT]);
/* A sidecar still reports into the folder: its files may be growing. */
bool att_run_under_way(const char *folder);

#endif
