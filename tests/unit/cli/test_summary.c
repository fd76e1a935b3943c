/* summary: bandwidths by nccl-tests' formulas, null where nothing is known, the table's words. */
#include "base/bandwidth.h"
#include "cli/summary.h"
#include "folder.h"
#include "tasks.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static void formulas(void **state)
{
    assert_float_equal(att_algorithm_gbs(83886080, 2788.766), 30.08, 0.0001);
    assert_float_equal(att_algorithm_gbs(1000000000, 1e6), 1, 1e-12);
    assert_float_equal(att_algorithm_gbs(1, 0), 0, 0);
    assert_float_equal(att_bus_factor(ATT_COLLECTIVE_ALL_REDUCE, 8), 1.75, 1e-12);
    assert_float_equal(att_bus_factor(ATT_COLLECTIVE_ALL_GATHER, 4), 0.75, 1e-12);
    assert_float_equal(att_bus_factor(ATT_COLLECTIVE_REDUCE_SCATTER, 4), 0.75, 1e-12);
    assert_float_equal(att_bus_factor(ATT_COLLECTIVE_BROADCAST, 4), 1, 0);
    assert_float_equal(att_bus_factor(ATT_COLLECTIVE_REDUCE, 4), 1, 0);
}

static json_t *written(const att_summary_t *summary)
{
    char path[PATH_MAX + 32];
    att_error_t e = {""};
    snprintf(path, sizeof path, "%s/summary.json", test_folder);
    if (att_summary_write(summary, path, &e) != ATT_OK)
        fail_msg("%s", e.text);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

static void file_form(void **state)
{
    att_tasks_t t;
    att_findings_t f = {.has_fabric = true,
                        .fabric = "model",
                        .surface = "s",
                        .load = "heavy",
                        .ranks = 8,
                        .has_bench = true};
    att_summary_t s;
    read_two_tasks(&t);
    att_summary_init(&s, "caf\xe9", "none", "", "none", "exit status 0", &f, &t);
    json_t *root = written(&s), *setting;
    const char *name, *fabric, *surface, *load, *collective, *reason, *algorithm, *protocol,
        *transport;
    json_int_t version, ranks, mismatches, errors, bytes, trials, calls, channels, threads, chunk;
    double default_gbs, tuned_gbs, default_busbw, tuned_busbw, speedup;
    int kept;
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    assert_int_equal(json_unpack(root, "{s:I}", "version", &version), 0);
    assert_int_equal(version, 1);
    assert_int_equal(json_unpack(run, "{s:s,s:s,s:s,s:s,s:I,s:I,s:I}", "name", &name, "fabric",
                                 &fabric, "surface", &surface, "load", &load, "ranks", &ranks,
                                 "mismatches", &mismatches, "result_errors", &errors),
                     0);
    assert_string_equal(name, "caf?");
    assert_string_equal(fabric, "model");
    assert_string_equal(json_string_value(json_object_get(run, "state")), "finished");
    assert_string_equal(surface, "s");
    assert_string_equal(load, "heavy");
    assert_int_equal(ranks, 8);
    assert_int_equal(mismatches, 0);
    assert_int_equal(errors, 0);
    json_t *task = json_array_get(json_object_get(run, "tasks"), 0);
    assert_int_equal(json_unpack(task, "{s:s,s:I,s:F,s:F,s:F,s:F,s:F,s:I,s:I,s:o,s:b,s:s}",
                                 "collective", &collective, "bytes", &bytes, "default_gbs",
                                 &default_gbs, "tuned_gbs", &tuned_gbs, "default_busbw_gbs",
                                 &default_busbw, "tuned_busbw_gbs", &tuned_busbw, "speedup",
                                 &speedup, "trials", &trials, "calls", &calls, "setting", &setting,
                                 "kept_default", &kept, "reason", &reason),
                     0);
    assert_string_equal(collective, "allgather");
    assert_float_equal(tuned_gbs, 38.62, 0.001);
    assert_float_equal(tuned_busbw, 38.62 * 7 / 8, 0.001);
    assert_float_equal(speedup, 2788.766 / 2172.088, 0.0001);
    assert_int_equal(kept, 0);
    assert_int_equal(json_unpack(setting, "{s:s,s:s,s:s,s:I,s:I,s:I !}", "algorithm", &algorithm,
                                 "protocol", &protocol, "transport", &transport, "channels",
                                 &channels, "threads", &threads, "chunk", &chunk),
                     0);
    assert_string_equal(transport, "keep");
    assert_int_equal(chunk, 131072);
    json_decref(root);
    att_tasks_free(&t);
}

static void unknown_is_null(void **state)
{
    att_task_row_t row = {.ranks = 2,
                          .nodes = 1,
                          .collective = ATT_COLLECTIVE_ALL_REDUCE,
                          .bytes = 8,
                          .native = {.setting = ATT_SETTING_KEEP},
                          .tuned = {.setting = ATT_SETTING_KEEP}};
    att_tasks_t t = {.rows = &row, .count = 1};
    att_findings_t f = {.has_fabric = false};
    att_summary_t s;
    att_summary_init(&s, "n", "none", "", "none", "exit status 0", &f, &t);
    json_t *root = written(&s);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    json_t *task = json_array_get(json_object_get(run, "tasks"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "fabric")), "gpu");
    assert_true(json_is_null(json_object_get(run, "surface")));
    assert_true(json_is_null(json_object_get(run, "mismatches")));
    assert_true(json_is_null(json_object_get(run, "result_errors")));
    assert_true(json_is_null(json_object_get(task, "default_gbs")));
    assert_true(json_is_null(json_object_get(task, "speedup")));
    json_decref(root);
}

static char *printed(const att_summary_t *summary);

