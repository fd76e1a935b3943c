/*
 * t4: reads recorded durations in Kernel Tuner's T4 results format (schema 1.0.0), with what a
 * surface needs and T4 has no place for under "metadata" (docs/surfaces.md).
 */
#ifndef ATT_SURFACE_T4_H
#define ATT_SURFACE_T4_H

#include "surface/definition.h"

#define ATT_T4_METADATA_VERSION 1
#define ATT_T4_SAMPLES_MAX      100000 /* of one list of one setting; a file with more is refused */

/* True when the document looks like T4: an object with "results". */
int att_t4_is(const json_t *document);
/* Fill `surface` (info, table) from surface->document. */
int att_t4_read(struct att_surface *surface, att_error_t *error);

#endif
