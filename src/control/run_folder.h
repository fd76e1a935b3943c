/*
 * run folder: what the sidecar writes: tasks.json (replaced atomically by the writer, about once a
 * second), trials.jsonl (a line a trial), lists.jsonl (a line a proposed list, written before its
 * COMMIT).
 */
#ifndef ATT_CONTROL_RUN_FOLDER_H
#define ATT_CONTROL_RUN_FOLDER_H

#include "base/fence.h"
#include "control/node.h"
#include "control/identity.h"
#include "control/task.h"
#include "control/writer.h"
#include "search/optimizer.h"

#include <jansson.h>

struct att_run_folder;

/* Create the folder if needed. -ATT_ESYSTEM with the path when it cannot be written. The writer
 * must have ended when the folder is closed, or be flushed. */
int att_run_folder_open(const char *path, struct att_writer *writer, struct att_run_folder **folder,
                        att_error_t *error);
void att_run_folder_close(struct att_run_folder *folder); /* NULL is fine */

/* counted: what counters say of it (control/counting.h), NULL = nothing. */
void att_run_folder_trial(struct att_run_folder *folder, const att_task_report_t *task,
                          const att_trial_t *trial, json_t *counted);
/* A list that is about to be voted on, and that it has played out: what has no second line was in
 * force when the run ended (control/quarantine.h). `index` is the task's. */
void att_run_folder_list(struct att_run_folder *folder, uint32_t index, const att_identity_t *task,
                         const att_schedule_t *schedule);
void att_run_folder_list_over(struct att_run_folder *folder, uint32_t index, uint32_t txn);

typedef struct att_run_totals {
    const char *state; /* "running", "finished" */
    const char *device;
    uint32_t nccl_version;
    double cpu_share; /* of one core, since start */
    uint64_t records, polls;
    double lost_us, timing_us, run_us;
    att_coverage_t coverage;
} att_run_totals_t;
/* Have tasks.json written: made and written by the writer, of copies of these. Making it may take
 * at most 9 % of a core: with thousands of tasks it is made less often. `last`: now. -ATT_ENOMEM.
 */
int att_run_folder_tasks(struct att_run_folder *folder, const att_run_totals_t *totals,
                         const att_task_report_t *tasks, uint32_t count, int last);

#endif
