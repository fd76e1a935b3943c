/*
 * JSON file: read a JSON file of bounded size with its format version, and replace one atomically,
 * so that a reader never sees half of it.
 */
#ifndef ATT_CLI_JSON_FILE_H
#define ATT_CLI_JSON_FILE_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/* -ATT_EINPUT with line and column when the bytes are no JSON. The caller owns *root. */
int att_json_parse(const char *bytes, size_t length, json_t **root, att_error_t *error);
/* The same for a file of at most `limit` bytes; -ATT_ENOENT when it is not there. The text begins
 * with the path. */
int att_json_read(const char *path, size_t limit, json_t **root, att_error_t *error);
/* The same with a parser that also checks what is in it; the text begins with the path. */
typedef int (*att_json_parse_fn)(const char *bytes, size_t length, json_t **root,
                                 att_error_t *error);
int att_json_read_checked(const char *path, size_t limit, att_json_parse_fn parse, json_t **root,
                          att_error_t *error);
/* Parse, and check what is in it: nothing is left where the check fails. */
typedef int (*att_json_check_fn)(const json_t *root, att_error_t *error);
int att_json_parse_checked(const char *bytes, size_t length, att_json_check_fn check, json_t **root,
                           att_error_t *error);
/* The object's "version" must be `version`: -ATT_EVERSION, or -ATT_EINPUT when there is none. */
int att_json_check_version(const json_t *root, int version, att_error_t *error);
/* A text as a JSON string; what is no UTF-8 (file names, arguments) becomes '?'. */
json_t *att_json_text(const char *text);
/* A member that is a text, else "". */
const char *att_json_text_at(const json_t *object, const char *key);
/* Whether att_json_replace can write there, for who has hours of work before it: leaves nothing
 * behind, and what stands at the path as it is. -ATT_ESYSTEM; the text begins with the path. */
int att_json_check_writable(const char *path, att_error_t *error);
/* Write <path>.tmp and rename it to path; a device, pipe or link is written to as it is. Takes over
 * the reference to `root`. */
int att_json_replace(const char *path, json_t *root, att_error_t *error);

#endif
