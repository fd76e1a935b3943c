/*
 * file: where a surface lies and its bytes, never more than a limit of them.
 */
#ifndef ATT_SURFACE_FILE_H
#define ATT_SURFACE_FILE_H

#include "base/data_file.h"

#include <stddef.h>

/* Where names are looked up, in order; returns their number (base/data_file.h). */
#define ATT_SURFACE_FOLDERS ATT_DATA_PLACES
uint32_t att_surface_folders(char folders[ATT_SURFACE_FOLDERS][PATH_MAX]);

/* The file of a surface: `name` as att_surface_open takes it. The bytes are for the caller to free;
 * `path` is what was opened. -ATT_ENOENT, -ATT_EINPUT (too large), -ATT_ESYSTEM. */
int att_surface_file_read(const char *name, char *path, size_t path_size, char **bytes,
                          size_t *length, att_error_t *error);

#endif
