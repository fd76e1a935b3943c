/*
 * template: text made of a template file and a JSON value, in the manner of Mustache. Everything
 * that comes from the value is escaped for HTML; there is no way to put it in raw.
 *
 *   {{name}} {{a.b}} {{.}}    a value, looked for from the innermost section outwards
 *   {{name|format}}           the same through a format, which also says what absent is
 *   {{#name}}...{{/name}}     a section: once an entry of a list, once for anything else that is
 *                             not empty (null, false, 0, "", [], {} and absent are)
 *   {{^name}}...{{/name}}     when it is empty
 *   {{>file}}                 another template of the set, in place
 *   {{<file}}                 a file of the set as it is
 *   {{! comment}}
 *
 * A section's tag that ends its line takes the line's end with it.
 */
#ifndef ATT_CLI_TEMPLATE_H
#define ATT_CLI_TEMPLATE_H

#include "base/status.h"
#include "profile/out.h"

#include <jansson.h>

typedef struct att_template_file {
    const char *name;
    const char *text;
    size_t size;
} att_template_file_t;

/* Text of a value, which may be NULL (absent). */
typedef void (*att_template_format_fn)(const json_t *value, char *text, size_t size);

typedef struct att_template_format {
    const char *name;
    att_template_format_fn write;
} att_template_format_t;

typedef struct att_template_set {
    const att_template_file_t *files;
    size_t file_count;
    const att_template_format_t *formats;
    size_t format_count;
} att_template_set_t;

/* -ATT_EINPUT: the template is wrong; the text has its file and line. */
int att_template_render(const att_template_set_t *set, const char *file, const json_t *value,
                        att_out_t *out, att_error_t *error);

/* Escapes & < > " ' and replaces control characters. */
void att_template_escape(const char *text, att_out_t *out);

#endif
