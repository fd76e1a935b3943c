#include "cli/paper_rows.h"

#include "base/names.h"
#include "cli/json_file.h"

#include <stdbool.h>
#include <string.h>

#define MOST_BYTES 9e15 /* whole in a double */

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* A number above 0, or null. */
static bool is_amount(const json_t *value, double most)
{
    return value == NULL || json_is_null(value) ||
           (json_is_number(value) && json_number_value(value) > 0 &&
            json_number_value(value) <= most);
}

static int check_row(const json_t *row, size_t i, att_error_t *error)
{
    static const char *const texts[] = {"source", "setup", "collective", "load", "kind"};
    static const char *const kinds[] = {"numeric", "mean", "range", "order", "step"};
    static const char *const sizes[] = {"bytes", "bytes_from", "bytes_to"};
    static const char *const amounts[] = {
        "nccl_gbs",        "afnfa_gbs",           "autoccl_gbs",         "afnfa_speedup",
        "autoccl_speedup", "autoccl_speedup_low", "autoccl_speedup_high"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (!json_is_string(json_object_get(row, texts[k])))
            return att_fail(error, ATT_EINPUT, "/rows/%zu: \"%s\" must be a text", i, texts[k]);
    const char *kind = att_json_text_at(row, "kind");
    const char *collective = att_json_text_at(row, "collective");
    if (!is_one_of(kind, kinds, sizeof kinds / sizeof *kinds))
        return att_fail(error, ATT_EINPUT,
                        "/rows/%zu: \"kind\" must be numeric, mean, range, order or step", i);
    if (strcmp(kind, "step") != 0 && strcmp(collective, "all") != 0 &&
        att_collective_parse(collective) < 0)
        return att_fail(error, ATT_EINPUT, "/rows/%zu: \"collective\" must be a collective or all",
                        i);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (!is_amount(json_object_get(row, sizes[k]), MOST_BYTES))
            return att_fail(error, ATT_EINPUT,
                            "/rows/%zu: \"%s\" must be a number of bytes or null", i, sizes[k]);
    for (size_t k = 0; k < sizeof amounts / sizeof *amounts; k++)
        if (!is_amount(json_object_get(row, amounts[k]), 1e9))
            return att_fail(error, ATT_EINPUT, "/rows/%zu: \"%s\" must be a number above 0 or null",
                            i, amounts[k]);
    return ATT_OK;
}

static int check_document(const json_t *document, att_error_t *error)
{
    const json_t *rows = json_object_get(document, "rows");
    int rc = att_json_check_version(document, 1, error);
    if (rc != ATT_OK)
        return rc;
    if (!json_is_string(json_object_get(document, "source")) ||
        !json_is_object(json_object_get(document, "units")))
        return att_fail(error, ATT_EINPUT, "\"source\" (text) and \"units\" (object) are needed");
    if (json_array_size(rows) == 0)
        return att_fail(error, ATT_EINPUT, "\"rows\" must be a list with something in it");
    if (json_array_size(rows) > ATT_PAPER_ROWS)
        return att_fail(error, ATT_EFULL, "/rows: more than %d", ATT_PAPER_ROWS);
    for (size_t i = 0; rc == ATT_OK && i < json_array_size(rows); i++)
        rc = check_row(json_array_get(rows, i), i, error);
    return rc;
}

int att_paper_rows_parse(const char *bytes, size_t length, json_t **document, att_error_t *error)
{
    return att_json_parse_checked(bytes, length, check_document, document, error);
}
