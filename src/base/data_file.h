/*
 * data_file: where the files lie that attune brings along (data/ in the source tree): knobs.json,
 * suite.json, paper.json and the folder surfaces.
 */
#ifndef ATT_BASE_DATA_FILE_H
#define ATT_BASE_DATA_FILE_H

#include "base/status.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_DATA_PLACES 3

/* The folders that may hold them, first what counts most; returns their number. ATTUNE_DATA_DIR;
 * then share/attune of the installed tree that this program or library lies in, wherever it was
 * moved; where it lies in none, the source tree that it was built from and the folder that an
 * installation has by default. */
uint32_t att_data_places(char places[ATT_DATA_PLACES][PATH_MAX]);

/* The surfaces of such a folder: its folder surfaces, or itself where it has none. */
void att_data_surfaces(const char *place, char folder[PATH_MAX]);

/* "A, B and C" of `count` paths. */
void att_data_list(char paths[][PATH_MAX], uint32_t count, char *text, size_t size);

/* `name` as "suite.json". `folder`, when not NULL, gets the folder of surfaces that belongs to it.
 * -ATT_ENOENT names the folders. */
int att_data_find(const char *name, char path[PATH_MAX], char folder[PATH_MAX], att_error_t *error);

#endif
