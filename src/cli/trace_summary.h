/* trace summary: what a trace holds, in a few lines or as JSON. */
#ifndef ATT_CLI_TRACE_SUMMARY_H
#define ATT_CLI_TRACE_SUMMARY_H

#include "profile/trace.h"

#include <stdio.h>

int att_trace_summary(const struct att_trace *trace, const char *run, bool json, FILE *out,
                      att_error_t *error);

#endif
