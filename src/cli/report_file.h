/*
 * report file: a file of a run folder as it is, or compressed beside its name (NAME.gz): a folder
 * that was archived need not be unpacked.
 */
#ifndef ATT_CLI_REPORT_FILE_H
#define ATT_CLI_REPORT_FILE_H

#include "base/status.h"

#include <stddef.h>

/* The whole file, with a '\0' behind it; the caller frees *bytes. -ATT_ENOENT: neither is there;
 * -ATT_EINPUT: larger than `limit`, or damaged. The text begins with the path. */
int att_report_file_read(const char *folder, const char *name, size_t limit, char **bytes,
                         size_t *length, att_error_t *error);

/* Line by line, without the line's end; a line longer than 4 MiB is passed over and counted in
 * *skipped. take() stops the walk with anything but 0, which is returned. */
typedef int (*att_report_line_fn)(void *context, char *line, size_t length);
int att_report_file_lines(const char *folder, const char *name, att_report_line_fn take,
                          void *context, size_t *skipped, att_error_t *error);

#endif
