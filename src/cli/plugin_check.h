/*
 * plugin check: the conformance test that the author of a strategy runs: attune plugins check FILE.
 *
 * The strategy runs as in a job, in a process of its own under a deadline, on made-up spaces with
 * made-up durations: what it asks must be legal, the same under the same seed, and go on when
 * trials fail. A crash or a hang is a finding with its reason, never the end of the test.
 */
#ifndef ATT_CLI_PLUGIN_CHECK_H
#define ATT_CLI_PLUGIN_CHECK_H

#include "base/status.h"

typedef struct att_plugin_check {
    const char *file;    /* .../libattune-strategy-<name>.so */
    const char *options; /* "key=value,..." or "" */
    double deadline_s;   /* of one answer */
    int as_json;
} att_plugin_check_t;

/* Prints a line a finding. Returns the number of failures, or -ATT_E... when nothing could be
 * tested. */
int att_plugin_check_run(const att_plugin_check_t *check, att_error_t *error);

#endif
