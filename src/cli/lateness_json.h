/* lateness JSON: what `attune stragglers --json` prints and a report shows. */
#ifndef ATT_CLI_LATENESS_JSON_H
#define ATT_CLI_LATENESS_JSON_H

#include "cli/lateness.h"

#include <jansson.h>

/* NULL: no memory. `run` is the folder's name; times count from origin_ns. */
json_t *att_lateness_json(const struct att_trace *trace, const char *run,
                          const att_lateness_t *lateness, int64_t origin_ns);

#endif
