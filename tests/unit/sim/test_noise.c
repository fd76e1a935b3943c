#include "sim/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "near.h"

enum { CALLS = 200000 };

static void log_normal_with_median_one(void **state)
{
    (void)state;
    static const double deviations[] = {0.01, 0.05, 0.3};
    for (int d = 0; d < 3; d++) {
        double sum = 0, squares = 0;
        uint64_t below = 0;
        for (uint64_t call = 0; call < CALLS; call++) {
            double x = att_sim_noise(deviations[d], 7, call);
            assert_true(x > 0);
            sum += x;
            squares += x * x;
            below += x < 1;
        }
        double mean = sum / CALLS, deviation = sqrt(squares / CALLS - mean * mean) / mean;
        assert_true(fabs(deviation / deviations[d] - 1) < 0.02);
        assert_true(fabs((double)below / CALLS - 0.5) < 0.005);
        /* The mean of a log-normal with median 1 is sqrt(1 + deviation^2). */
        assert_true(fabs(mean / sqrt(1 + deviations[d] * deviations[d]) - 1) < 0.003);
    }
}

static void follows_from_seed_and_call(void **state)
{
    (void)state;
    assert_near(att_sim_noise(0, 1, 1), 1, 0);
    assert_near(att_sim_noise(0.05, 3, 9), att_sim_noise(0.05, 3, 9), 0);
    assert_true(att_sim_noise(0.05, 3, 9) != att_sim_noise(0.05, 4, 9));
    assert_true(att_sim_noise(0.05, 3, 9) != att_sim_noise(0.05, 3, 10));
    /* Neighbouring seeds and calls are not related. */
    double product = 0;
    for (uint64_t call = 0; call < CALLS; call++)
        product += (att_sim_uniform(1, call) - 0.5) * (att_sim_uniform(2, call) - 0.5) +
                   (att_sim_uniform(1, call) - 0.5) * (att_sim_uniform(1, call + 1) - 0.5);
    assert_true(fabs(product / CALLS) < 0.002);
}

static void uniform_is_uniform(void **state)
{
    (void)state;
    uint32_t counts[10] = {0};
    for (uint64_t call = 0; call < CALLS; call++) {
        double u = att_sim_uniform(5, call);
        assert_true(u >= 0 && u < 1);
        counts[(int)(10 * u)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_true(abs((int)counts[i] - CALLS / 10) < 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(log_normal_with_median_one),
                                       cmocka_unit_test(follows_from_seed_and_call),
                                       cmocka_unit_test(uniform_is_uniform)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
