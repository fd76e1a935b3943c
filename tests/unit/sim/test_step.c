#include "sim/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "near.h"

static void exposed_communication_is_the_step(void **state)
{
    (void)state;
    att_sim_step_t step = {.compute_us = 100, .slowdown = 0.1};
    /* r = 1 / 1.8: in 200 us 111 us of compute are done. */
    assert_near(att_sim_step_us(&step, 200, 8), 200, 1e-9);
    step.compute_us = 0;
    assert_near(att_sim_step_us(&step, 50, 8), 50, 0);
}

static void hidden_communication_slows_the_compute(void **state)
{
    (void)state;
    att_sim_step_t step = {.compute_us = 1000, .slowdown = 0.25};
    /* r = 1/2: 100 us of collective cost 50 us of compute. */
    assert_near(att_sim_step_us(&step, 100, 4), 1050, 1e-9);
    assert_near(att_sim_step_us(&step, 100, 0), 1000, 1e-9);
    step.slowdown = 0;
    assert_near(att_sim_step_us(&step, 100, 32), 1000, 0);
}

static void both_meet_where_the_compute_ends_with_the_collective(void **state)
{
    (void)state;
    att_sim_step_t step = {.compute_us = 300, .slowdown = 0.5};
    /* r = 1/3 and t = 900: the compute is done at the same moment. */
    assert_near(att_sim_step_us(&step, 900, 4), 900, 1e-9);
    assert_near(att_sim_step_us(&step, 899, 4), 300 + 899 * 2.0 / 3, 1e-9);
    assert_near(att_sim_step_us(&step, 901, 4), 901, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_communication_is_the_step),
        cmocka_unit_test(hidden_communication_slows_the_compute),
        cmocka_unit_test(both_meet_where_the_compute_ends_with_the_collective)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
