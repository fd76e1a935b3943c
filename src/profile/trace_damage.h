/*
 * trace damage: a record file of which something, or all, cannot be used, in one line for people.
 */
#ifndef ATT_PROFILE_TRACE_DAMAGE_H
#define ATT_PROFILE_TRACE_DAMAGE_H

#include <stdbool.h>

struct att_stream_reader;

typedef struct att_trace_damage {
    bool torn_end;  /* a file that is being written may look like that too */
    char text[400]; /* the file, where, and how much */
} att_trace_damage_t;

/* False: everything in the file has its place in a frame. */
bool att_trace_damage_of(const char *path, const struct att_stream_reader *reader,
                         att_trace_damage_t *damage);
/* A file that its reader refused; `why` is the reader's text, which names it. */
void att_trace_damage_whole(const char *path, const char *why, att_trace_damage_t *damage);

#endif
