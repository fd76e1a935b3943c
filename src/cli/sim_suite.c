#include "cli/sim_suite.h"

#include "base/log.h"
#include "base/names.h"
#include "base/data_file.h"
#include "cli/json_file.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SUITE_BYTES_MAX (1u << 20)

uint64_t att_sim_suite_hash(const char *surface)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const unsigned char *c = (const unsigned char *)surface; *c != '\0'; c++)
        hash = (hash ^ *c) * 0x100000001b3ull;
    return hash;
}

/* ---- what each surface has ---- */

static int add_entry(att_sim_suite_t *suite, const att_surface_info_t *info, const char *name,
                     const att_surface_task_t *task, int load, bool held_out, att_error_t *error)
{
    if (suite->count == ATT_SIM_SUITE_MOST)
        return att_fail(error, ATT_EFULL, "the suite has more than %d entries", ATT_SIM_SUITE_MOST);
    att_sim_suite_entry_t *e = &suite->entries[suite->count++];
    char bytes[24], task_text[64] = "";
    if (info->task_count > 1)
        snprintf(task_text, sizeof task_text, "/%s-%s", att_collective_name(task->collective),
                 att_bytes_text(task->bytes, bytes, sizeof bytes));
    bool idle = info->load_count == 1 || strcmp(info->loads[load], "none") == 0;
    snprintf(e->surface, sizeof e->surface, "%s", name);
    snprintf(e->label, sizeof e->label, "%s%s%s%s", name, task_text, idle ? "" : "@",
             idle ? "" : info->loads[load]);
    snprintf(e->load, sizeof e->load, "%s", info->loads[load]);
    e->collective = task->collective;
    e->bytes = task->bytes;
    e->held_out = held_out;
    return ATT_OK;
}

static int add_surface(att_sim_suite_t *suite, const char *name, bool held_out, att_error_t *error)
{
    struct att_surface *surface;
    int rc = att_surface_open(name, &surface, error);
    if (rc != ATT_OK)
        return rc;
    const att_surface_info_t *info = att_surface_info(surface);
    for (int t = 0; rc == ATT_OK && t < info->task_count; t++)
        for (int load = 0; rc == ATT_OK && load < info->load_count; load++)
            rc = add_entry(suite, info, name, &info->tasks[t], load, held_out, error);
    att_surface_close(surface);
    return rc;
}

/* ---- the file ---- */

