/*
 * job: the command that `attune run` runs, with signals passed on to it.
 */
#ifndef ATT_CLI_JOB_H
#define ATT_CLI_JOB_H

#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct att_job {
    pid_t pid;       /* 0 when it is not running */
    int exit_status; /* as shells give it: its own, 128+n after signal n, 126, 127; -1 while it
                        runs */
} att_job_t;

/* Signals that are passed on; SIGCHLD is in neither. */
void att_job_signals(sigset_t *set);

/* Whether argv[0] is there (searched in PATH) and may be executed, before anything is made for it;
 * fails as att_job_start would. */
int att_job_check(att_job_t *job, char **argv, att_error_t *error);
/* Start argv[0] (searched in PATH) with signal mask `mask`. When it cannot be run: exit_status is
 * 126 or 127 and the result -ATT_ENOENT or -ATT_EPERMISSION with the text. */
int att_job_start(att_job_t *job, char **argv, const sigset_t *mask, att_error_t *error);
/* Pass on what `info` tells, unless the terminal has sent it to the job as well. */
void att_job_forward(const att_job_t *job, const siginfo_t *info);
/* True while it runs; fills exit_status when it has ended. */
bool att_job_running(att_job_t *job);

#endif
