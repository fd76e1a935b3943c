#include "cli/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEPTH           16 /* of sections and included files */
#define NAME_MAX_LENGTH 80

typedef struct work {
    const att_template_set_t *set;
    const json_t *stack[DEPTH]; /* the innermost section last */
    int depth, files;
    att_out_t *out;
    att_error_t *error;
} work_t;

/* A stretch of a template. */
typedef struct text {
    const att_template_file_t *file;
    const char *at, *end;
} text_t;

typedef struct tag {
    char kind; /* '#', '^', '/', '>', '<', '!', or 'v': a value */
    char name[NAME_MAX_LENGTH], format[NAME_MAX_LENGTH];
    const char *begin, *after;
} tag_t;

static int wrong(work_t *w, const text_t *text, const char *at, const char *what, const char *name)
{
    int line = 1;
    for (const char *c = text->file->text; c < at; c++)
        line += *c == '\n';
    return att_fail(w->error, ATT_EINPUT, "template %s, line %d: %s%s%s", text->file->name, line,
                    what, name[0] != '\0' ? " " : "", name);
}

void att_template_escape(const char *text, att_out_t *out)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        switch (*c) {
        case '&':
            att_out_literal(out, "&amp;");
            break;
        case '<':
            att_out_literal(out, "&lt;");
            break;
        case '>':
            att_out_literal(out, "&gt;");
            break;
        case '"':
            att_out_literal(out, "&quot;");
            break;
        case '\'':
            att_out_literal(out, "&#39;");
            break;
        default:
            if ((*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7f)
                att_out_literal(out, "\xef\xbf\xbd");
            else
                att_out_bytes(out, (const char *)c, 1);
        }
    }
}

/* --- values -------------------------------------------------------------------------------------
 */

static const json_t *inside(const json_t *value, const char *path)
{
    while (value != NULL && *path != '\0') {
        char key[NAME_MAX_LENGTH];
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        value = json_object_get(value, key);
        path += length + (path[length] == '.');
    }
    return value;
}

static const json_t *find(const work_t *w, const char *path)
{
    if (strcmp(path, ".") == 0)
        return w->stack[w->depth - 1];
    char first[NAME_MAX_LENGTH];
    size_t length = strcspn(path, ".");
    snprintf(first, sizeof first, "%.*s", (int)length, path);
    for (int i = w->depth - 1; i >= 0; i--) {
        const json_t *value = json_object_get(w->stack[i], first);
        if (value != NULL)
            return inside(value, path + length + (path[length] == '.'));
    }
    return NULL;
}

static bool is_empty(const json_t *value)
{
    switch (value != NULL ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_STRING:
        return json_string_value(value)[0] == '\0';
    case JSON_INTEGER:
        return json_integer_value(value) == 0;
    case JSON_REAL:
        return json_real_value(value) == 0;
    case JSON_TRUE:
        return false;
    default:
        return true;
    }
}

static int write_value(work_t *w, const text_t *text, const tag_t *tag)
{
    const json_t *value = find(w, tag->name);
    char formatted[512] = "";
    if (tag->format[0] != '\0') {
        for (size_t i = 0; i < w->set->format_count; i++)
            if (strcmp(w->set->formats[i].name, tag->format) == 0) {
                w->set->formats[i].write(value, formatted, sizeof formatted);
                att_template_escape(formatted, w->out);
                return ATT_OK;
            }
        return wrong(w, text, tag->begin, "there is no format", tag->format);
    }
    if (json_is_string(value))
        att_template_escape(json_string_value(value), w->out);
    else if (json_is_integer(value))
        att_out_i64(w->out, json_integer_value(value));
    else if (json_is_real(value))
        att_out_real(w->out, json_real_value(value));
    else if (json_is_boolean(value))
        att_out_text(w->out, json_is_true(value) ? "yes" : "no");
    return ATT_OK;
}

/* --- tags ---------------------------------------------------------------------------------------
 */

