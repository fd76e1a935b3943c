/* counters list: what --counters can count on this machine, what a read costs, and what it cannot
 * count and why: `attune info --counters`. */
#ifndef ATT_CLI_COUNTERS_LIST_H
#define ATT_CLI_COUNTERS_LIST_H

#include <stdio.h>

/* "PAPI 7.0.0", or why there is none: one line without its end. */
const char *att_counters_papi_text(char *text, size_t size);
/* Try each of `events` (as --counters takes them) and print. 0, or the att_status_t of the error,
 * whose line was said. */
int att_counters_list(const char *events, FILE *out);

#endif
