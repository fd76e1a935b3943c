#include "cli/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int att_json_parse(const char *bytes, size_t length, json_t **root, att_error_t *error)
{
    json_error_t place;
    json_t *value = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &place);
    for (char *c = place.text; value == NULL && *c != '\0'; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' '; /* it quotes the file: keep the message on one line */
    if (value == NULL)
        return att_fail(error, ATT_EINPUT, "no JSON: line %d, column %d: %s", place.line,
                        place.column, place.text);
    *root = value;
    return ATT_OK;
}

int att_json_parse_checked(const char *bytes, size_t length, att_json_check_fn check, json_t **root,
                           att_error_t *error)
{
    json_t *value;
    int rc = att_json_parse(bytes, length, &value, error);
    if (rc != ATT_OK)
        return rc;
    rc = check(value, error);
    if (rc != ATT_OK) {
        json_decref(value);
        return rc;
    }
    *root = value;
    return ATT_OK;
}

/* The whole file; *bytes is the caller's. */
static int read_bytes(const char *path, size_t limit, char **bytes, size_t *length,
                      att_error_t *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return att_fail(error, ATT_ENOENT, "%s: there is no such file", path);
    if (file == NULL)
        return att_fail_errno(error, "%s", path);
    int rc = ATT_OK;
    char *buffer = NULL;
    size_t capacity = 0, used = 0, got;
    do {
        if (used + 65536 > capacity) {
            capacity = 2 * capacity + 65536;
            char *more = realloc(buffer, capacity);
            if (more == NULL) {
                rc = att_fail(error, ATT_ENOMEM, "%s: out of memory", path);
                break;
            }
            buffer = more;
        }
        got = fread(buffer + used, 1, 65536, file);
        used += got;
        if (used > limit) {
            rc = att_fail(error, ATT_EINPUT, "%s: larger than %zu bytes", path, limit);
            break;
        }
    } while (got > 0);
    if (rc == ATT_OK && ferror(file))
        rc = att_fail_errno(error, "%s", path);
    fclose(file);
    if (rc != ATT_OK) {
        free(buffer);
        return rc;
    }
    *bytes = buffer;
    *length = used;
    return ATT_OK;
}

int att_json_read_checked(const char *path, size_t limit, att_json_parse_fn parse, json_t **root,
                          att_error_t *error)
{
    char *bytes = NULL;
    size_t length = 0;
    int rc = read_bytes(path, limit, &bytes, &length, error);
    if (rc != ATT_OK)
        return rc;
    att_error_t inner = {""};
    rc = parse(bytes, length, root, &inner);
    free(bytes);
    return rc == ATT_OK ? rc : att_fail(error, (att_status_t)-rc, "%s: %s", path, inner.text);
}

int att_json_read(const char *path, size_t limit, json_t **root, att_error_t *error)
{
    return att_json_read_checked(path, limit, att_json_parse, root, error);
}

int att_json_check_version(const json_t *root, int version, att_error_t *error)
{
    const json_t *found = json_object_get(root, "version");
    if (!json_is_integer(found))
        return att_fail(error, ATT_EINPUT, "version: expected %d, there is none", version);
    if (json_integer_value(found) != version)
        return att_fail(error, ATT_EVERSION,
                        "the format's version is %lld, this attune reads version %d",
                        (long long)json_integer_value(found), version);
    return ATT_OK;
}

json_t *att_json_text(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    char *copy = strdup(text);
    if (copy == NULL)
        return NULL;
    for (unsigned char *c = (unsigned char *)copy; *c != '\0'; c++)
        if (*c >= 0x80)
            *c = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

const char *att_json_text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* A device, a pipe or a link, as /dev/null and /dev/stdout: a file in its place would harm the
 * machine. */
static bool is_special(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

static int why_not_writable(const char *path)
{
    char temporary[PATH_MAX];
    struct stat found;
    if (is_special(path))
        return access(path, W_OK) == 0 ? 0 : errno;
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        return ENAMETOOLONG;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return EISDIR;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) /* another's, or what a kill has left: it stays */
        return access(temporary, W_OK) == 0 ? 0 : errno;
    if (fd < 0)
        return errno;
    close(fd);
    unlink(temporary);
    return 0;
}

int att_json_check_writable(const char *path, att_error_t *error)
{
    errno = why_not_writable(path);
    return errno == 0 ? ATT_OK : att_fail_errno(error, "%.300s cannot be written", path);
}

int att_json_replace(const char *path, json_t *root, att_error_t *error)
{
    char temporary[PATH_MAX];
    int rc = ATT_OK;
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "%s: out of memory", path);
    bool in_place = is_special(path);
    snprintf(temporary, sizeof temporary, in_place ? "%s" : "%s.tmp", path);
    FILE *file = fopen(temporary, "we");
    if (file == NULL) {
        rc = att_fail_errno(error, "%s", path);
        goto free_root;
    }
    int bad = json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0;
    bad |= fputc('\n', file) == EOF;
    bad |= fclose(file) != 0;
    if (bad || (!in_place && rename(temporary, path) != 0)) {
        rc = att_fail_errno(error, "%s", path);
        if (!in_place)
            unlink(temporary);
    }
free_root:
    json_decref(root);
    return rc;
}
