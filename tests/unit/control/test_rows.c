/* Rows of other agents at agent 0: many, found again, and bounded whatever an agent sends. */
#include "control/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static struct att_rows *rows;

static int setup(void **state)
{
    (void)state;
    return att_rows_create(16, &rows);
}

static int teardown(void **state)
{
    (void)state;
    att_rows_destroy(rows);
    return 0;
}

static att_task_report_t report_of(uint32_t task)
{
    return (att_task_report_t){.hash = task / 20, .bytes = 1024u << task % 20, .ranks = 8};
}

static void more_than_a_segment_holds(void **state)
{
    (void)state;
    clock_t began = clock(); /* of the processor: others may use it too */
    for (int again = 0; again < 2; again++)
        for (uint32_t from = 1; from < 16; from++)
            for (uint32_t task = 0; task < ATT_TASKS; task++) {
                att_task_report_t report = report_of(task);
                report.calls_seen = (uint64_t)again * 1000 + from;
                assert_int_equal(att_rows_put(rows, from, &report, again ? "late" : "early", 0), 0);
            }
    /* 60,000 rows take a second by far; looked for one by one they took a minute. */
    assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
    assert_int_equal(att_rows_count(rows), 15 * ATT_TASKS);
    for (uint32_t i = 0; i < att_rows_count(rows); i++) {
        const att_task_report_t *row = att_rows_get(rows, i);
        assert_int_equal(row->calls_seen, 1000 + 1 + i / ATT_TASKS);
        assert_int_equal(row->bytes, report_of(i % ATT_TASKS).bytes);
        assert_int_equal(row->hash, report_of(i % ATT_TASKS).hash);
        assert_string_equal(row->reason, "late");
    }
}

static void tasks_differ_in_every_part_of_their_key(void **state)
{
    (void)state;
    att_task_report_t one = report_of(0), other[5] = {one, one, one, one, one};
    other[0].hash++;
    other[1].bytes++;
    other[2].ranks++;
    other[3].collective++;
    other[4].legal_pairs++;
    assert_int_equal(att_rows_put(rows, 1, &one, "", 0), ATT_OK);
    assert_int_equal(att_rows_put(rows, 2, &one, "", 0), ATT_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(att_rows_put(rows, 1, &other[i], "", 0), ATT_OK);
    assert_int_equal(att_rows_count(rows), 7);
    one.state = ATT_TASK_ENDED;
    assert_int_equal(att_rows_put(rows, 1, &one, "", 0), ATT_OK);
    assert_int_equal(att_rows_count(rows), 7);
    assert_int_equal(att_rows_get(rows, 0)->state, ATT_TASK_ENDED);
}

static void an_agent_that_floods_takes_no_room_of_others(void **state)
{
    (void)state;
    att_task_report_t report;
    for (uint32_t task = 0; task < 10 * ATT_TASKS; task++) {
        report = report_of(task);
        assert_int_equal(att_rows_put(rows, 3, &report, "", 0), task < ATT_TASKS ? 0 : -ATT_EFULL);
    }
    report = report_of(0);
    assert_int_equal(att_rows_put(rows, 3, &report, "known", 0), ATT_OK);
    assert_string_equal(att_rows_get(rows, 0)->reason, "known");
    assert_int_equal(att_rows_put(rows, 4, &report, "", 0), ATT_OK);
    assert_int_equal(att_rows_put(rows, 16, &report, "", 0), -ATT_EINPUT);
    assert_int_equal(att_rows_count(rows), ATT_TASKS + 1);
}

static void the_age_of_a_row_grows_until_it_comes_again(void **state)
{
    (void)state;
    att_task_report_t report = report_of(0);
    assert_int_equal(att_rows_put(rows, 1, &report, "", 1000000000), ATT_OK);
    assert_true(att_rows_age_s(rows, 0, 4000000000) == 3);
    assert_true(att_rows_age_s(rows, 0, 0) == 0);
    assert_int_equal(att_rows_put(rows, 1, &report, "", 3000000000), ATT_OK);
    assert_true(att_rows_age_s(rows, 0, 4000000000) == 1);
}

static void a_reason_without_an_end_is_cut(void **state)
{
    (void)state;
    char reason[1024];
    memset(reason, 'x', sizeof reason);
    att_task_report_t report = report_of(0);
    assert_int_equal(att_rows_put(rows, 1, &report, reason, 0), ATT_OK);
    assert_true(strlen(att_rows_get(rows, 0)->reason) < 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(more_than_a_segment_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(tasks_differ_in_every_part_of_their_key, setup, teardown),
        cmocka_unit_test_setup_teardown(an_agent_that_floods_takes_no_room_of_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_age_of_a_row_grows_until_it_comes_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_reason_without_an_end_is_cut, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
