#include "cli/report_file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define LINE_MAX_BYTES (4u << 20)

static int open_file(const char *folder, const char *name, char path[PATH_MAX], gzFile *file,
                     att_error_t *error)
{
    struct stat about;
    for (int compressed = 0; compressed < 2; compressed++) {
        if (snprintf(path, PATH_MAX, "%s/%s%s", folder, name, compressed ? ".gz" : "") >= PATH_MAX)
            return att_fail(error, ATT_EINPUT, "%.80s...: the path is too long", folder);
        if (stat(path, &about) != 0 && errno == ENOENT)
            continue;
        if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
            return att_fail(error, ATT_EINPUT, "%s: not a file", path);
        *file = gzopen(path, "rbe");
        return *file != NULL ? ATT_OK : att_fail_errno(error, "%s", path);
    }
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return att_fail(error, ATT_ENOENT, "%s: there is no such file", path);
}

/* Why reading ended early, if it did. */
static int reading_failed(gzFile file, const char *path, att_error_t *error)
{
    int code;
    const char *text = gzerror(file, &code);
    if (code == Z_ERRNO)
        return att_fail_errno(error, "%s", path);
    /* A stream that ends in its middle is what a kill leaves: what is there is read. */
    if (code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END)
        return ATT_OK;
    return att_fail(error, ATT_EINPUT, "%s: damaged: %s", path, text);
}

int att_report_file_read(const char *folder, const char *name, size_t limit, char **bytes,
                         size_t *length, att_error_t *error)
{
    char path[PATH_MAX];
    gzFile file;
    int status = open_file(folder, name, path, &file, error);
    if (status != ATT_OK)
        return status;
    char *buffer = NULL;
    size_t used = 0, room = 0;
    for (int got = 1; got > 0 && status == ATT_OK; used += got > 0 ? (size_t)got : 0) {
        if (room - used < 65537) {
            room = 2 * room + 131072;
            char *grown = realloc(buffer, room);
            if (grown == NULL) {
                status = att_fail(error, ATT_ENOMEM, "%s: out of memory", path);
                break;
            }
            buffer = grown;
        }
        got = gzread(file, buffer + used, 65536);
        if (used > limit)
            status = att_fail(error, ATT_EINPUT, "%s: larger than %zu bytes", path, limit);
    }
    if (status == ATT_OK)
        status = reading_failed(file, path, error);
    gzclose(file);
    if (status != ATT_OK) {
        free(buffer);
        return status;
    }
    buffer[used] = '\0';
    *bytes = buffer;
    *length = used;
    return ATT_OK;
}

int att_report_file_lines(const char *folder, const char *name, att_report_line_fn take,
                          void *context, size_t *skipped, att_error_t *error)
{
    char path[PATH_MAX];
    gzFile file;
    int status = open_file(folder, name, path, &file, error);
    if (status != ATT_OK)
        return status;
    char *line = malloc(LINE_MAX_BYTES);
    if (line == NULL)
        status = att_fail(error, ATT_ENOMEM, "%s: out of memory", path);
    gzbuffer(file, 1u << 17);
    *skipped = 0;
    bool inside = false; /* of a line that is too long */
    while (status == ATT_OK && gzgets(file, line, (int)LINE_MAX_BYTES) != NULL) {
        size_t length = strlen(line);
        bool whole = length > 0 && line[length - 1] == '\n';
        if (whole)
            line[--length] = '\0';
        bool too_long = !whole && length + 1 == LINE_MAX_BYTES;
        if (inside || too_long)
            *skipped += !inside;
        else
            status = take(context, line, length);
        inside = too_long;
    }
    if (status == ATT_OK)
        status = reading_failed(file, path, error);
    free(line);
    gzclose(file);
    return status;
}
