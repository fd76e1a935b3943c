/*
 * top view: what `attune top` shows, as text: a screen of given size, or a line a change. Knows no
 * terminal.
 */
#ifndef ATT_CLI_TOP_VIEW_H
#define ATT_CLI_TOP_VIEW_H

#include "cli/run_end.h"

#include <stdio.h>

typedef struct att_top_view {
    const char *name;         /* of the run */
    const att_tasks_t *tasks; /* NULL: nothing was reported yet */
    att_run_end_t end;
} att_top_view_t;

/* At most `rows` lines of at most `columns` characters, each ended by `line_end`; the list begins
 * at its entry `first`. Returns how many entries the list has. */
size_t att_top_screen(const att_top_view_t *view, int rows, int columns, size_t first,
                      const char *line_end, FILE *out);

/* What was printed of a task last. */
typedef struct att_top_seen {
    char phase[16];
    uint64_t trials;
    int late_rank;
} att_top_seen_t;

/* A line for each task of which something changed since; `seen` has `count` entries, grown as
 * needed. -ATT_ENOMEM. */
int att_top_lines(const att_top_view_t *view, att_top_seen_t **seen, size_t *count, FILE *out);

#endif