static int count_of(const char *text, const char *word)
{
    int count = 0;
    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        count++;
    }
    return count;
}

/* NCCL's choice against itself is no speedup of 1; a winner found before stays one. */
static void a_failed_search_has_no_speedup(void **state)
{
    att_tasks_t t;
    att_findings_t f = {.has_fabric = false};
    att_summary_t s;
    const char *why;
    read_two_tasks(&t);
    assert_int_equal(att_tasks_failed(&t, &why), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(t.rows[i].phase, sizeof t.rows[i].phase, "failed");
        snprintf(t.rows[i].reason, sizeof t.rows[i].reason, "broke %d", i);
        t.rows[i].kept_default = i == 1;
        t.rows[i].native.median_us = t.rows[i].tuned.median_us = 100;
    }
    assert_int_equal(att_tasks_failed(&t, &why), 1);
    assert_string_equal(why, "broke 1");
    att_summary_init(&s, "n", "none", "", "none", "exit status 0", &f, &t);
    json_t *root = written(&s);
    json_t *tasks = json_object_get(json_array_get(json_object_get(root, "runs"), 0), "tasks");
    assert_float_equal(json_real_value(json_object_get(json_array_get(tasks, 0), "speedup")), 1,
                       1e-12);
    assert_true(json_is_null(json_object_get(json_array_get(tasks, 1), "speedup")));
    json_decref(root);
    char *text = printed(&s);
    assert_int_equal(count_of(text, "1.000x"), 1);
    assert_non_null(strstr(text, "not tuned"));
    assert_null(strstr(text, "kept NCCL's choice"));
    free(text);
    att_tasks_free(&t);
}

static char *printed(const att_summary_t *summary)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    att_summary_print(summary, out);
    fclose(out);
    return text;
}

static void table_words(void **state)
{
    att_tasks_t t;
    att_findings_t f = {.has_fabric = false};
    att_summary_t s;
    read_two_tasks(&t);
    snprintf(t.rows[0].phase, sizeof t.rows[0].phase, "search");
    t.rows[0].reason[0] = '\0';
    t.rows[0].native.setting = ATT_SETTING_KEEP;
    t.rows[0].native.median_us = 0;
    t.rows[1].collective = ATT_COLLECTIVE_ALL_GATHER;
    t.rows[1].bytes = t.rows[0].bytes;
    snprintf(t.rows[1].group, sizeof t.rows[1].group, "0x99");
    att_summary_init(&s, "n", "real", "", "none", "exit status 0", &f, &t);
    char *text = printed(&s);
    assert_non_null(strstr(text, "# n: 8 ranks on the host fabric, real\n"));
    assert_non_null(strstr(text, "allgather 80M x8 0x1234abcd"));
    assert_non_null(strstr(text, "allgather 80M x8 0x99"));
    assert_non_null(strstr(text, "not seen"));
    assert_non_null(strstr(text, "\n                                 search\n"));
    assert_null(strstr(text, "checks:"));
    assert_null(strstr(text, "not finished"));
    free(text);
    t.count = 0;
    text = printed(&s);
    assert_non_null(strstr(text, "no collective was seen"));
    free(text);
    att_tasks_free(&t);
}

/* A sidecar that was killed is no run that has ended, and none in which nothing was seen. */
static void a_sidecar_that_left_no_closing_report(void **state)
{
    att_tasks_t t;
    att_findings_t f = {.has_fabric = false};
    att_summary_t s;
    read_two_tasks(&t);
    t.finished = false;
    att_summary_init(&s, "n", "none", "", "none", "killed by signal 9 (Killed)", &f, &t);
    char *text = printed(&s);
    assert_int_equal(count_of(text,
                              "# not finished: the sidecar (killed by signal 9 (Killed)) left "
                              "no closing report; numbers are those of its last one\n"),
                     1);
    free(text);
    json_t *root = written(&s), *run = json_array_get(json_object_get(root, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "state")), "unfinished");
    json_decref(root);
    t.count = 0;
    text = printed(&s);
    assert_int_equal(count_of(text, "# not finished: "), 1);
    assert_int_equal(count_of(text, "no collective was seen"), 0);
    free(text);
    att_tasks_free(&t);
}

/* As a job of many nodes has: the time must not grow with the square of their number. */
static void a_table_of_many_tasks(void **state)
{
    enum { COUNT = 60000 };
    att_tasks_t t;
    att_findings_t f = {.has_fabric = false};
    att_summary_t s;
    read_two_tasks(&t);
    att_task_row_t *rows = calloc(COUNT, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < COUNT; i++) {
        rows[i] = t.rows[0];
        rows[i].bytes = 1000 + i / 2; /* of two groups each, but for the last ones */
        snprintf(rows[i].group, sizeof rows[i].group, "0x%x", i);
    }
    rows[COUNT - 1].bytes++;
    att_tasks_t many = t;
    many.rows = rows;
    many.count = COUNT;
    att_summary_init(&s, "n", "none", "", "none", "exit status 0", &f, &many);
    clock_t began = clock(); /* of the processor: others may use it too */
    char *text = printed(&s);
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
    assert_non_null(strstr(text, "allgather 1000 x8 0x0 "));
    assert_non_null(strstr(text, "allgather 1000 x8 0x1 "));
    assert_non_null(strstr(text, "allgather 30998 x8 0xea5d "));
    assert_non_null(strstr(text, "allgather 30999 x8  "));
    free(text);
    free(rows);
    att_tasks_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test_setup_teardown(file_form, make_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(unknown_is_null, make_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(a_failed_search_has_no_speedup, make_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(table_words),
        cmocka_unit_test(a_table_of_many_tasks),
        cmocka_unit_test_setup_teardown(a_sidecar_that_left_no_closing_report, make_test_folder,
                                        remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