/* The next tag; *found false when there is none. */
static int next_tag(work_t *w, const text_t *text, const char *from, tag_t *tag, bool *found)
{
    const char *begin = memmem(from, (size_t)(text->end - from), "{{", 2);
    *found = begin != NULL;
    if (begin == NULL)
        return ATT_OK;
    const char *close = memmem(begin + 2, (size_t)(text->end - begin - 2), "}}", 2);
    if (close == NULL)
        return wrong(w, text, begin, "a tag without its end", "");
    const char *name = begin + 2;
    *tag = (tag_t){.kind = 'v', .begin = begin, .after = close + 2};
    if (strchr("#^/><!", *name) != NULL)
        tag->kind = *name++;
    if (tag->kind != '!') {
        const char *bar = memchr(name, '|', (size_t)(close - name));
        int length = (int)((bar != NULL ? bar : close) - name);
        snprintf(tag->name, sizeof tag->name, "%.*s", length, name);
        if (bar != NULL)
            snprintf(tag->format, sizeof tag->format, "%.*s", (int)(close - bar - 1), bar + 1);
    }
    if (tag->kind != 'v' && tag->after < text->end && *tag->after == '\n' &&
        (begin == text->file->text || begin[-1] == '\n' || begin[-1] == ' ' || begin[-1] == '}'))
        tag->after++;
    return ATT_OK;
}

/* The end of a section that begins behind `open`. */
static int find_close(work_t *w, const text_t *text, const tag_t *open, tag_t *close)
{
    int nested = 0;
    bool found;
    for (const char *at = open->after;; at = close->after) {
        int status = next_tag(w, text, at, close, &found);
        if (status != ATT_OK)
            return status;
        if (!found)
            return wrong(w, text, open->begin, "a section without its end:", open->name);
        if (close->kind == '#' || close->kind == '^')
            nested++;
        else if (close->kind == '/' && nested-- == 0)
            break;
    }
    return strcmp(close->name, open->name) == 0
               ? ATT_OK
               : wrong(w, text, close->begin,
                       "the section that ends here has another name:", open->name);
}

static int render(work_t *w, text_t text);

static int render_inside(work_t *w, const text_t *text, const json_t *value)
{
    if (w->depth == DEPTH)
        return wrong(w, text, text->at, "too deep", "");
    w->stack[w->depth++] = value;
    int status = render(w, *text);
    w->depth--;
    return status;
}

static int section(work_t *w, const text_t *text, const tag_t *open, const char **after)
{
    tag_t close;
    int status = find_close(w, text, open, &close);
    if (status != ATT_OK)
        return status;
    *after = close.after;
    const json_t *value = find(w, open->name);
    text_t body = {text->file, open->after, close.begin};
    if (open->kind == '^')
        return is_empty(value) ? render(w, body) : ATT_OK;
    if (is_empty(value))
        return ATT_OK;
    if (!json_is_array(value))
        return render_inside(w, &body, value);
    for (size_t i = 0; i < json_array_size(value) && status == ATT_OK; i++)
        status = render_inside(w, &body, json_array_get(value, i));
    return status;
}

static int include(work_t *w, const text_t *text, const tag_t *tag)
{
    for (size_t i = 0; i < w->set->file_count; i++) {
        const att_template_file_t *file = &w->set->files[i];
        if (strcmp(file->name, tag->name) != 0)
            continue;
        if (tag->kind == '<') {
            att_out_bytes(w->out, file->text, file->size);
            return ATT_OK;
        }
        if (w->files == DEPTH)
            return wrong(w, text, tag->begin, "files include each other:", tag->name);
        w->files++;
        int status = render(w, (text_t){file, file->text, file->text + file->size});
        w->files--;
        return status;
    }
    return wrong(w, text, tag->begin, "there is no file", tag->name);
}

static int render(work_t *w, text_t text)
{
    for (;;) {
        tag_t tag;
        bool found;
        int status = next_tag(w, &text, text.at, &tag, &found);
        if (status != ATT_OK)
            return status;
        const char *end = found ? tag.begin : text.end;
        att_out_bytes(w->out, text.at, (size_t)(end - text.at));
        if (!found)
            return ATT_OK;
        text.at = tag.after;
        if (tag.kind == 'v')
            status = write_value(w, &text, &tag);
        else if (tag.kind == '#' || tag.kind == '^')
            status = section(w, &text, &tag, &text.at);
        else if (tag.kind == '>' || tag.kind == '<')
            status = include(w, &text, &tag);
        else if (tag.kind == '/')
            status = wrong(w, &text, tag.begin, "an end without its section:", tag.name);
        if (status != ATT_OK)
            return status;
    }
}

int att_template_render(const att_template_set_t *set, const char *file, const json_t *value,
                        att_out_t *out, att_error_t *error)
{
    work_t w = {.set = set, .stack = {value}, .depth = 1, .out = out, .error = error};
    static const char begin[] = "";
    att_template_file_t caller = {"(start)", begin, 0};
    tag_t tag = {.kind = '>', .begin = begin};
    text_t text = {&caller, begin, begin};
    snprintf(tag.name, sizeof tag.name, "%s", file);
    return include(&w, &text, &tag);
}
