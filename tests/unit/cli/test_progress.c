/* progress: the words of the line. */
#include "cli/progress.h"
#include "tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void words(void **state)
{
    att_tasks_t t;
    char text[200], small[12];
    read_two_tasks(&t);
    assert_string_equal(att_progress_text(&t, 12.4, text, sizeof text),
                        "12 s: 2 tasks, 2 settled; lost 0.27 %");
    snprintf(t.rows[0].phase, sizeof t.rows[0].phase, "search");
    assert_string_equal(
        att_progress_text(&t, 1, text, sizeof text),
        "1 s: 2 tasks, 1 settled; allgather 80M search, 41 trials, 1.28x; lost 0.27 %");
    assert_string_equal(att_progress_text(&t, 1, small, sizeof small), "1 s: 2 task");
    t.count = 0;
    t.cost.run_us = 0;
    assert_string_equal(att_progress_text(&t, 0, text, sizeof text), "0 s: 0 tasks, 0 settled");
    t.count = 1;
    t.rows[0].tuned.median_us = 0;
    assert_string_equal(att_progress_text(&t, 3, text, sizeof text),
                        "3 s: 1 task, 0 settled; allgather 80M search, 41 trials");
    att_tasks_free(&t);
}

static void silent_without_a_terminal(void **state)
{
    att_progress_t p;
    att_progress_init(&p, "/nonexistent", true);
    assert_false(p.on);
    att_progress_update(&p);
    att_progress_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(silent_without_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
