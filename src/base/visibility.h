/*
 * visibility: why hook and sidecar of one node do not see each other. They meet in one file; when
 * one side stays alone, the reason lies in the file's name or in what the process can see of the
 * machine: containers have a /dev/shm of their own, and may have other user ids.
 */
#ifndef ATT_BASE_VISIBILITY_H
#define ATT_BASE_VISIBILITY_H

#include <stddef.h>

/* Write one line on why no sidecar serves the segment at `path` (att_segment_file): another run id,
 * node name or user beside it, or nothing at all there and where a sidecar may be. `path` itself
 * need not exist. Opens no file that this process may hold: record locks would be lost. */
void att_visibility_text(const char *path, char *text, size_t size);

/* The kind of container that the process is in, "" for none that is known. */
const char *att_visibility_container(void);

#endif
