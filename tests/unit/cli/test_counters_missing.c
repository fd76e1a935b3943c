/* counters missing: what the user named and the sidecar cannot count, and nothing else. */
#include "cli/counters_missing.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static char text[ATT_COUNTERS_MISSING];

static void left(const char *lines)
{
    char folder[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%s/counters", test_folder);
    mkdir(folder, 0755);
    write_test_file("counters/node-0000.jsonl", lines);
}

static void only_what_was_named(void **state)
{
    left("{\"version\":1,\"what\":\"counters\",\"node\":0}\n"
         "{\"unavailable\":\"nvml\",\"reason\":\"no component\"}\n"
         "{\"unavailable\":\"a::B\",\"reason\":\"not\\nhere\"}\n"
         "{\"unavailable\":\"c:::d\",\"reason\":\"no component\"}\n"
         "{\"unavailable\":\"cut off");
    assert_string_equal(att_counters_missing(test_folder, "on", text), "");
    assert_string_equal(att_counters_missing(test_folder, "on,a::BC,a::,x", text), "");
    assert_string_equal(att_counters_missing(test_folder, "on,a::B", text),
                        "--counters: cannot be counted: a::B (not here); attune info --counters "
                        "lists what can");
    assert_string_equal(att_counters_missing(test_folder, "x,c:::d,a::B", text),
                        "--counters: cannot be counted: a::B (not here), c:::d (no component); "
                        "attune info --counters lists what can");
}

static void without_papi(void **state)
{
    left("{\"unavailable\":\"PAPI\",\"reason\":\"it cannot be loaded\"}\n");
    assert_string_equal(att_counters_missing(test_folder, "on", text), "");
    assert_non_null(strstr(att_counters_missing(test_folder, "on,a::B", text),
                           "cannot be counted: on,a::B (it cannot be loaded);"));
}

static void no_file(void **state)
{
    assert_string_equal(att_counters_missing(test_folder, "a::B", text), "");
}

static void many(void **state)
{
    char lines[8192] = "", events[2048] = "on";
    for (int i = 0; i < 40; i++) {
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines),
                 "{\"unavailable\":\"event::NUMBER%02d\",\"reason\":\"this machine does not have "
                 "it\"}\n",
                 i);
        snprintf(events + strlen(events), sizeof events - strlen(events), ",event::NUMBER%02d", i);
    }
    left(lines);
    att_counters_missing(test_folder, events, text);
    assert_non_null(strstr(text, "event::NUMBER00 (this machine does not have it), event::"));
    assert_non_null(strstr(text, " more; attune info --counters lists what can"));
    char reason[3000];
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    snprintf(lines, sizeof lines, "{\"unavailable\":\"a\",\"reason\":\"%s\"}\n", reason);
    left(lines);
    assert_non_null(strstr(att_counters_missing(test_folder, "a", text), "lists what can"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(only_what_was_named),
        IN_FOLDER(without_papi),
        IN_FOLDER(no_file),
        IN_FOLDER(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
