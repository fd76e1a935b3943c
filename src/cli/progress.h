/*
 * progress: one line on the terminal while the job runs, from <run>/tasks.json.
 */
#ifndef ATT_CLI_PROGRESS_H
#define ATT_CLI_PROGRESS_H

#include "cli/tasks_file.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct att_progress {
    bool on; /* standard error is a terminal */
    const char *tasks_file;
    uint64_t started_ns, next_ns;
    int width; /* of the line that is shown */
} att_progress_t;

void att_progress_init(att_progress_t *progress, const char *tasks_file, bool quiet);
/* Show the line anew, about once a second. */
void att_progress_update(att_progress_t *progress);
/* Wipe the line, so that something else can be printed. */
void att_progress_clear(att_progress_t *progress);

/* "12 s: 3 tasks, 1 settled; allgather 80M search, 23 trials, 1.21x; lost 0.31 %"; returns text. */
const char *att_progress_text(const att_tasks_t *tasks, double seconds, char *text, size_t size);

#endif
