/*
 * one line: text of others (names of files, reasons of libraries) in a line of ours. A control
 * character would end the line, or change the terminal: it is shown as C writes it.
 */
#ifndef ATT_BASE_ONE_LINE_H
#define ATT_BASE_ONE_LINE_H

#include <stddef.h>

#define ATT_ONE_LINE 16385 /* enough for a path of PATH_MAX */

/* `text` with \n, \t, \r and \x1b for control characters, cut to size at a whole character of
 * `text`. Returns line. */
const char *att_one_line(const char *text, char *line, size_t size);

#endif
