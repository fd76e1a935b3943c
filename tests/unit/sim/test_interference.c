/* A collective that gets faster with channels while the compute beside it gets slower: alone 32
 * channels are the best, for the step 8 are (test input T12, 3 % noise). */
#include "surfaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SEEDS = 12, BUDGET = 700 };

static double falling(int channels)
{
    return 1000 + 1600.0 / channels;
}

/* Channels that a strategy settles on. */
static void settle(const char *strategy, att_sim_objective_t objective, int channels[SEEDS],
                   double step_us[SEEDS])
{
    struct att_strategy_host *host = plugin_host();
    struct att_surface *surface = surface_of_channels(falling, 32, 16);
    att_sim_task_config_t config = {
        .collective = -1, .objective = objective, .step = {.compute_us = 858, .slowdown = 0.05}};
    struct att_sim_task *task;
    att_sim_optimum_t optimum;
    assert_int_equal(att_sim_task_create(surface, &config, &task, NULL), 0);
    assert_int_equal(att_sim_task_optimum(task, 0, &optimum, NULL), 0);
    for (int i = 0; i < SEEDS; i++) {
        att_sim_run_config_t run = quiet_run(strategy, BUDGET);
        run.noise = 0.03;
        att_sim_outcome_t o;
        assert_int_equal(att_sim_run(task, &run, (uint64_t)i + 1, host, &o, NULL), 0);
        assert_int_equal(o.status, 0);
        channels[i] = o.kept_default ? 16 : o.setting.channels;
        step_us[i] = o.step_us;
    }
    att_sim_task_destroy(task);
    att_surface_close(surface);
    att_strategy_host_destroy(host);
}

static void with_the_step(const char *strategy)
{
    int channels[SEEDS];
    double step_us[SEEDS];
    settle(strategy, ATT_SIM_STEP, channels, step_us);
    for (int i = 0; i < SEEDS; i++)
        if (abs(channels[i] - 8) > 2)
            fail_msg("%s, seed %d: %d channels", strategy, i + 1, channels[i]);
}

static void with_the_collective_alone(const char *strategy)
{
    int channels[SEEDS];
    double step_us[SEEDS];
    double native_us = 858 + 1100 * (0.8 / 1.8);
    settle(strategy, ATT_SIM_COLLECTIVE, channels, step_us);
    for (int i = 0; i < SEEDS; i++) {
        assert_true(channels[i] >= 16);
        assert_true(step_us[i] >= native_us - 1e-6);
    }
}

static void descent_settles_at_eight(void **state)
{
    with_the_step("coordinate_descent");
}

static void default_settles_at_eight(void **state)
{
    with_the_step("default");
}

static void descent_alone_makes_the_step_slower(void **state)
{
    with_the_collective_alone("coordinate_descent");
}

static void default_alone_makes_the_step_slower(void **state)
{
    with_the_collective_alone("default");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(descent_settles_at_eight),
                                       cmocka_unit_test(default_settles_at_eight),
                                       cmocka_unit_test(descent_alone_makes_the_step_slower),
                                       cmocka_unit_test(default_alone_makes_the_step_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
