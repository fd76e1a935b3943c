/*
 * bench_processes: starts the processes of --procs and waits for them. Each runs this program again
 * with the same command line (no fork without exec: libraries that were loaded by a preload must
 * not be carried over), and finds the world by the descriptor in ATTUNE_BENCH_PROCESS.
 */
#ifndef ATT_CLI_BENCH_PROCESSES_H
#define ATT_CLI_BENCH_PROCESSES_H

#include "cli/bench_setting.h"
#include "cli/bench_world.h"

#include <stdbool.h>

/* Run `count` processes to their end. *status is 0, or the exit status of the first that failed. A
 * process that dies marks the world; those that do not follow within seconds are killed. */
int att_bench_processes_run(int count, struct att_world *world, struct att_bench_setting *setting,
                            int *status, att_error_t *error);

/* In such a process: its number and the descriptors (setting -1: none). False elsewhere. */
bool att_bench_process_self(int *process, int *world, int *setting);

/* This process, one of `processes`, on its share of the processors that it may use. */
int att_bench_process_bind(int process, int processes, att_error_t *error);

#endif
