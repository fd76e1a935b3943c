/* tasks file: what attuned writes is read whole; what is malformed is refused with its place. */
#include "tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void everything_is_read(void **state)
{
    att_tasks_t t;
    read_two_tasks(&t);
    assert_string_equal(t.attune, "0.1.0");
    assert_int_equal(t.nccl_version, 23007);
    assert_string_equal(t.device, "A40 (model)");
    assert_true(t.finished);
    assert_float_equal(t.agent.cpu_share, 0.0123, 1e-12);
    assert_int_equal(t.agent.records, 8123);
    assert_int_equal(t.coverage.decisions, 10000);
    assert_int_equal(t.coverage.untimed_count, 3);
    assert_string_equal(t.coverage.untimed[0].reason, "off");
    assert_int_equal(t.coverage.untimed[0].count, 1990);
    assert_float_equal(t.coverage.longest_wait_us, 123.4, 1e-9);
    assert_float_equal(t.cost.lost_us, 12345, 1e-9);
    assert_int_equal(t.count, 2);
    const att_task_row_t *r = &t.rows[0];
    assert_int_equal(r->collective, ATT_COLLECTIVE_ALL_GATHER);
    assert_int_equal(r->bytes, 83886080);
    assert_int_equal(r->ranks, 8);
    assert_int_equal(r->trials, 41);
    assert_int_equal(r->calls, 350);
    assert_false(r->kept_default);
    assert_int_equal(r->native.setting.algorithm, ATT_ALGORITHM_RING);
    assert_int_equal(r->native.setting.channels, 8);
    assert_int_equal(r->tuned.setting.channels, 20);
    assert_int_equal(r->tuned.setting.chunk_bytes, 131072);
    assert_int_equal(r->tuned.setting.transport, ATT_TRANSPORT_KEEP);
    assert_float_equal(r->tuned.median_us, 2172.088, 1e-9);
    assert_true(t.rows[1].kept_default);
    att_tasks_free(&t);
    assert_null(t.rows);
    att_tasks_free(NULL);
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *bytes = calloc(1, 65536);
    *length = fread(bytes, 1, 65535, file);
    fclose(file);
    return bytes;
}

/* No prefix of a good file is taken, and none crashes. */
static void cut_short(void **state)
{
    char path[PATH_MAX];
    size_t length;
    char *bytes = read_file(two_tasks_path(path), &length);
    for (size_t n = 0; n + 2 < length; n++) {
        att_tasks_t t;
        att_error_t e = {""};
        char *copy = malloc(n + 1); /* exact size: a read past the end is seen */
        memcpy(copy, bytes, n);
        assert_int_equal(att_tasks_parse(copy, n, &t, &e), -ATT_EINPUT);
        free(copy);
    }
    free(bytes);
}

/* The first row of the good file, so often. */
static char *repeated(uint32_t count)
{
    char path[PATH_MAX], *text;
    size_t length;
    char *bytes = read_file(two_tasks_path(path), &length), *row = strstr(bytes, "{\"group\"");
    char *next = strstr(row + 1, "{\"group\"");
    assert_non_null(next);
    FILE *out = open_memstream(&text, &length);
    fprintf(out, "%.*s", (int)(row - bytes), bytes);
    for (uint32_t i = 0; i + 1 < count; i++)
        fprintf(out, "%.*s", (int)(next - row), row);
    fprintf(out, "%s", next);
    fclose(out);
    free(bytes);
    return text;
}

static void tasks_of_many_nodes(void **state)
{
    (void)state;
    att_tasks_t t;
    att_error_t e = {""};
    char *text = repeated(100000);
    if (att_tasks_parse(text, strlen(text), &t, &e) != ATT_OK)
        fail_msg("%s", e.text);
    assert_int_equal(t.count, 100000);
    assert_int_equal(t.rows[99998].trials, 41);
    assert_true(t.rows[99999].kept_default);
    att_tasks_free(&t);
    free(text);
}

static void refused(const char *from, const char *to, int code, const char *part)
{
    char path[PATH_MAX];
    size_t length;
    char *bytes = read_file(two_tasks_path(path), &length);
    char *at = strstr(bytes, from);
    assert_non_null(at);
    char *changed = calloc(1, length + strlen(to) + 1);
    memcpy(changed, bytes, (size_t)(at - bytes));
    strcat(changed, to);
    strcat(changed, at + strlen(from));
    att_tasks_t t;
    att_error_t e = {""};
    int rc = att_tasks_parse(changed, strlen(changed), &t, &e);
    if (rc != code || (part != NULL && strstr(e.text, part) == NULL))
        fail_msg("%s -> %s: %d '%s'", from, to, rc, e.text);
    if (rc == ATT_OK)
        att_tasks_free(&t);
    free(changed);
    free(bytes);
}

