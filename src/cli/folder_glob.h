/*
 * folder glob: the files of a folder that match a pattern; the folder's own name is no pattern.
 */
#ifndef ATT_CLI_FOLDER_GLOB_H
#define ATT_CLI_FOLDER_GLOB_H

#include <glob.h>

/* As glob(3), its result and its *found: to free with globfree when 0. */
int att_folder_glob(const char *folder, const char *pattern, glob_t *found);

#endif
