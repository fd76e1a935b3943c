#include "control/applied.h"

#include "base/names.h"
#include "control/setting_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_row(const json_t *object, att_applied_row_t *row)
{
    uint64_t ranks, nodes;
    const char *word = json_string_value(json_object_get(object, "collective"));
    int collective = att_collective_parse(word);
    if (collective < 0 || att_json_number(object, "bytes", UINT64_MAX >> 1, &row->bytes) ||
        att_json_number(object, "ranks", INT32_MAX, &ranks) ||
        att_json_number(object, "nodes", INT32_MAX, &nodes))
        return 1;
    row->collective = (uint32_t)collective;
    row->ranks = (uint32_t)ranks;
    row->nodes = (uint32_t)nodes;
    if (json_is_true(json_object_get(object, "kept_default"))) {
        row->setting = ATT_SETTING_KEEP;
        return 0;
    }
    return att_setting_of_json(json_object_get(json_object_get(object, "tuned"), "setting"),
                               &row->setting);
}

int att_applied_read(const char *run, struct att_applied **out, att_error_t *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tasks.json", run);
    json_error_t where;
    json_t *root = json_load_file(path, 0, &where);
    if (root == NULL)
        return where.line < 0
                   ? att_fail(error, ATT_EINPUT, "--apply %s: %s: %s", run, path, where.text)
                   : att_fail(error, ATT_EINPUT, "--apply %s: %s: no JSON: line %d, column %d", run,
                              path, where.line, where.column);
    struct att_applied *applied = calloc(1, sizeof *applied);
    const json_t *tasks = json_object_get(root, "tasks");
    uint64_t version, nccl;
    int status = ATT_OK;
    if (applied == NULL) {
        status = att_fail(error, ATT_ENOMEM, "no memory");
    } else if (att_json_number(root, "version", 1, &version) || version != 1) {
        status = att_fail(error, ATT_EVERSION, "--apply %s: tasks.json is not of version 1", run);
    } else if (att_json_number(root, "nccl_version", UINT32_MAX, &nccl) || !json_is_array(tasks)) {
        status =
            att_fail(error, ATT_EINPUT, "--apply %s: tasks.json lacks nccl_version or tasks", run);
    } else {
        applied->nccl_version = (uint32_t)nccl;
        const char *device = json_string_value(json_object_get(root, "device"));
        snprintf(applied->device, sizeof applied->device, "%s", device != NULL ? device : "");
        applied->rows = calloc(json_array_size(tasks) + 1, sizeof *applied->rows);
        if (applied->rows == NULL)
            status = att_fail(error, ATT_ENOMEM, "no memory");
        for (size_t i = 0; status == ATT_OK && i < json_array_size(tasks); i++)
            if (read_row(json_array_get(tasks, i), &applied->rows[applied->count++]))
                status = att_fail(error, ATT_EINPUT,
                                  "--apply %s: task %zu of tasks.json is malformed", run, i);
    }
    json_decref(root);
    if (status != ATT_OK)
        att_applied_free(applied);
    else
        *out = applied;
    return status;
}

void att_applied_free(struct att_applied *applied)
{
    if (applied == NULL)
        return;
    free(applied->rows);
    free(applied);
}

int att_applied_find(const struct att_applied *applied, const att_identity_t *task,
                     att_setting_t *setting, att_error_t *error)
{
    if (applied->nccl_version != task->nccl_version)
        return att_fail(error, ATT_EMISMATCH, "the run was made with NCCL %u, this is NCCL %u",
                        applied->nccl_version, task->nccl_version);
    if (strcmp(applied->device, task->device) != 0)
        return att_fail(error, ATT_EMISMATCH, "the run was made on '%s', this is '%s'",
                        applied->device, task->device);
    const att_applied_row_t *near = NULL;
    for (uint32_t i = 0; i < applied->count; i++) {
        const att_applied_row_t *row = &applied->rows[i];
        if (row->collective != task->collective || row->bytes != task->bytes)
            continue;
        near = row;
        if (row->ranks == task->ranks && row->nodes == task->nodes) {
            *setting = row->setting;
            return ATT_OK;
        }
    }
    if (near != NULL)
        return att_fail(error, ATT_EMISMATCH,
                        "the run had %u ranks on %u nodes, this group has %u ranks on %u nodes",
                        near->ranks, near->nodes, task->ranks, task->nodes);
    return att_fail(error, ATT_ENOENT, "the run has no %s of %" PRIu64 " bytes",
                    att_collective_name((int)task->collective), task->bytes);
}
