/*
 * data_file: where the files lie that attune brings along (data/ in the source tree). Looked for in
 * ATTUNE_DATA_DIR, in the source tree that this program was built from, in the installed folder,
 * and in share/attune beside the running program's folder (an installed tree that was moved).
 */
#ifndef ATT_BASE_DATA_FILE_H
#define ATT_BASE_DATA_FILE_H

#include "base/status.h"

#include <limits.h>

/* `name` as "suite.json". `folder`, when not NULL, gets the folder of surfaces that belongs to it.
 * -ATT_ENOENT names the folders. */
int att_data_find(const char *name, char path[PATH_MAX], char folder[PATH_MAX], att_error_t *error);

#endif
