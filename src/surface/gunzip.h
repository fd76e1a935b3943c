/*
 * gunzip: inflates a gzip file held in memory, never beyond a limit. Bytes of other kinds are not
 * touched. Built without zlib it refuses compressed bytes with one line.
 */
#ifndef ATT_SURFACE_GUNZIP_H
#define ATT_SURFACE_GUNZIP_H

#include "base/status.h"

#include <stddef.h>

/* True when the bytes begin as gzip does (RFC 1952). */
int att_gunzip_is(const char *bytes, size_t length);
/* The inflated bytes, for the caller to free. At most `limit` of them: more is -ATT_EINPUT, found
 * before they are written. */
int att_gunzip(const char *bytes, size_t length, size_t limit, char **inflated,
               size_t *inflated_length, att_error_t *error);

#endif
