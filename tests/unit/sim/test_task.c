#include "surfaces.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"

static double falling(int channels)
{
    return 1000 + 1600.0 / channels;
}

static struct att_sim_task *task_of(const struct att_surface *surface,
                                    const att_sim_task_config_t *config)
{
    struct att_sim_task *task;
    att_error_t error = {""};
    if (att_sim_task_create(surface, config, &task, &error) != ATT_OK)
        fail_msg("no task: %s", error.text);
    return task;
}

static void space_is_that_of_a_sidecar(void **state)
{
    (void)state;
    struct att_surface *surface;
    assert_int_equal(att_surface_open("a40-nvlink-8-allgather", &surface, NULL), 0);
    att_sim_task_config_t config = {.collective = -1};
    struct att_sim_task *task = task_of(surface, &config);
    const att_space_t *space = att_sim_task_space(task);
    assert_int_equal(space->bytes, 83886080);
    assert_int_equal(space->ranks, 8);
    assert_int_equal(space->incumbent.channels, 8);
    assert_int_equal(space->incumbent.chunk_bytes, 0);
    for (uint32_t i = 0; i < space->subspace_count; i++) {
        assert_int_equal(space->subspaces[i].transport, ATT_TRANSPORT_KEEP);
        assert_int_equal(space->subspaces[i].threads_max, 0);
        assert_int_equal(space->subspaces[i].channels_max, 64);
    }
    att_sim_task_destroy(task);
    config.six_knobs = 1;
    task = task_of(surface, &config);
    space = att_sim_task_space(task);
    for (uint32_t i = 0; i < space->subspace_count; i++)
        assert_true(space->subspaces[i].transport != ATT_TRANSPORT_KEEP &&
                    space->subspaces[i].threads_max > 0);
    att_sim_task_destroy(task);
    att_surface_close(surface);
}

static void optima_of_collective_and_step(void **state)
{
    (void)state;
    struct att_surface *surface = surface_of_channels(falling, 32, 16);
    att_sim_task_config_t config = {.collective = -1,
                                    .step = {.compute_us = 858, .slowdown = 0.05}};
    struct att_sim_task *task = task_of(surface, &config);
    att_sim_optimum_t optimum;
    assert_int_equal(att_sim_task_optimum(task, 0, &optimum, NULL), 0);
    assert_int_equal(optimum.setting.channels, 32);
    assert_near(optimum.us, 1050, 1e-6);
    /* NCCL's choice is known to use 16 channels. */
    assert_near(att_sim_task_collective_us(task, ATT_SETTING_KEEP, 0), 1100, 1e-6);
    assert_near(att_sim_task_step_us(task, ATT_SETTING_KEEP, 0), 858 + 1100 * (0.8 / 1.8), 1e-6);
    att_sim_task_destroy(task);
    config.objective = ATT_SIM_STEP;
    task = task_of(surface, &config);
    assert_int_equal(att_sim_task_optimum(task, 0, &optimum, NULL), 0);
    assert_int_equal(optimum.setting.channels, 8);
    assert_near(optimum.us, 858 + 1200 * (0.4 / 1.4), 1e-6);
    att_sim_task_destroy(task);
    att_surface_close(surface);
}

/* The step's optimum on a modelled surface: with compute that is never slowed and always hidden
 * nothing matters; without compute it is the collective's. */
static void step_optimum_of_a_modelled_surface(void **state)
{
    (void)state;
    struct att_surface *surface;
    assert_int_equal(att_surface_open("a40-nvlink-8-allgather", &surface, NULL), 0);
    att_sim_task_config_t config = {.collective = -1};
    struct att_sim_task *task = task_of(surface, &config);
    att_sim_optimum_t collective, step;
    assert_int_equal(att_sim_task_optimum(task, 0, &collective, NULL), 0);
    att_sim_task_destroy(task);
    config.objective = ATT_SIM_STEP;
    task = task_of(surface, &config);
    assert_int_equal(att_sim_task_optimum(task, 0, &step, NULL), 0);
    assert_true(fabs(step.us / collective.us - 1) < 1e-3);
    att_sim_task_destroy(task);
    att_surface_close(surface);
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    struct att_surface *surface = surface_of_channels(falling, 4, 2);
    static const struct {
        att_sim_task_config_t config;
        const char *says;
    } cases[] = {{{.collective = ATT_COLLECTIVE_ALL_GATHER}, "made-up has no allgather"},
                 {{.collective = -1, .bytes = 12345}, "made-up has no task of 12345"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct att_sim_task *task;
        att_error_t error = {""};
        assert_int_equal(att_sim_task_create(surface, &cases[i].config, &task, &error),
                         -ATT_EUSAGE);
        if (strstr(error.text, cases[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
    }
    att_surface_close(surface);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(space_is_that_of_a_sidecar),
                                       cmocka_unit_test(optima_of_collective_and_step),
                                       cmocka_unit_test(step_optimum_of_a_modelled_surface),
                                       cmocka_unit_test(what_is_not_there_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
