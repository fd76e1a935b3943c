/*
 * sidecar: one `attuned` process beside the command. It runs in a session of its own, so that
 * Ctrl-C reaches the job and not it, and it is told to end when attune itself dies.
 */
#ifndef ATT_CLI_SIDECAR_H
#define ATT_CLI_SIDECAR_H

#include "base/config.h"
#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct att_sidecar {
    pid_t pid;     /* 0 when it is not running */
    int ready_fd;  /* -1 after att_sidecar_wait_ready */
    char end[96];  /* how it ended; "" while it runs */
} att_sidecar_t;

/* Start `program` with every option of ATT_FOR_AGENT as a flag and --ready-fd; its output goes to
 * `log_file`. `mask` is the signal mask that it gets. */
int att_sidecar_start(att_sidecar_t *sidecar, const char *program, const att_config_t *config,
                      const char *log_file, const sigset_t *mask, att_error_t *error);
/* Wait until it says that it is ready, at most `limit_ms`, or until a signal of `wake` is pending
 * (-ATT_EBUSY, no text). The text of an error is the sidecar's own line, or how it ended. */
int att_sidecar_wait_ready(att_sidecar_t *sidecar, const sigset_t *wake, int limit_ms,
                           att_error_t *error);
/* True while it runs; when it has ended, fills `end`. */
bool att_sidecar_running(att_sidecar_t *sidecar);
/* SIGTERM, and SIGKILL after `limit_ms`. Fills `end`. */
void att_sidecar_stop(att_sidecar_t *sidecar, int limit_ms);

#endif
