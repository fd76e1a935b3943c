/* tasks.json of more tasks than a segment holds: made of copies, and less often the longer it
 * takes. */
#include "base/clock.h"
#include "control/run_folder.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 3 * ATT_TASKS };

/* Memory that was freed stays in use then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static char folder[] = "/tmp/att-run-folder-XXXXXX";
static char reason[64];
static att_task_report_t tasks[COUNT];

static json_t *read_tasks(size_t expected)
{
    char path[64];
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "tasks")), expected);
    return root;
}

static void fill(void)
{
    strcpy(reason, "wins");
    for (uint32_t i = 0; i < COUNT; i++)
        tasks[i] = (att_task_report_t){
            .hash = i, .bytes = 4096, .calls_seen = i, .reason = reason, .late_rank = ATT_NONE};
}

static void every_task_is_written(void **state)
{
    (void)state;
    att_error_t error;
    struct att_writer *writer;
    struct att_run_folder *run;
    char word[16] = "running", device[16] = "H200";
    att_run_totals_t totals = {.state = word, .device = device};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(att_writer_create(&writer, &error), ATT_OK);
    assert_int_equal(att_run_folder_open(folder, writer, &run, &error), ATT_OK);
    fill();
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(att_run_folder_tasks(run, &totals, tasks, COUNT, 0), ATT_OK);
    /* Whatever becomes of the caller's. */
    memset(tasks, 0xff, sizeof tasks);
    strcpy(reason, "gone");
    strcpy(word, "gone");
    strcpy(device, "gone");
    att_writer_flush(writer);
    /* The copies and the text, which is some 7 MB. */
    getrusage(RUSAGE_SELF, &after);
    if (!SANITIZED)
        assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 32 << 10);
    json_t *root = read_tasks(COUNT);
    assert_string_equal(json_string_value(json_object_get(root, "state")), "running");
    assert_string_equal(json_string_value(json_object_get(root, "device")), "H200");
    json_t *row = json_array_get(json_object_get(root, "tasks"), COUNT - 1);
    assert_int_equal(json_integer_value(json_object_get(row, "calls_seen")), COUNT - 1);
    assert_string_equal(json_string_value(json_object_get(row, "reason")), "wins");
    json_decref(root);

    fill();
    uint64_t began_ns = att_clock_ns();
    att_run_folder_tasks(run, &totals, tasks, 1, 0);
    att_writer_flush(writer);
    json_decref(read_tasks(1));
    /* Ten times as long as the large one took has not passed, or this machine stood still. */
    att_run_folder_tasks(run, &totals, tasks, 2, 0);
    bool soon = att_clock_ns() - began_ns < 50000000;
    att_writer_flush(writer);
    if (soon)
        json_decref(read_tasks(1));
    strcpy(reason, "caf\xc3"); /* cut within a letter: no JSON has that */
    att_run_folder_tasks(run, &totals, tasks, 3, 1);
    att_writer_destroy(writer);
    root = read_tasks(3);
    row = json_array_get(json_object_get(root, "tasks"), 2);
    assert_string_equal(json_string_value(json_object_get(row, "reason")), "caf?");
    json_decref(root);
    att_run_folder_close(run);
    static const char *const files[] = {"tasks.json", "trials.jsonl", "lists.jsonl"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_is_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
