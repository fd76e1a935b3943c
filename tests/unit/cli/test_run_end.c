/* run end: a run that is under way, has finished, or has lost its sidecar. */
#include "cli/run_end.h"
#include "folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

static void reported(const char *name, int seconds_ago)
{
    char path[PATH_MAX + 64];
    struct timespec times[2];
    write_test_file(name, "{}");
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds_ago;
    times[1] = times[0];
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static const char *said(bool finished)
{
    static char text[ATT_RUN_END_TEXT];
    att_run_end_t end;
    att_tasks_t tasks = {.finished = finished};
    att_run_end_look(test_folder, &end);
    return att_run_end_text(&end, &tasks, text);
}

static void by_the_age_of_the_report(void **state)
{
    assert_string_equal(said(false), ""); /* nothing is known of a folder without anything */
    reported("tasks.json", 1);
    assert_string_equal(said(false), "");
    reported("tasks.json", 600);
    assert_non_null(strstr(said(false), "no report for 600 s: the sidecar is gone or stopped"));
    assert_string_equal(said(true), "");
    reported("tasks.json", -600); /* clocks of machines differ */
    assert_string_equal(said(false), "");
}

/* Then tasks.json is written less often. */
static void thousands_of_tasks_take_longer(void **state)
{
    att_run_end_t end = {.report_age_s = 9};
    assert_true(att_run_is_quiet(&end, &(att_tasks_t){.count = 100}));
    assert_false(att_run_is_quiet(&end, &(att_tasks_t){.count = 20000}));
    end.report_age_s = 30;
    assert_true(att_run_is_quiet(&end, &(att_tasks_t){.count = 20000}));
}

static void of_an_archived_folder(void **state)
{
    reported("tasks.json.gz", 600);
    assert_non_null(strstr(said(false), "no report for 600 s"));
}

static void by_the_manifest(void **state)
{
    reported("tasks.json", 1);
    write_test_file("manifest.json",
                    "{\"version\":1,\"sidecar\":{\"program\":\"x\",\"end\":null}}");
    assert_string_equal(said(false), "");
    write_test_file("manifest.json", "{\"sidecar\":{\"end\":\"killed by signal 9 (Killed)\"}}");
    assert_string_equal(said(false),
                        "not finished: the sidecar (killed by signal 9 (Killed)) left no closing "
                        "report; numbers are those of its last one");
    assert_string_equal(said(true), "");
    write_test_file("manifest.json", "{\"sidecar\":{\"end\":\"\\u001b[2J\\n\xc3\xa9\"}}");
    assert_non_null(strstr(said(false), "the sidecar (?[2J"));
    for (size_t i = 0; i < 3; i++) {
        const char *const damaged[] = {"{\"sidecar\":{\"end\":\"kil", "[]", "{\"sidecar\":7}"};
        write_test_file("manifest.json", damaged[i]);
        assert_string_equal(said(false), "");
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(by_the_age_of_the_report),
        cmocka_unit_test(thousands_of_tasks_take_longer),
        IN_FOLDER(of_an_archived_folder),
        IN_FOLDER(by_the_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
