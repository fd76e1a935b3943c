#include "cli/tasks_file.h"

#include "base/names.h"
#include "cli/json_file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where in the file an error is: "tasks[3].tuned". */
typedef struct place {
    char text[64];
    att_error_t *error;
} place_t;

static int malformed(const place_t *place, const char *key, const char *expected)
{
    return att_fail(place->error, ATT_EINPUT, "%s%s%s: expected %s", place->text,
                    place->text[0] != '\0' ? "." : "", key, expected);
}

/* Members that are absent leave the field as it is; `needed` ones are an error then. */
static int read_real(const json_t *object, const char *key, bool needed, double *value,
                     const place_t *place)
{
    const json_t *member = json_object_get(object, key);
    if (member == NULL && !needed)
        return ATT_OK;
    double number = json_is_number(member) ? json_number_value(member) : NAN;
    if (!isfinite(number) || number < 0)
        return malformed(place, key, "a number, 0 or more");
    *value = number;
    return ATT_OK;
}

static int read_count(const json_t *object, const char *key, bool needed, uint64_t *value,
                      const place_t *place)
{
    const json_t *member = json_object_get(object, key);
    if (member == NULL && !needed)
        return ATT_OK;
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return malformed(place, key, "a whole number, 0 or more");
    *value = (uint64_t)json_integer_value(member);
    return ATT_OK;
}

static int read_int(const json_t *object, const char *key, int minimum, int maximum, int *value,
                    const place_t *place)
{
    const json_t *member = json_object_get(object, key);
    if (!json_is_integer(member) || json_integer_value(member) < minimum ||
        json_integer_value(member) > maximum) {
        char expected[64];
        snprintf(expected, sizeof expected, "a whole number from %d to %d", minimum, maximum);
        return malformed(place, key, expected);
    }
    *value = (int)json_integer_value(member);
    return ATT_OK;
}