static void the_warning(void **state)
{
    char text[ATT_TASK_WARNING];
    att_task_row_t row = {.collective_gain = 0.44, .step_gain = -0.26};
    assert_string_equal(att_task_row_warning(&row, text),
                        "warning: the collective is 44.0 % faster, its step 26.0 % slower; "
                        "--objective step makes the step short");
    row = (att_task_row_t){.step_objective = true, .collective_gain = -0.1, .step_gain = 0.05};
    assert_string_equal(att_task_row_warning(&row, text),
                        "warning: the collective is 10.0 % slower, its step 5.0 % faster");
    row = (att_task_row_t){0};
    assert_string_equal(att_task_row_warning(&row, text), "");
}

static void malformed_files(void **state)
{
    refused("\"version\":1", "\"version\":2", -ATT_EVERSION, "version is 2");
    refused("\"version\":1", "\"version\":\"1\"", -ATT_EINPUT, "version");
    refused("\"version\":1,", "", -ATT_EINPUT, "version");
    refused("\"collective\":\"allgather\"", "\"collective\":\"alltoall\"", -ATT_EINPUT,
            "tasks[0].collective");
    refused("\"collective\":\"allgather\"", "\"collective\":\"keep\"", -ATT_EINPUT,
            "tasks[0].collective");
    refused("\"bytes\":83886080", "\"bytes\":-1", -ATT_EINPUT, "tasks[0].bytes");
    refused("\"bytes\":83886080", "\"bytes\":1.5", -ATT_EINPUT, "tasks[0].bytes");
    refused("\"ranks\":8", "\"disagreement\":{\"collective_gain\":0.2},\"ranks\":8", -ATT_EINPUT,
            "tasks[0].disagreement.collective_gain");
    refused("\"ranks\":8",
            "\"disagreement\":{\"collective_gain\":0.2,\"step_gain\":0.1},\"ranks\":8", -ATT_EINPUT,
            "tasks[0].disagreement.collective_gain");
    refused("\"ranks\":8", "\"ranks\":0", -ATT_EINPUT, "tasks[0].ranks");
    refused("\"median_us\":2172.088", "\"median_us\":-3", -ATT_EINPUT, "tasks[0].tuned.median_us");
    refused("\"channels\":20", "\"channels\":70000", -ATT_EINPUT, "tasks[0].tuned.channels");
    refused("\"algorithm\":\"ring\"", "\"algorithm\":\"keep\"", -ATT_EINPUT, "protocol");
    refused("\"kept_default\":false", "\"kept_default\":0", -ATT_EINPUT, "kept_default");
    refused("\"reason\":\"wins", "\"reason\":\"a\",\"reason\":\"wins", -ATT_EINPUT, "duplicate");
    refused("\"tasks\":[", "\"task\":[", -ATT_EINPUT, "tasks");
    refused("\"waited\":7", "\"waited\":\"7\"", -ATT_EINPUT, "coverage.waited");
    refused("\"off\":1990", "\"off\":-1", -ATT_EINPUT, "coverage.untimed.off");
    /* What later versions add is passed over. */
    refused("\"version\":1", "\"version\":1,\"more\":{\"deep\":[1]}", ATT_OK, NULL);
}

static void texts_are_cut_and_cleaned(void **state)
{
    char json[2048], longest[600];
    memset(longest, 'r', sizeof longest);
    memcpy(longest + 189, "\xc3\xa9\xc3\xa9", 4); /* the cut falls into a character */
    longest[599] = '\0';
    snprintf(json, sizeof json,
             "{\"version\":1,\"nccl_version\":0,\"device\":\"a\\u001b[31mb\",\"tasks\":[{"
             "\"ranks\":2,\"nodes\":1,\"collective\":\"allreduce\",\"bytes\":4,\"reason\":\"%s\","
             "\"default\":{\"setting\":{\"algorithm\":\"keep\",\"protocol\":\"keep\","
             "\"transport\":\"keep\",\"channels\":0,\"threads\":0,\"chunk\":0}},"
             "\"tuned\":{\"setting\":{\"algorithm\":\"keep\",\"protocol\":\"keep\","
             "\"transport\":\"keep\",\"channels\":0,\"threads\":0,\"chunk\":0}}}]}",
             longest);
    att_tasks_t t;
    att_error_t e = {""};
    int rc = att_tasks_parse(json, strlen(json), &t, &e);
    if (rc != ATT_OK)
        fail_msg("%s", e.text);
    assert_string_equal(t.device, "a?[31mb");
    assert_int_equal(strlen(t.rows[0].reason), 191);
    assert_int_equal((unsigned char)t.rows[0].reason[190], 0xa9);
    att_tasks_free(&t);
}

static void no_file(void **state)
{
    att_tasks_t t;
    att_error_t e = {""};
    assert_int_equal(att_tasks_read("/nonexistent/tasks.json", &t, &e), -ATT_ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/tasks.json"));
    assert_int_equal(att_tasks_read("/", &t, &e), -ATT_ESYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(tasks_of_many_nodes),
        cmocka_unit_test(the_warning),
        cmocka_unit_test(malformed_files),
        cmocka_unit_test(texts_are_cut_and_cleaned),
        cmocka_unit_test(no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
