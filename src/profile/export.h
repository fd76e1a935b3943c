/*
 * export: the calls of a trace as lines: CSV, JSON lines, or NCCL Inspector's JSON lines (format
 * v4.0). One line a call and rank, in order of start.
 */
#ifndef ATT_PROFILE_EXPORT_H
#define ATT_PROFILE_EXPORT_H

#include "profile/out.h"
#include "profile/window.h"

typedef enum att_export_format {
    ATT_EXPORT_CSV = 0,
    ATT_EXPORT_JSON_LINES = 1,
    ATT_EXPORT_INSPECTOR = 2
} att_export_format_t;

typedef struct att_export {
    const struct att_trace *trace;
    att_export_format_t format;
    int64_t origin_ns; /* time 0 */
    const char *run;   /* folder, for the first line */
} att_export_t;

/* The line before all others; Inspector's format has none. */
void att_export_begin(const att_export_t *export, att_out_t *out);
void att_export_events(const att_export_t *export, const att_trace_event_t *events, size_t count,
                       att_out_t *out);

#endif
