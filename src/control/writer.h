/*
 * writer: files that are replaced as a whole, by a thread of its own. A file system that stalls, as
 * shared ones do for seconds, must not keep the agent from its records and votes; nor must making a
 * large text.
 */
#ifndef ATT_CONTROL_WRITER_H
#define ATT_CONTROL_WRITER_H

#include "base/status.h"

#include <stddef.h>

#define ATT_WRITER_FILES 8 /* paths of one writer */

struct att_writer;

/* -ATT_ESYSTEM: no thread can be started. */
int att_writer_create(struct att_writer **writer, att_error_t *error);
/* Writes what is left and ends the thread. NULL is fine. */
void att_writer_destroy(struct att_writer *writer);
/* `path` will soon hold these bytes, whole or as it was before (att_metrics_replace). What was put
 * for it before and has not been begun is left out. Takes `text` over, from malloc. Never waits for
 * the file system; what cannot be written is logged. -ATT_ENOMEM: no memory, or too many paths. */
int att_writer_put(struct att_writer *writer, const char *path, char *text, size_t length);
/* The same; the text is what `make` makes of `data`, in the writer's thread: its bytes from malloc,
 * or NULL without memory. `data` is one block from malloc, which the writer takes over and frees.
 */
typedef char *(*att_writer_make_fn)(const void *data, size_t *length);
int att_writer_make(struct att_writer *writer, const char *path, att_writer_make_fn make,
                    void *data);
/* Wait until everything is written. NULL is fine. */
void att_writer_flush(struct att_writer *writer);

#endif
