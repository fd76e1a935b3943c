/*
 * tuner CSV: a run's settings for the example tuner that NCCL ships (plugins/tuner/example), so
 * that a user keeps the result with stock NCCL: NCCL_TUNER_CONFIG_FILE=<run>/tuner.csv.
 *
 * That plugin takes the first line that matches and sets one channel where none does, or where the
 * line says -1 (NCCL 2.30.7 plugin.c). So every size of every collective has a line and every line
 * a channel count; 0 is the tuner ABI's "NCCL's own count". Chunk, threads and transport cannot be
 * written there; they stand as comments.
 */
#ifndef ATT_CLI_TUNER_CSV_H
#define ATT_CLI_TUNER_CSV_H

#include "cli/tasks_file.h"

/* Write the file (replaced atomically). `name` is the run's; `when` its start as text. */
int att_tuner_csv_write(const att_tasks_t *tasks, const char *name, const char *when,
                        const char *path, att_error_t *error);

#endif
