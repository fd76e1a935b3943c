/*
 * counters missing: the events that --counters names and that the sidecar cannot count, as it wrote
 * them into the run folder when it started.
 */
#ifndef ATT_CLI_COUNTERS_MISSING_H
#define ATT_CLI_COUNTERS_MISSING_H

#include <stddef.h>

#define ATT_COUNTERS_MISSING 480

/* One line that names them with the reasons, "" when there is none. What "on" stands for is not
 * missed: machines differ. `events` is the option's value. Returns text. */
const char *att_counters_missing(const char *run_dir, const char *events,
                                 char text[ATT_COUNTERS_MISSING]);

#endif
