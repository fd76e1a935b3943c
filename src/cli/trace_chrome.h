/*
 * trace chrome: writes a trace as Chrome JSON: one document, or parts by time window with an
 * overview when it would be larger than a viewer takes; and a document a rank.
 */
#ifndef ATT_CLI_TRACE_CHROME_H
#define ATT_CLI_TRACE_CHROME_H

#include "cli/trace_select.h"
#include "profile/chrome.h"

#include <stdio.h>

typedef struct att_trace_output {
    const char *run;      /* folder */
    const char *path;     /* merged document or, with parts, the overview; NULL: none */
    const char *per_rank; /* folder for one document a rank; NULL: none */
    const att_chrome_counted_t *counted; /* of the run's nodes */
    size_t counted_count;
    uint64_t part_bytes; /* most JSON in a document, before compression */
    FILE *said;          /* gets a line a file; NULL: nothing */
} att_trace_output_t;

int att_trace_chrome(const struct att_trace *trace, const att_trace_choice_t *choice,
                     const att_trace_output_t *output, att_error_t *error);

#endif
