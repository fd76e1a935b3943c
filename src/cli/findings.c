#include "cli/findings.h"

#include "cli/folder_glob.h"
#include "cli/json_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX (1u << 20)

static int read_count(const json_t *root, const char *key, uint64_t *sum, att_error_t *error)
{
    const json_t *member = json_object_get(root, key);
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return att_fail(error, ATT_EINPUT, "%s: expected a whole number, 0 or more", key);
    *sum += (uint64_t)json_integer_value(member);
    return ATT_OK;
}

/* null and an absent member are "": a real fabric has no surface. */
static int read_text(const json_t *root, const char *key, char *text, size_t size,
                     att_error_t *error)
{
    const json_t *member = json_object_get(root, key);
    if (member == NULL || json_is_null(member))
        return ATT_OK;
    if (!json_is_string(member))
        return att_fail(error, ATT_EINPUT, "%s: expected a text", key);
    snprintf(text, size, "%s", json_string_value(member));
    return ATT_OK;
}

static int add_fabric(const json_t *root, att_findings_t *f, att_error_t *error)
{
    uint64_t ranks = 0;
    int rc = read_text(root, "fabric", f->fabric, sizeof f->fabric, error);
    if (rc == ATT_OK && strcmp(f->fabric, "real") != 0 && strcmp(f->fabric, "model") != 0)
        rc = att_fail(error, ATT_EINPUT, "fabric: expected \"real\" or \"model\"");
    if (rc == ATT_OK)
        rc = read_text(root, "surface", f->surface, sizeof f->surface, error);
    if (rc == ATT_OK)
        rc = read_text(root, "load", f->load, sizeof f->load, error);
    if (rc == ATT_OK)
        rc = read_count(root, "ranks", &ranks, error);
    if (rc == ATT_OK)
        rc = read_count(root, "calls", &f->calls, error);
    if (rc == ATT_OK)
        rc = read_count(root, "mismatches", &f->mismatches, error);
    if (ranks > (uint64_t)f->ranks && ranks <= INT_MAX)
        f->ranks = (int)ranks;
    f->has_fabric = true;
    return rc;
}

static int add_bench(const json_t *root, att_findings_t *f, att_error_t *error)
{
    f->has_bench = true;
    return read_count(root, "result_errors", &f->result_errors, error);
}

static int add_files(const char *run_dir, const char *pattern,
                     int (*add)(const json_t *, att_findings_t *, att_error_t *),
                     att_findings_t *findings, att_error_t *error)
{
    glob_t found;
    int g = att_folder_glob(run_dir, pattern, &found);
    if (g == GLOB_NOMATCH)
        return ATT_OK;
    if (g != 0)
        return att_fail(error, ATT_ESYSTEM, "%s/%s: cannot be listed", run_dir, pattern);
    int rc = ATT_OK;
    for (size_t i = 0; rc == ATT_OK && i < found.gl_pathc; i++) {
        json_t *root;
        rc = att_json_read(found.gl_pathv[i], FILE_MAX, &root, error);
        if (rc != ATT_OK)
            break;
        att_error_t inner = {""};
        rc = att_json_check_version(root, 1, &inner);
        if (rc == ATT_OK)
            rc = add(root, findings, &inner);
        json_decref(root);
        if (rc != ATT_OK)
            rc = att_fail(error, (att_status_t)-rc, "%s: %s", found.gl_pathv[i], inner.text);
    }
    globfree(&found);
    return rc;
}

int att_findings_read(const char *run_dir, att_findings_t *findings, att_error_t *error)
{
    memset(findings, 0, sizeof *findings);
    int rc = add_files(run_dir, "fabric-*.json", add_fabric, findings, error);
    if (rc == ATT_OK)
        rc = add_files(run_dir, "bench-*.json", add_bench, findings, error);
    return rc;
}