static void copy_text(char *text, size_t size, const char *from)
{
    snprintf(text, size, "%s", from);
    size_t length = strlen(text);
    if (from[length] != '\0') { /* cut: not inside a character of several bytes */
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
        text[length] = '\0';
    }
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static int read_text(const json_t *object, const char *key, char *text, size_t size,
                     const place_t *place)
{
    const json_t *member = json_object_get(object, key);
    if (member == NULL)
        return ATT_OK;
    if (!json_is_string(member))
        return malformed(place, key, "a text");
    copy_text(text, size, json_string_value(member));
    return ATT_OK;
}

static int read_word(const json_t *object, const char *key, int (*parse)(const char *), int *value,
                     const place_t *place)
{
    const char *word = json_string_value(json_object_get(object, key));
    int number = word != NULL ? parse(word) : -2;
    if (number < -1)
        return malformed(place, key, "one of NCCL's words, or \"keep\"");
    *value = number;
    return ATT_OK;
}

static int read_setting(const json_t *object, att_setting_t *setting, const place_t *place)
{
    if (!json_is_object(object))
        return malformed(place, "setting", "an object");
    int algorithm = 0, protocol = 0, transport = 0, channels = 0, threads = 0, chunk = 0;
    int rc = read_word(object, "algorithm", att_algorithm_parse, &algorithm, place);
    if (rc == ATT_OK)
        rc = read_word(object, "protocol", att_protocol_parse, &protocol, place);
    if (rc == ATT_OK)
        rc = read_word(object, "transport", att_transport_parse, &transport, place);
    if (rc == ATT_OK)
        rc = read_int(object, "channels", 0, UINT16_MAX, &channels, place);
    if (rc == ATT_OK)
        rc = read_int(object, "threads", 0, UINT16_MAX, &threads, place);
    if (rc == ATT_OK)
        rc = read_int(object, "chunk", 0, INT32_MAX, &chunk, place);
    if (rc != ATT_OK)
        return rc;
    if ((algorithm == ATT_ALGORITHM_KEEP) != (protocol == ATT_PROTOCOL_KEEP))
        return malformed(place, "protocol", "\"keep\" exactly when algorithm is \"keep\"");
    *setting = (att_setting_t){.algorithm = (int8_t)algorithm,
                               .protocol = (int8_t)protocol,
                               .transport = (int8_t)transport,
                               .channels = (uint16_t)channels,
                               .threads = (uint16_t)threads,
                               .chunk_bytes = (uint32_t)chunk};
    return ATT_OK;
}

static int read_measured(const json_t *task, const char *key, att_measured_t *measured,
                         const place_t *outer)
{
    place_t place = {.error = outer->error};
    snprintf(place.text, sizeof place.text, "%.40s.%s", outer->text, key);
    const json_t *object = json_object_get(task, key);
    if (!json_is_object(object))
        return malformed(outer, key, "an object");
    int rc = read_setting(json_object_get(object, "setting"), &measured->setting, &place);
    if (rc == ATT_OK)
        rc = read_real(object, "median_us", false, &measured->median_us, &place);
    if (rc == ATT_OK)
        rc = read_count(object, "samples", false, &measured->samples, &place);
    return rc;
}

/* What the task does at the moment; files of earlier versions do not say. */
static int read_moment(const json_t *task, att_task_row_t *row, const place_t *outer)
{
    place_t place = {.error = outer->error};
    snprintf(place.text, sizeof place.text, "%.40s.now", outer->text);
    const json_t *now = json_object_get(task, "now");
    int rc = read_real(now, "median_us", false, &row->now_us, &place);
    if (rc == ATT_OK)
        rc = read_real(now, "age_s", false, &row->now_age_s, &place);
    row->late_rank = -1;
    const json_t *late = json_object_get(task, "late");
    if (rc != ATT_OK || late == NULL)
        return rc;
    snprintf(place.text, sizeof place.text, "%.40s.late", outer->text);
    rc = read_int(late, "rank", 0, 1 << 24, &row->late_rank, &place);
    if (rc == ATT_OK)
        rc = read_real(late, "late_us", false, &row->late_us, &place);
    return rc;
}

static int read_disagreement(const json_t *task, att_task_row_t *row, const place_t *outer)
{
    place_t place = {.error = outer->error};
    snprintf(place.text, sizeof place.text, "%.40s.disagreement", outer->text);
    const json_t *object = json_object_get(task, "disagreement");
    if (object == NULL)
        return ATT_OK;
    const json_t *collective = json_object_get(object, "collective_gain"),
                 *step = json_object_get(object, "step_gain");
    row->collective_gain = json_number_value(collective);
    row->step_gain = json_number_value(step);
    if (!json_is_number(collective) || !json_is_number(step) ||
        !(row->collective_gain * row->step_gain < 0))
        return malformed(&place, "collective_gain", "a gain and step_gain a loss, or the reverse");
    char objective[16] = "";
    int rc = read_text(object, "objective", objective, sizeof objective, &place);
    row->step_objective = strcmp(objective, "step") == 0;
    return rc;
}

const char *att_task_row_warning(const att_task_row_t *row, char text[ATT_TASK_WARNING])
{
    text[0] = '\0';
    if (row->collective_gain == 0)
        return text;
    snprintf(text, ATT_TASK_WARNING, "warning: the collective is %.1f %% %s, its step %.1f %% %s%s",
             100 * fabs(row->collective_gain), row->collective_gain > 0 ? "faster" : "slower",
             100 * fabs(row->step_gain), row->step_gain > 0 ? "faster" : "slower",
             row->step_objective ? "" : "; --objective step makes the step short");
    return text;
}

bool att_task_row_failed(const att_task_row_t *row)
{
    return row->kept_default && strcmp(row->phase, "failed") == 0;
}

size_t att_tasks_failed(const att_tasks_t *tasks, const char **reason)
{
    size_t failed = 0;
    for (size_t i = 0; i < tasks->count; i++)
        if (att_task_row_failed(&tasks->rows[i]) && failed++ == 0)
            *reason = tasks->rows[i].reason;
    return failed;
}

static int read_row(const json_t *task, size_t index, att_task_row_t *row, att_error_t *error)
{
    place_t place = {.error = error};
    snprintf(place.text, sizeof place.text, "tasks[%zu]", index);
    if (!json_is_object(task))
        return malformed(&place, "", "an object");
    row->collective = -1;
    int rc = read_word(task, "collective", att_collective_parse, &row->collective, &place);
    if (rc == ATT_OK && row->collective < 0)
        rc = malformed(&place, "collective", "a collective");
    if (rc == ATT_OK)
        rc = read_count(task, "bytes", true, &row->bytes, &place);
    if (rc == ATT_OK)
        rc = read_int(task, "ranks", 1, 1 << 24, &row->ranks, &place);
    if (rc == ATT_OK)
        rc = read_int(task, "nodes", 1, 1 << 24, &row->nodes, &place);
    if (rc == ATT_OK)
        rc = read_text(task, "group", row->group, sizeof row->group, &place);
    if (rc == ATT_OK)
        rc = read_text(task, "phase", row->phase, sizeof row->phase, &place);
    if (rc == ATT_OK)
        rc = read_text(task, "reason", row->reason, sizeof row->reason, &place);
    if (rc == ATT_OK)
        rc = read_count(task, "legal_pairs", false, &row->legal_pairs, &place);
    if (rc == ATT_OK)
        rc = read_count(task, "trials", false, &row->trials, &place);
    if (rc == ATT_OK)
        rc = read_count(task, "calls", false, &row->calls, &place);
    if (rc == ATT_OK)
        rc = read_count(task, "switches", false, &row->switches, &place);
    if (rc == ATT_OK)
        rc = read_real(task, "lost_us", false, &row->lost_us, &place);
    if (rc == ATT_OK)
        rc = read_measured(task, "default", &row->native, &place);
    if (rc == ATT_OK)
        rc = read_measured(task, "tuned", &row->tuned, &place);
    if (rc == ATT_OK)
        rc = read_moment(task, row, &place);
    if (rc == ATT_OK)
        rc = read_disagreement(task, row, &place);
    if (rc != ATT_OK)
        return rc;
    const json_t *kept = json_object_get(task, "kept_default");
    if (kept != NULL && !json_is_boolean(kept))
        return malformed(&place, "kept_default", "true or false");
    row->kept_default = json_is_true(kept);
    return ATT_OK;
}

static int read_coverage(const json_t *object, att_tasks_t *tasks, att_error_t *error)
{
    place_t place = {.text = "coverage", .error = error};
    struct {
        const char *key;
        uint64_t *value;
    } counts[] = {
        {"decisions", &tasks->coverage.decisions}, {"timed", &tasks->coverage.timed},
        {"frozen", &tasks->coverage.frozen},       {"unseen", &tasks->coverage.unseen},
        {"dropped", &tasks->coverage.dropped},     {"anomalies", &tasks->coverage.anomalies},
        {"waited", &tasks->coverage.waited},       {"in_doubt", &tasks->coverage.in_doubt},
        {"called", &tasks->coverage.called},       {"answered", &tasks->coverage.answered},
        {"bypassed", &tasks->coverage.bypassed},   {"streams", &tasks->coverage.streams}};
    int rc = read_real(object, "longest_wait_us", false, &tasks->coverage.longest_wait_us, &place);
    for (size_t i = 0; rc == ATT_OK && i < sizeof counts / sizeof counts[0]; i++)
        rc = read_count(object, counts[i].key, false, counts[i].value, &place);
    const char *reason;
    json_t *count;
    snprintf(place.text, sizeof place.text, "coverage.untimed");
    json_t *untimed = json_object_get(object, "untimed");
    json_object_foreach(untimed, reason, count)
    {
        size_t n = tasks->coverage.untimed_count;
        if (rc != ATT_OK || n == sizeof tasks->coverage.untimed / sizeof tasks->coverage.untimed[0])
            break;
        rc = read_count(untimed, reason, true, &tasks->coverage.untimed[n].count, &place);
        copy_text(tasks->coverage.untimed[n].reason, sizeof tasks->coverage.untimed[n].reason,
                  reason);
        tasks->coverage.untimed_count++;
    }
    return rc;
}

static int read_head(const json_t *root, att_tasks_t *tasks, att_error_t *error)
{
    place_t place = {.error = error};
    char state[16] = "";
    int rc = read_text(root, "attune", tasks->attune, sizeof tasks->attune, &place);
    if (rc == ATT_OK)
        rc = read_text(root, "device", tasks->device, sizeof tasks->device, &place);
    if (rc == ATT_OK)
        rc = read_text(root, "state", state, sizeof state, &place);
    if (rc == ATT_OK)
        rc = read_int(root, "nccl_version", 0, INT32_MAX, &tasks->nccl_version, &place);
    if (rc != ATT_OK)
        return rc;
    tasks->finished = strcmp(state, "finished") == 0;
    const json_t *agent = json_object_get(root, "agent");
    const json_t *cost = json_object_get(root, "cost");
    snprintf(place.text, sizeof place.text, "agent");
    rc = read_real(agent, "cpu_share", false, &tasks->agent.cpu_share, &place);
    if (rc == ATT_OK)
        rc = read_count(agent, "records", false, &tasks->agent.records, &place);
    if (rc == ATT_OK)
        rc = read_count(agent, "dropped", false, &tasks->agent.dropped, &place);
    if (rc == ATT_OK)
        rc = read_count(agent, "polls", false, &tasks->agent.polls, &place);
    snprintf(place.text, sizeof place.text, "cost");
    if (rc == ATT_OK)
        rc = read_real(cost, "lost_us", false, &tasks->cost.lost_us, &place);
    if (rc == ATT_OK)
        rc = read_real(cost, "timing_us", false, &tasks->cost.timing_us, &place);
    if (rc == ATT_OK)
        rc = read_real(cost, "run_us", false, &tasks->cost.run_us, &place);
    if (rc == ATT_OK)
        rc = read_coverage(json_object_get(root, "coverage"), tasks, error);
    return rc;
}

static int read_root(const json_t *root, att_tasks_t *tasks, att_error_t *error)
{
    int rc = att_json_check_version(root, ATT_TASKS_VERSION, error);
    if (rc != ATT_OK)
        return rc;
    const json_t *list = json_object_get(root, "tasks");
    if (!json_is_array(list))
        return att_fail(error, ATT_EINPUT, "tasks: expected a list");
    size_t count = json_array_size(list);
    if (count > ATT_TASKS_COUNT_MAX)
        return att_fail(error, ATT_EINPUT, "tasks: %zu are more than the %u that attune reads",
                        count, ATT_TASKS_COUNT_MAX);
    rc = read_head(root, tasks, error);
    if (rc != ATT_OK)
        return rc;
    tasks->rows = calloc(count > 0 ? count : 1, sizeof *tasks->rows);
    if (tasks->rows == NULL)
        return att_fail(error, ATT_ENOMEM, "out of memory");
    tasks->count = count;
    for (size_t i = 0; rc == ATT_OK && i < count; i++)
        rc = read_row(json_array_get(list, i), i, &tasks->rows[i], error);
    return rc;
}

static int take(json_t *root, att_tasks_t *tasks, att_error_t *error)
{
    memset(tasks, 0, sizeof *tasks);
    int rc = read_root(root, tasks, error);
    json_decref(root);
    if (rc != ATT_OK)
        att_tasks_free(tasks);
    return rc;
}

int att_tasks_parse(const char *bytes, size_t length, att_tasks_t *tasks, att_error_t *error)
{
    json_t *root;
    int rc = att_json_parse(bytes, length, &root, error);
    return rc != ATT_OK ? rc : take(root, tasks, error);
}

int att_tasks_read(const char *path, att_tasks_t *tasks, att_error_t *error)
{
    json_t *root;
    int rc = att_json_read(path, ATT_TASKS_FILE_MAX, &root, error);
    if (rc != ATT_OK)
        return rc;
    att_error_t inner = {""};
    rc = take(root, tasks, &inner);
    return rc == ATT_OK ? rc : att_fail(error, (att_status_t)-rc, "%s: %s", path, inner.text);
}

void att_tasks_free(att_tasks_t *tasks)
{
    if (tasks == NULL)
        return;
    free(tasks->rows);
    memset(tasks, 0, sizeof *tasks);
}
