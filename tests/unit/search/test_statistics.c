#include "search/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void medians(void **state)
{
    (void)state;
    assert_float_equal(att_median((double[]){3}, 1), 3, 0);
    assert_float_equal(att_median((double[]){4, 1}, 2), 2.5, 0);
    assert_float_equal(att_median((double[]){9, 1, 5}, 3), 5, 0);
    assert_float_equal(att_median(NULL, 0), 0, 0);
    assert_float_equal(att_midmean(NULL, 0), 0, 0);
    assert_float_equal(att_midmean((double[]){4, 1, 10}, 3), 5, 1e-12);
    assert_float_equal(att_midmean((double[]){900, 4, 0, 6}, 4), 5, 1e-12);
    assert_float_equal(att_midmean((double[]){9, 1, 1, 1, 1, 3, 3, 1e9}, 8), 2, 1e-12);
}

static void moments(void **state)
{
    (void)state;
    const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
    assert_float_equal(att_mean(v, 8), 5, 1e-12);
    assert_float_equal(att_stddev(v, 8), 2.13808993529939, 1e-9); /* R: sd(v) */
    assert_float_equal(att_stddev(v, 1), 0, 0);
}

static void spread_ignores_an_outlier(void **state)
{
    (void)state;
    const double calm[] = {98, 99, 100, 101, 102}, wild[] = {98, 99, 100, 101, 10000};
    assert_float_equal(att_relative_spread(calm, 5), 0.014826, 1e-9);
    assert_float_equal(att_relative_spread(wild, 5), 0.014826, 1e-9);
}

/* R: qbinom and pbinom; largest k with pbinom(k - 1, n, 0.5) <= level. */
static void sign_ranks(void **state)
{
    (void)state;
    assert_int_equal(att_sign_rank(4, 0.05), 0);
    assert_int_equal(att_sign_rank(5, 0.05), 1);
    assert_int_equal(att_sign_rank(7, 0.05), 1);
    assert_int_equal(att_sign_rank(8, 0.05), 2);
    assert_int_equal(att_sign_rank(10, 0.05), 2);
    assert_int_equal(att_sign_rank(20, 0.05), 6);
    assert_int_equal(att_sign_rank(30, 0.05), 11);
    assert_int_equal(att_sign_rank(40, 0.05), 15);
    assert_int_equal(att_sign_rank(100, 0.05), 42);
    assert_int_equal(att_sign_rank(100, 0.025), 40);
    assert_int_equal(att_sign_rank(7, 0.05 / 6), 1);
    assert_int_equal(att_sign_rank(14, 0.05 / 6), 3);
}

static void bounds_are_order_statistics(void **state)
{
    (void)state;
    const double v[] = {7, 3, 8, 1, 5, 2, 6, 4};
    assert_float_equal(att_median_lower(v, 8, 0.05), 2, 0);
    assert_float_equal(att_median_upper(v, 8, 0.05), 7, 0);
    assert_true(isinf(att_median_lower(v, 4, 0.05)) && att_median_lower(v, 4, 0.05) < 0);
    assert_true(isinf(att_median_upper(v, 4, 0.05)) && att_median_upper(v, 4, 0.05) > 0);
}

/* The bound is wrong in at most 5 % of the cases: all 2^10 equally likely sign patterns. */
static void bound_holds_its_level(void **state)
{
    (void)state;
    int wrong = 0;
    for (int pattern = 0; pattern < 1024; pattern++) {
        double v[10];
        for (int i = 0; i < 10; i++)
            v[i] = (pattern >> i & 1 ? 1 : -1) * (1 + i); /* median 0 */
        wrong += att_median_lower(v, 10, 0.05) > 0;
    }
    assert_int_equal(wrong, 11); /* 1 + 10 of 1024: P(B <= 1) = 1.07 % */
}

static void expected_gains(void **state)
{
    (void)state;
    assert_float_equal(att_expected_gain(0, 2), 2 * 0.39894228, 1e-7);
    assert_float_equal(att_expected_gain(1, 1), 1.08331547, 1e-7); /* phi(1) + Phi(1) */
    assert_float_equal(att_expected_gain(-1, 1), 0.08331547, 1e-7);
    assert_float_equal(att_expected_gain(3, 0), 3, 0);
    assert_float_equal(att_expected_gain(-3, 0), 0, 0);
    assert_true(isinf(att_expected_gain(-3, INFINITY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(moments),
        cmocka_unit_test(spread_ignores_an_outlier),
        cmocka_unit_test(sign_ranks),
        cmocka_unit_test(bounds_are_order_statistics),
        cmocka_unit_test(bound_holds_its_level),
        cmocka_unit_test(expected_gains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
