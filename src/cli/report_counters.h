/*
 * report counters: what RUN/counters/node-*.jsonl holds: for every source and event the total, the
 * rate and its course over the run. docs/counters.md has the format.
 */
#ifndef ATT_CLI_REPORT_COUNTERS_H
#define ATT_CLI_REPORT_COUNTERS_H

#include "base/status.h"

#include <jansson.h>

#define ATT_REPORT_SLICES 60u /* of the run, in which a course is given */

/* {nodes: [{node, host, budget, share, sources: [{name, scope, process, pid, read_us, reads, state,
 * reason, events: [{event, level, total, mean, most, course}]}], unavailable: [{name, reason}]}],
 * unreadable}. mean, most and course are rates a second between two reads, or the level. *files:
 * names of what was read. -ATT_ENOENT: no counters in the folder. */
int att_report_counters(const char *folder, json_t **counters, json_t *files, att_error_t *error);

#endif
