/* Clock models of nodes and devices against clocks whose errors are known. */
#include "base/status.h"
#include "profile/clock_model.h"
#include "profile/device_clock.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SECOND 1000000000ll

static int64_t offset_at(int64_t ns, double drift)
{
    return -3500000000ll + (int64_t)(drift * (double)ns);
}

static void lines_between_points(void **state)
{
    att_clock_model_t m = {0};
    for (int i = 9; i >= 0; i--) { /* in any order */
        att_stream_clock_t p = {.at_ns = i * SECOND,
                                .offset_ns = offset_at(i * SECOND, 30e-6),
                                .uncertainty_ns = 400,
                                .round_trip_ns = 800};
        assert_int_equal(att_clock_model_add(&m, &p), ATT_OK);
        assert_int_equal(att_clock_model_add(&m, &p), ATT_OK); /* once */
    }
    assert_int_equal(m.count, 10);
    for (int64_t ns = -SECOND; ns < 12 * SECOND; ns += SECOND / 7) {
        att_clock_reading_t r = att_clock_model_read(&m, ns);
        assert_in_range(llabs(r.ns - (ns + offset_at(ns, 30e-6))), 0, 20);
        assert_in_range(r.uncertainty_ns, 400, ns < 0 || ns > 9 * SECOND ? 3000 : 500);
    }
    assert_in_range((int64_t)(att_clock_model_drift(&m) * 1e9), 29990, 30010);
    att_clock_model_free(&m);
    assert_int_equal(att_clock_model_read(&m, 5).uncertainty_ns, UINT32_MAX);
}

static void long_round_trips_do_not_count(void **state)
{
    att_clock_model_t m = {0};
    for (int i = 0; i < 20; i++) {
        bool bad = i % 4 == 3;
        att_stream_clock_t p = {.at_ns = i * SECOND / 2,
                                .offset_ns = offset_at(i * SECOND / 2, 0) + (bad ? 40000 : 0),
                                .uncertainty_ns = bad ? 50000 : 500,
                                .round_trip_ns = bad ? 100000 : 1000};
        att_clock_model_add(&m, &p);
    }
    assert_int_equal(att_clock_model_clean(&m, 0), ATT_OK);
    assert_int_equal(m.rejected, 5);
    for (int64_t ns = 0; ns < 9 * SECOND; ns += SECOND / 3)
        assert_in_range(llabs(att_clock_model_read(&m, ns).ns - (ns + offset_at(ns, 0))), 0, 5);
    assert_int_equal(att_clock_model_clean(&m, 4), ATT_OK);
    assert_int_equal(m.count, 4);
    att_clock_model_free(&m);
}

/* One lucky burst long ago must not disqualify what came later. */
static void one_lucky_burst(void **state)
{
    att_clock_model_t m = {0};
    for (int i = 0; i < 30; i++) {
        att_stream_clock_t p = {.at_ns = i * SECOND,
                                .offset_ns = offset_at(i * SECOND, 10e-6),
                                .uncertainty_ns = 5000,
                                .round_trip_ns = i == 0 ? 800 : 10000};
        att_clock_model_add(&m, &p);
    }
    assert_int_equal(att_clock_model_clean(&m, 0), ATT_OK);
    assert_in_range(m.count, 25, 27);
    att_clock_model_free(&m);
}

/* host = device + offset + drift * device; launches and deliveries lag by known amounts. */
static void a_device_is_tied_by_its_bounds(void **state)
{
    att_device_clock_t c = {0};
    att_device_clock_point_t p;
    uint64_t seed = 3;
    int points = 0;
    const double drift = 15e-6;
    const int64_t offset = 987654321;
    for (int64_t at = 0; at < 20 * SECOND; at += 2000000) {
        seed = seed * 6364136223846793005ull + 1;
        int64_t launch = 3000 + (int64_t)(seed >> 40) % 60000;
        int64_t delivery = 4000 + (int64_t)(seed >> 20) % 90000;
        int64_t start = at, stop = at + 300000;
        int64_t decided = start + offset + (int64_t)(drift * (double)start) - launch;
        int64_t seen = stop + offset + (int64_t)(drift * (double)stop) + delivery;
        if (!att_device_clock_add(&c, decided, start, stop, seen, &p))
            continue;
        points++;
        int64_t error = p.offset_ns - (offset + (int64_t)(drift * (double)p.at_ns));
        assert_true(llabs(error) <= (int64_t)p.uncertainty_ns + 1000);
        if (points > 6) {
            assert_in_range(llabs(error), 0, 4000);
            assert_in_range(p.uncertainty_ns, 1, 8000);
        }
    }
    assert_in_range(points, 20, 30);
    assert_in_range((int64_t)(c.drift * 1e9), 13500, 16500);
    assert_int_equal(att_device_clock_finish(&c, &p), 1);
    assert_int_equal(att_device_clock_finish(&c, &p), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_between_points),
        cmocka_unit_test(long_round_trips_do_not_count),
        cmocka_unit_test(one_lucky_burst),
        cmocka_unit_test(a_device_is_tied_by_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
