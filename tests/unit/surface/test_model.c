/* The two-phase model against numbers worked out by hand. */
#include "surface/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const att_model_load_t idle = {1, 1, 1, 1, 1, 1};

/* No congestion: power 0 makes g = 1/2 everywhere, so bandwidths are given doubled. */
static att_model_path_t plain(void)
{
    return (att_model_path_t){
        .transport = {.startup_us = 1, .bandwidth = 2e4, .congestion = 1, .power = 0},
        .protocol = {.startup_us = 0.5, .bandwidth = 4e4, .congestion = 1, .power = 0},
        .payload = 1,
        .copies = 1,
        .channel = 1e18,
        .overlap = 1,
        .tail = 0,
        .latency_us = 7,
        .depth = 1,
    };
}

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("got %.12g, expected %.12g", got, expected);
}

static void empty_message_costs_the_latency(void **state)
{
    att_model_path_t path = plain();
    assert_near(att_model_time_us(&path, &idle, 0, 4, 128, 1e5), 7);
}

/* X = 4e5: s0 = 1 + 40 us, s1 = 0.5 * 4e5 / (512 * 16) + 20 us; 10 rounds. */
static void full_overlap_is_the_slower_phase_and_one_fill(void **state)
{
    att_model_path_t path = plain();
    double s1 = 0.5 * 4e5 / 8192 + 20;
    assert_true(s1 > 41);
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 41 + 10 * s1);
}

static void no_overlap_is_the_sum_of_phases(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    double s1 = 0.5 * 4e5 / 8192 + 20;
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 10 * (41 + s1));
}

static void payload_and_copies_multiply_what_is_moved(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    path.payload = 0.5;
    path.copies = 2;
    double s0 = 1 + 160, s1 = 0.5 * 8e5 / 8192 + 40;
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 10 * (s0 + s1));
}

static void a_channel_has_a_limit(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    path.channel = 1e4;
    double s1 = 0.5 * 4e5 / 8192 + 20 + 10;
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 10 * (41 + s1));
}

static void last_round_costs_its_bytes_and_the_tail(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    double step = 41 + 0.5 * 4e5 / 8192 + 20;
    assert_near(att_model_time_us(&path, &idle, 4.1e6, 4, 128, 1e5), 7 + 10.25 * step);
    path.tail = 0.5;
    assert_near(att_model_time_us(&path, &idle, 4.1e6, 4, 128, 1e5), 7 + 10.625 * step);
    path.tail = 1;
    assert_near(att_model_time_us(&path, &idle, 4.1e6, 4, 128, 1e5), 7 + 11 * step);
}

/* Chunks larger than the message's share are cut to it. */
static void small_message_is_one_round(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    path.tail = 1;
    double step = 1 + 1 + 0.5 * 1e4 / 8192 + 0.5;
    assert_near(att_model_time_us(&path, &idle, 1e4, 4, 128, 1e5), 7 + step);
}

static void depth_adds_rounds(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    path.depth = 4;
    double step = 41 + 0.5 * 4e5 / 8192 + 20;
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 13 * step);
}

static void congestion_bends_the_curve_down(void **state)
{
    att_model_path_t path = plain();
    path.transport.congestion = 4e5;
    path.transport.power = 1;
    path.overlap = 0;
    double s1 = 0.5 * 4e5 / 8192 + 20;
    /* at q = q0 half of the peak is left, at 3 q0 a quarter */
    assert_near(att_model_time_us(&path, &idle, 4e6, 4, 128, 1e5), 7 + 10 * (1 + 40 + s1));
    double s3 = 0.5 * 12e5 / 8192 + 60;
    assert_near(att_model_time_us(&path, &idle, 12e6, 4, 128, 3e5), 7 + 10 * (1 + 240 + s3));
}

static void load_scales_every_constant(void **state)
{
    att_model_path_t path = plain();
    path.overlap = 0;
    att_model_load_t load = {.transport_startup = 2,
                             .transport_bandwidth = 0.5,
                             .transport_congestion = 1,
                             .protocol_startup = 4,
                             .protocol_bandwidth = 0.25,
                             .protocol_congestion = 1};
    double s0 = 2 + 80, s1 = 4 * 0.5 * 4e5 / 8192 + 80;
    assert_near(att_model_time_us(&path, &load, 4e6, 4, 128, 1e5), 7 + 10 * (s0 + s1));
    path.transport.congestion = path.protocol.congestion = 4e5;
    path.transport.power = 1;
    load = idle;
    load.transport_congestion = 1.0 / 3;
    double s1_idle = 0.5 * 4e5 / 8192 + 20;
    assert_near(att_model_time_us(&path, &load, 4e6, 4, 128, 1e5), 7 + 10 * (1 + 80 + s1_idle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_message_costs_the_latency),
        cmocka_unit_test(full_overlap_is_the_slower_phase_and_one_fill),
        cmocka_unit_test(no_overlap_is_the_sum_of_phases),
        cmocka_unit_test(payload_and_copies_multiply_what_is_moved),
        cmocka_unit_test(a_channel_has_a_limit),
        cmocka_unit_test(last_round_costs_its_bytes_and_the_tail),
        cmocka_unit_test(small_message_is_one_round),
        cmocka_unit_test(depth_adds_rounds),
        cmocka_unit_test(congestion_bends_the_curve_down),
        cmocka_unit_test(load_scales_every_constant),
    };
    return cmocka_run_group_tests_name("surface_model", tests, NULL, NULL);
}
