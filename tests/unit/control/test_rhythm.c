/* Calls that come in a pattern, as the buckets of a training step. */
#include "control/rhythm.h"

#include "search/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t random_state;
static double noise(void) /* of variance 1, near normal */
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(random_state >> 33) / 2147483648.0;
    }
    return sum;
}

/* `period` - 1 short calls of 1 ms and one of 9 ms with 5 % noise each. */
static double step_of(uint64_t call, uint32_t period)
{
    return (call % period == period - 1 ? 9000 : 1000) * (1 + 0.05 * noise());
}

static double spread(const double *us, uint32_t n)
{
    return att_stddev(us, n) / att_mean(us, n);
}

static void a_pattern_is_found_and_made_level(void **state)
{
    (void)state;
    random_state = 1;
    for (uint32_t period = 2; period <= ATT_RHYTHM_PERIOD; period++) {
        att_rhythm_t r = {0};
        double level[400], raw[400];
        uint32_t n = 0;
        for (uint64_t call = 100; call < 500 + 4 * ATT_RHYTHM_CALLS; call++) {
            double us = step_of(call, period);
            att_rhythm_add(&r, call, us);
            if (call < 100 + ATT_RHYTHM_CALLS || n == 400)
                continue;
            assert_int_equal(r.period, period);
            raw[n] = us;
            level[n++] = att_rhythm_level(&r, call, us);
        }
        double mean = (9000.0 + 1000 * (period - 1)) / period;
        assert_float_equal(att_mean(level, n) / mean, 1, 0.02);
        assert_true(spread(level, n) < 0.25 * spread(raw, n));
    }
}

/* Every third call has a setting that makes each step 100 us longer: as much of it is left. */
static void what_a_setting_adds_is_left(void **state)
{
    (void)state;
    att_rhythm_t r = {0};
    double plain[1000], slowed[1000];
    uint32_t n[2] = {0};
    random_state = 2;
    for (uint64_t call = 0; call < 1000; call++) {
        int slow = call / 5 % 3 == 0;
        double us = step_of(call, 4) + 100 * slow;
        att_rhythm_add(&r, call, us);
        if (call < 64)
            continue;
        double level = att_rhythm_level(&r, call, us);
        if (slow)
            slowed[n[1]++] = level;
        else
            plain[n[0]++] = level;
    }
    double added = att_mean(slowed, n[1]) - att_mean(plain, n[0]);
    assert_true(added > 60 && added < 140);
}

static void what_has_no_pattern_is_left_alone(void **state)
{
    (void)state;
    random_state = 3;
    for (int kind = 0; kind < 3; kind++) {
        att_rhythm_t r = {0};
        for (uint64_t call = 0; call < 2000; call++) {
            /* even; noisy; with a pause now and then */
            double us = 1000 * (1 + (kind == 0 ? 0.001 : 0.2) * noise());
            us += kind == 2 && call % 37 == 0 ? 20000 : 0;
            us = us > 1 ? us : 1;
            att_rhythm_add(&r, call, us);
            assert_true(r.period < 2);
            assert_float_equal(att_rhythm_level(&r, call, us), us, 0);
        }
    }
}

/* Three pauses, checkpoints of 60 s, wherever they fall. */
static void pauses_hide_no_pattern(void **state)
{
    (void)state;
    random_state = 6;
    for (uint32_t period = 2; period <= ATT_RHYTHM_PERIOD; period++)
        for (uint32_t shift = 0; shift < period; shift++) {
            att_rhythm_t r = {0};
            for (uint64_t call = 0; call < ATT_RHYTHM_CALLS; call++)
                att_rhythm_add(&r, call,
                               step_of(call, period) + (call % 22 == shift ? 6e7 : 0));
            assert_int_equal(r.period, period);
        }
}

/* A step with other calls in between (an evaluation) moves the pattern: it is found again. */
static void a_pattern_that_moves_is_learnt_anew(void **state)
{
    (void)state;
    att_rhythm_t r = {0};
    double level[64];
    random_state = 4;
    for (uint64_t call = 0; call < 200; call++)
        att_rhythm_add(&r, call, step_of(call, 3));
    for (uint64_t call = 200; call < 200 + ATT_RHYTHM_CALLS; call++)
        att_rhythm_add(&r, call, step_of(call + 1, 3));
    for (uint64_t call = 264; call < 328; call++) {
        double us = step_of(call + 1, 3);
        att_rhythm_add(&r, call, us);
        level[call - 264] = att_rhythm_level(&r, call, us);
    }
    assert_int_equal(r.period, 3);
    assert_float_equal(att_mean(level, 64) / (11000.0 / 3), 1, 0.02);
    assert_true(spread(level, 64) < 0.15);
}

static void calls_that_are_missing_do_no_harm(void **state)
{
    (void)state;
    att_rhythm_t r = {0};
    random_state = 5;
    assert_float_equal(att_rhythm_level(&r, 7, 100), 100, 0);
    for (uint64_t call = 0; call < 1000; call++)
        if (noise() < 0)
            att_rhythm_add(&r, call, step_of(call, 4));
    assert_int_equal(r.period, 4);
    /* A remainder that was never seen has no usual time. */
    att_rhythm_t some = {0};
    for (uint64_t call = 0; call < 64; call++)
        if (call % 4 != 2)
            att_rhythm_add(&some, call, step_of(call, 4));
    if (some.period == 4)
        assert_true(isnan(att_rhythm_level(&some, 66, 1000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_is_found_and_made_level),
        cmocka_unit_test(what_a_setting_adds_is_left),
        cmocka_unit_test(what_has_no_pattern_is_left_alone),
        cmocka_unit_test(pauses_hide_no_pattern),
        cmocka_unit_test(a_pattern_that_moves_is_learnt_anew),
        cmocka_unit_test(calls_that_are_missing_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
