/*
 * trace open: the trace of a run folder, for a command: what of its files cannot be used is told in
 * one line, and the rest is shown.
 */
#ifndef ATT_CLI_TRACE_OPEN_H
#define ATT_CLI_TRACE_OPEN_H

#include "profile/trace.h"

/* As att_trace_open, with a warning in the log. */
int att_trace_open_told(const char *run, struct att_trace **trace, att_error_t *error);
/* One line, or "" when nothing is damaged: a torn end of a file that is being written is not.
 * Returns text. */
const char *att_trace_damage_text(const struct att_trace *trace, const char *run, char *text,
                                  size_t size);

#endif
