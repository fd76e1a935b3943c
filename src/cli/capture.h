/*
 * capture: run a program and keep what it prints.
 */
#ifndef ATT_CLI_CAPTURE_H
#define ATT_CLI_CAPTURE_H

#include "base/status.h"

#include <stddef.h>

typedef struct att_capture {
    char text[32768]; /* standard output and standard error, cut there; always ends with NUL */
    size_t length;
    int exit_status; /* 128 + n when signal n ended it */
} att_capture_t;

/* Run argv (argv[0] looked up in PATH) without standard input, at most limit_ms. -ATT_ENOENT: not
 * found; -ATT_ETIMEOUT: killed at the limit; -ATT_ESYSTEM. */
int att_capture_run(att_capture_t *capture, char *const argv[], int limit_ms, att_error_t *error);

#endif