static bool listed(const json_t *surfaces, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(surfaces, i, item)
    {
        const char *text = json_string_value(json_object_get(item, "surface"));
        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

/* How many surfaces of the batch have a smaller hash; *size counts the batch. */
static uint32_t rank_in_batch(const json_t *surfaces, json_int_t batch, const char *name,
                              uint32_t *size)
{
    uint32_t smaller = 0;
    size_t i;
    json_t *item;
    *size = 0;
    json_array_foreach(surfaces, i, item)
    {
        const char *other = json_string_value(json_object_get(item, "surface"));
        if (other == NULL || json_integer_value(json_object_get(item, "batch")) != batch)
            continue;
        ++*size;
        smaller += att_sim_suite_hash(other) < att_sim_suite_hash(name);
    }
    return smaller;
}

static int check_surface(const json_t *surfaces, size_t i, att_error_t *error)
{
    const json_t *item = json_array_get(surfaces, i);
    const char *name = json_string_value(json_object_get(item, "surface"));
    const json_t *held_out = json_object_get(item, "held_out");
    const json_t *batch = json_object_get(item, "batch");
    if (name == NULL || name[0] == '\0' || strlen(name) >= ATT_SIM_SUITE_NAME ||
        !json_is_boolean(held_out) || !json_is_integer(batch))
        return att_fail(error, ATT_EINPUT,
                        "/surfaces/%zu: \"surface\" (text), \"batch\" (number) and "
                        "\"held_out\" (true or false) are needed",
                        i);
    uint32_t size, rank = rank_in_batch(surfaces, json_integer_value(batch), name, &size);
    /* Whoever designed the strategy before the rule held out others: the file says what was seen.
     */
    const json_t *seen = json_object_get(item, "seen");
    bool by_rule = json_integer_value(batch) > 0 && rank < (size + 1) / 3;
    bool expected = json_is_boolean(seen) ? json_is_false(seen) : by_rule;
    if (json_is_true(held_out) != expected && seen != NULL)
        return att_fail(error, ATT_EINPUT, "/surfaces/%zu: %.128s was %sseen, so it is %sheld out",
                        i, name, expected ? "not " : "", expected ? "" : "not ");
    if (json_is_true(held_out) != expected)
        return att_fail(error, ATT_EINPUT,
                        "/surfaces/%zu: by the hash of its name %.128s is %sheld out", i, name,
                        by_rule ? "" : "not ");
    return ATT_OK;
}

static int check_document(const json_t *document, att_error_t *error)
{
    const json_t *surfaces = json_object_get(document, "surfaces");
    const json_t *strategies = json_object_get(document, "strategies");
    size_t i;
    json_t *item;
    int rc = att_json_check_version(document, 1, error);
    if (rc != ATT_OK)
        return rc;
    if (json_array_size(surfaces) == 0 || json_array_size(strategies) == 0)
        return att_fail(error, ATT_EINPUT,
                        "\"surfaces\" and \"strategies\" must be lists with something in them");
    if (json_array_size(surfaces) > ATT_SIM_SUITE_MOST)
        return att_fail(error, ATT_EFULL, "/surfaces: more than %d", ATT_SIM_SUITE_MOST);
    json_array_foreach(strategies, i, item)
    {
        if (!json_is_string(item) || i == ATT_SIM_STRATEGIES)
            return att_fail(error, ATT_EINPUT, "/strategies/%zu: not a name, or too many", i);
        for (size_t k = 0; k < i; k++)
            if (json_equal(item, json_array_get(strategies, k)))
                return att_fail(error, ATT_EINPUT, "/strategies/%zu: %.80s is there twice", i,
                                json_string_value(item));
    }
    for (i = 0; rc == ATT_OK && i < json_array_size(surfaces); i++)
        rc = check_surface(surfaces, i, error);
    return rc;
}

int att_sim_suite_parse(const char *bytes, size_t length, json_t **document, att_error_t *error)
{
    return att_json_parse_checked(bytes, length, check_document, document, error);
}

static int add_listed(att_sim_suite_t *suite, att_error_t *error)
{
    const json_t *surfaces = json_object_get(suite->document, "surfaces");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(suite->document, "strategies"), i, item)
        suite->strategies[suite->strategy_count++] = json_string_value(item);
    int rc = ATT_OK;
    for (i = 0; rc == ATT_OK && i < json_array_size(surfaces); i++) {
        item = json_array_get(surfaces, i);
        rc = add_surface(suite, json_string_value(json_object_get(item, "surface")),
                         json_is_true(json_object_get(item, "held_out")), error);
    }
    return rc;
}

/* The name of a surface file, without its ending. */
static bool surface_name(const char *file, char *name, size_t size)
{
    static const char *const endings[] = {".json", ".json.gz", ".csv"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(file), ending = strlen(endings[i]);
        if (length <= ending || length - ending >= size ||
            strcmp(file + length - ending, endings[i]) != 0)
            continue;
        memcpy(name, file, length - ending);
        name[length - ending] = '\0';
        return true;
    }
    return false;
}

static int add_unlisted(att_sim_suite_t *suite, const char *path, const char *folder,
                        att_error_t *error)
{
    struct dirent **files;
    int count = scandir(folder, &files, NULL, alphasort), rc = ATT_OK;
    for (int i = 0; i < count; i++) {
        char name[128];
        if (rc == ATT_OK && surface_name(files[i]->d_name, name, sizeof name) &&
            !listed(json_object_get(suite->document, "surfaces"), name)) {
            att_log(ATT_LOG_WARN, "%s does not list %s, which is there; it is not held out", path,
                    name);
            rc = add_surface(suite, name, false, error);
        }
        free(files[i]);
    }
    if (count >= 0)
        free(files);
    return rc;
}

int att_sim_suite_read(const char *path, att_sim_suite_t *out, att_error_t *error)
{
    char file[PATH_MAX], folder[PATH_MAX] = "";
    att_sim_suite_t suite = {0};
    int rc = ATT_OK;
    if (path != NULL)
        snprintf(file, sizeof file, "%s", path);
    else
        rc = att_data_find("suite.json", file, folder, error);
    if (rc == ATT_OK)
        rc = att_json_read_checked(file, SUITE_BYTES_MAX, att_sim_suite_parse, &suite.document,
                                   error);
    if (rc != ATT_OK)
        return rc;
    suite.entries = calloc(ATT_SIM_SUITE_MOST, sizeof *suite.entries);
    rc = suite.entries == NULL ? att_fail(error, ATT_ENOMEM, "no memory for a suite")
                               : add_listed(&suite, error);
    if (rc == ATT_OK && folder[0] != '\0')
        rc = add_unlisted(&suite, file, folder, error);
    if (rc != ATT_OK) {
        att_sim_suite_free(&suite);
        return rc;
    }
    *out = suite;
    return ATT_OK;
}

void att_sim_suite_free(att_sim_suite_t *suite)
{
    if (suite == NULL)
        return;
    free(suite->entries);
    json_decref(suite->document);
    *suite = (att_sim_suite_t){0};
}
