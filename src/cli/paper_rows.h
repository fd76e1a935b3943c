/*
 * paper rows: data/paper.json, what AutoCCL reported, row by row, for `attune sim --paper`.
 */
#ifndef ATT_CLI_PAPER_ROWS_H
#define ATT_CLI_PAPER_ROWS_H

#include "base/status.h"

#include <jansson.h>

#define ATT_PAPER_ROWS 1024

/* The bytes of a paper.json. -ATT_EINPUT, -ATT_EVERSION or -ATT_EFULL name the place; what passes
 * has "source" (text), "units" and "rows", and each row the texts and numbers that its reader takes
 * for granted. The caller owns *document. */
int att_paper_rows_parse(const char *bytes, size_t length, json_t **document, att_error_t *error);

#endif
