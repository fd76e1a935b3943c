/*
 * counted: what the counters of a run say (RUN/counters/node-*.jsonl, docs/counters.md), as rates
 * between two reads: one series for each node and event, summed over the processes of the node.
 */
#ifndef ATT_CLI_COUNTED_H
#define ATT_CLI_COUNTED_H

#include "base/status.h"
#include "profile/chrome.h"

#include <stddef.h>
#include <stdint.h>

#define ATT_COUNTED_NAME  160
#define ATT_COUNTED_NAMES 512 /* of a run; further ones are left out */

typedef struct att_counted_point {
    int64_t at_ns; /* the read that ends the interval, CLOCK_MONOTONIC of the node */
    uint32_t node; /* number of the agent */
    uint32_t name;
    double value; /* a second, or a level */
} att_counted_point_t;

typedef struct att_counted {
    char (*names)[ATT_COUNTED_NAME]; /* "process context-switches (1/s)", "node ...:power" */
    uint32_t name_count;
    att_counted_point_t *points; /* by file, then time */
    size_t count;
} att_counted_t;

/* Add what one file says; lines that are not understood are passed over. -ATT_ENOMEM. */
int att_counted_parse(const char *bytes, size_t length, att_counted_t *into);
/* All files of a run; a run without counters has no points. -ATT_ESYSTEM with the file. */
int att_counted_read(const char *run, att_counted_t *counted, att_error_t *error);
/* Its points on the trace's clock, in the caller's *list (to free; names stay the counted's); those
 * of nodes whose clock is not tied to the others', and all when the trace is on a virtual clock,
 * are left out. -ATT_ENOMEM. */
int att_counted_on_trace(const att_counted_t *counted, const struct att_trace *trace,
                         att_chrome_counted_t **list, size_t *count);
void att_counted_free(att_counted_t *counted); /* NULL is fine */

#endif
