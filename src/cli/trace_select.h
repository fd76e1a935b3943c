/*
 * trace select: --window, --ranks and --groups of the commands that read a trace.
 */
#ifndef ATT_CLI_TRACE_SELECT_H
#define ATT_CLI_TRACE_SELECT_H

#include "profile/window.h"

typedef struct att_trace_wish {
    const char
        *window;       /* "FROM:TO" in seconds since the trace began; either side may be left out */
    const char *ranks; /* "0,3,8-15": ranks of the job */
    const char *groups; /* "0xHASH,...": beginnings of communicators' hashes */
} att_trace_wish_t;

typedef struct att_trace_choice {
    att_trace_select_t select;
    bool *members;     /* what select points to, or NULL */
    int64_t origin_ns; /* the trace's time 0: its first record, whatever is selected */
} att_trace_choice_t;

/* -ATT_EUSAGE names the option and what the trace has. */
int att_trace_choose(const struct att_trace *trace, const att_trace_wish_t *wish,
                     att_trace_choice_t *choice, att_error_t *error);
void att_trace_choice_free(att_trace_choice_t *choice);

#endif
