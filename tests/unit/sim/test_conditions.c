#include "sim/conditions.h"

#include "surface/surface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"

static struct att_surface *surface;

static int open_surface(void **state)
{
    (void)state;
    return att_surface_open("a40-nvlink-8-allgather", &surface, NULL);
}

static int close_surface(void **state)
{
    (void)state;
    att_surface_close(surface);
    return 0;
}

static void one_load(void **state)
{
    (void)state;
    att_sim_conditions_t c = {.drift = 0.5};
    assert_int_equal(att_sim_conditions_parse(surface, "heavy", &c, NULL), 0);
    assert_int_equal(c.count, 1);
    assert_int_equal(att_sim_conditions_load(&c, 0), att_surface_load_index(surface, "heavy"));
    assert_int_equal(att_sim_conditions_load(&c, 1u << 30),
                     att_surface_load_index(surface, "heavy"));
    assert_near(c.drift, 0.5, 0); /* kept */
}

static void loads_come_and_go(void **state)
{
    (void)state;
    att_sim_conditions_t c = {0};
    assert_int_equal(att_sim_conditions_parse(surface, "0:none,100:heavy,250:none", &c, NULL), 0);
    int none = att_surface_load_index(surface, "none"),
        heavy = att_surface_load_index(surface, "heavy");
    static const struct {
        uint64_t call;
        int heavy;
    } cases[] = {{0, 0}, {99, 0}, {100, 1}, {249, 1}, {250, 0}, {100000, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(att_sim_conditions_load(&c, cases[i].call), cases[i].heavy ? heavy : none);
}

static void drift_is_linear_and_stays_positive(void **state)
{
    (void)state;
    att_sim_conditions_t c = {.drift = 0.2};
    assert_near(att_sim_conditions_factor(&c, 0), 1, 0);
    assert_near(att_sim_conditions_factor(&c, 500), 1.1, 1e-12);
    c.drift = -0.5;
    assert_near(att_sim_conditions_factor(&c, 1000), 0.5, 1e-12);
    assert_near(att_sim_conditions_factor(&c, 9000), 0.1, 1e-12);
}

static void bad_schedules_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *says;
    } cases[] = {
        {"lunch", "no load \"lunch\" (it has: none, light, heavy, gemm)"},
        {"", "no load \"\""},
        {"5:none", "must begin at 0"},
        {"0:none,heavy", "must begin at 0 and rise"},
        {"0:none,9:heavy,9:none", "must begin at 0 and rise"},
        {"x:none", "no CALL:LOAD"},
        {"0:none,-5:heavy", "no CALL:LOAD"},
        {"0:none,99999999999999999999:heavy", "no CALL:LOAD"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_sim_conditions_t c = {0};
        att_error_t error = {""};
        assert_int_equal(att_sim_conditions_parse(surface, cases[i].schedule, &c, &error),
                         -ATT_EUSAGE);
        if (strstr(error.text, cases[i].says) == NULL)
            fail_msg("%s: \"%s\"", cases[i].schedule, error.text);
        assert_int_equal(c.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_load),
                                       cmocka_unit_test(loads_come_and_go),
                                       cmocka_unit_test(drift_is_linear_and_stays_positive),
                                       cmocka_unit_test(bad_schedules_are_named)};
    return cmocka_run_group_tests(tests, open_surface, close_surface);
}
