/* Whether the job still calls a task. Times are made up. */
#include "control/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define S 1000000000ull

static void one_that_is_called_once_is_given_up(void **state)
{
    (void)state;
    att_pulse_t pulse = {0};
    att_pulse_note(&pulse, 1, 100 * S);
    assert_true(att_pulse_beats(&pulse, 101 * S));
    att_pulse_note(&pulse, 1, 101 * S);
    assert_false(att_pulse_beats(&pulse, 103 * S));
}

static void one_that_is_called_seldom_keeps_its_rhythm(void **state)
{
    (void)state;
    att_pulse_t pulse = {0};
    att_pulse_note(&pulse, 1, 100 * S);
    assert_false(att_pulse_beats(&pulse, 109 * S));
    att_pulse_note(&pulse, 2, 110 * S);
    assert_true(att_pulse_beats(&pulse, 119 * S));
    assert_true(att_pulse_beats(&pulse, 151 * S));
    assert_false(att_pulse_beats(&pulse, 153 * S));
    att_pulse_note(&pulse, 3, 160 * S);
    assert_true(att_pulse_beats(&pulse, 179 * S));
}

static void one_that_pauses_comes_back_with_its_next_call(void **state)
{
    (void)state;
    att_pulse_t pulse = {0};
    for (uint64_t i = 0; i < 1000; i++)
        att_pulse_note(&pulse, i * 10, 100 * S + i * ATT_PULSE_LOOK_NS);
    assert_true(att_pulse_beats(&pulse, 111 * S));
    assert_false(att_pulse_beats(&pulse, 113 * S));
    att_pulse_note(&pulse, 9991, 300 * S);
    assert_true(att_pulse_beats(&pulse, 301 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_called_once_is_given_up),
        cmocka_unit_test(one_that_is_called_seldom_keeps_its_rhythm),
        cmocka_unit_test(one_that_pauses_comes_back_with_its_next_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
