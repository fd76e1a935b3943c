#include "search/probe.h"

#include "../misbehave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int changed;

static void attempt(void *context)
{
    changed = 1;
    puts("not to be seen");
    misbehave(context);
}

static void every_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *what, *says;
    } cases[] = {{"crash", "it crashed (signal 6, Aborted)"},
                 {"hang", "it took longer than 0.2 s"},
                 {"leave", "it ended its process (exit status 0)"},
                 {"exit", "it ended its process (exit status 3)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_error_t error = {""};
        void *context = (void *)(uintptr_t)cases[i].what;
        assert_int_equal(att_probe(attempt, context, 0.2, "it", &error), -ATT_EPLUGIN);
        assert_string_equal(error.text, cases[i].says);
    }
}

static void what_returns_is_well_and_changes_nothing_here(void **state)
{
    (void)state;
    changed = 0;
    assert_int_equal(att_probe(attempt, (char[]){"return"}, 5, "it", NULL), ATT_OK);
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_told),
        cmocka_unit_test(what_returns_is_well_and_changes_nothing_here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
