/*
 * csv: reads recorded durations as comma-separated lines, so that a surface from anywhere can be
 * tried. The header row names the columns, in any order: collective, ranks, bytes, algorithm,
 * protocol, time_us, and if wanted transport, channels, threads, chunk ("keep" where absent).
 */
#ifndef ATT_SURFACE_CSV_H
#define ATT_SURFACE_CSV_H

#include "surface/definition.h"

/* Fill `surface` (info, table). Bytes may hold anything; errors name the line. */
int att_csv_read(const char *bytes, size_t length, struct att_surface *surface, att_error_t *error);

#endif
