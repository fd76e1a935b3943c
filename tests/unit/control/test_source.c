/* Where samples come from: stamps, start to start, and when which is chosen. */
#include "control/source.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Two ranks, 100 us by stamps, calls `period` apart. */
static att_part_t call_at(uint64_t call, uint64_t period_ns)
{
    uint64_t start = 1000000 + call * period_ns;
    return (att_part_t){.call = call,
                        .last_start_ns = start,
                        .last_stop_ns = start + 100000,
                        .shortest_ns = 100000,
                        .start_sum_ns = 2 * start - 500,
                        .ranks = 2,
                        .algorithm = ATT_ALGORITHM_TREE,
                        .protocol = ATT_PROTOCOL_SIMPLE,
                        .channels = 8};
}

static void watch(att_source_t *s, uint64_t period_ns)
{
    att_source_init(s, ATT_REDUCTION_COMMON, false);
    att_source_sample_t sample;
    for (uint64_t c = 0; c < ATT_SOURCE_CALLS; c++) {
        att_part_t whole = call_at(c, period_ns);
        assert_int_equal(att_source_watch(s, &whole), c + 1 == ATT_SOURCE_CALLS);
        att_source_sample(s, &whole, 0, &sample);
    }
    assert_int_equal(s->native.algorithm, ATT_ALGORITHM_TREE);
    assert_int_equal(s->native.channels, 8);
}

static void back_to_back_calls_are_timed_start_to_start(void **state)
{
    (void)state;
    att_source_t s;
    watch(&s, 120000); /* the stamps say 100 us, the truth is 120 */
    assert_int_equal(att_source_choose(&s, false), UINT32_MAX);
    assert_int_equal(s.reduction, ATT_REDUCTION_INTERVAL);
    att_part_t next = call_at(ATT_SOURCE_CALLS, 120000);
    att_source_sample_t sample;
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_int_equal(sample.call, ATT_SOURCE_CALLS - 1);
    assert_float_equal(sample.duration_us, 120, 1e-6);
    /* A hole in the calls gives no sample, and neither does an untimed call. */
    next = call_at(ATT_SOURCE_CALLS + 2, 120000);
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 0);
    next = call_at(ATT_SOURCE_CALLS + 3, 120000);
    next.untimed = ATT_UNTIMED_LOST;
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 0);
}

/* Beside other work the blocks wait for multiprocessors: twice the stamps and more, and it counts.
 */
static void waiting_for_multiprocessors_is_part_of_a_call(void **state)
{
    (void)state;
    att_source_t s;
    watch(&s, 250000);
    assert_int_equal(att_source_choose(&s, false), UINT32_MAX);
    assert_int_equal(s.reduction, ATT_REDUCTION_INTERVAL);
}

static void calls_with_gaps_leave_ring_only(void **state)
{
    (void)state;
    att_source_t s;
    watch(&s, 320000);
    uint32_t pairs = att_source_choose(&s, false);
    assert_int_equal(s.reduction, ATT_REDUCTION_COMMON);
    assert_true(pairs & ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL));
    assert_false(pairs & ATT_PAIR_BIT(ATT_ALGORITHM_TREE, ATT_PROTOCOL_SIMPLE));
    assert_false(pairs & ATT_PAIR_BIT(ATT_ALGORITHM_PAT, ATT_PROTOCOL_SIMPLE));
}

static void whole_stamps_are_used_as_they_are(void **state)
{
    (void)state;
    att_source_t s;
    watch(&s, 160000);
    assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
    assert_int_equal(s.reduction, ATT_REDUCTION_COMMON);
    att_part_t next = call_at(50, 160000);
    att_source_sample_t sample;
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_int_equal(sample.call, 50);
    assert_float_equal(sample.duration_us, 100, 1e-6);
}

/* The step counts, whatever fills the time between two calls. */
static void the_step_is_timed_start_to_start_on_demand(void **state)
{
    (void)state;
    att_source_t s;
    watch(&s, 900000);
    s.step = true;
    assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
    assert_int_equal(s.reduction, ATT_REDUCTION_INTERVAL);
    att_part_t next = call_at(ATT_SOURCE_CALLS, 900000);
    att_source_sample_t sample;
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_float_equal(sample.duration_us, 900, 1e-6);
    assert_float_equal(sample.collective_us, 100, 1e-6);
    /* Calls that never follow each other have no step. */
    att_source_init(&s, ATT_REDUCTION_COMMON, true);
    for (uint64_t c = 0; c < ATT_SOURCE_CALLS; c++) {
        att_part_t whole = call_at(3 * c, 900000);
        att_source_watch(&s, &whole);
        att_source_sample(&s, &whole, 0, &sample);
    }
    assert_int_equal(att_source_choose(&s, true), 0);
}

/* Samples are of the collective alone: its step comes with the next call, and is of no interest
 * where calls are short or follow each other at once. */
static void the_step_beside_is_known_a_call_later(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    watch(&s, 900000);
    assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
    att_part_t next = call_at(ATT_SOURCE_CALLS, 900000);
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_int_equal(sample.call, ATT_SOURCE_CALLS);
    assert_float_equal(sample.duration_us, 100, 1e-6);
    assert_int_equal(sample.before, ATT_SOURCE_CALLS - 1);
    assert_float_equal(sample.step_us, 900, 1e-6);
    assert_false(sample.disturbed);
    next = call_at(ATT_SOURCE_CALLS + 1, 900000);
    next.disturbed = 1;
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_true(sample.disturbed);
    next = call_at(ATT_SOURCE_CALLS + 3, 900000); /* one is missing: no step */
    assert_int_equal(att_source_sample(&s, &next, 0, &sample), 1);
    assert_true(isnan(sample.step_us));
    watch(&s, 250000);
    assert_int_equal(att_source_choose(&s, false), UINT32_MAX);
    assert_int_equal(s.reduction, ATT_REDUCTION_INTERVAL);
    assert_false(s.beside);
    watch(&s, 900000);
    for (int i = 0; i < ATT_SOURCE_CALLS; i++)
        s.duration_us[i] = 40;
    assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
    assert_false(s.beside);
}

/* Every fourth step is 4 ms long, the others 1 ms. */
static void a_step_that_is_to_be_short_is_a_whole_period(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    uint64_t start_ns = 1000000;
    int enough = 0;
    att_source_init(&s, ATT_REDUCTION_COMMON, true);
    for (uint64_t c = 0; c < 100; c++) {
        att_part_t whole = call_at(0, 0);
        whole.call = c;
        whole.start_sum_ns = 2 * start_ns - 500;
        start_ns += (c % 4 == 3 ? 4000000 : 1000000) + (c == 88 ? 80000 : 0);
        if (!enough && (enough = att_source_watch(&s, &whole)) != 0) {
            assert_int_equal(c, ATT_SOURCE_STEPS - 1);
            assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
            assert_int_equal(s.window, 4);
        }
        if (!enough) {
            att_source_sample(&s, &whole, 0, &sample);
            continue;
        }
        int there = att_source_sample(&s, &whole, 0, &sample);
        assert_int_equal(there, c >= ATT_SOURCE_STEPS + 2); /* four calls later */
        if (!there)
            continue;
        assert_int_equal(sample.call, c - 1);
        /* What one call adds is in the four windows that hold it. */
        assert_float_equal(sample.duration_us, c - 1 >= 88 && c - 1 < 92 ? 1770 : 1750, 1e-6);
    }
    att_part_t later = call_at(0, 0); /* one is missing: windows with it are not known */
    later.call = 101;
    for (int i = 0; i < 6; i++, later.call++) {
        later.start_sum_ns = 2 * start_ns - 500;
        start_ns += 1000000;
        assert_int_equal(att_source_sample(&s, &later, 0, &sample), i >= 4);
    }
}

/* `period` - 1 calls 1 ms apart and then 4 ms; `pause` calls in, one that takes 10 s. */
static uint64_t start_of(uint64_t call, uint32_t period, uint64_t pause)
{
    uint64_t ns = 1000000 + 1000000 * call + 3000000 * (call / period);
    return ns + (call > pause ? 10000000000u : 0);
}

static att_part_t call_of(uint64_t call, uint32_t period, uint64_t pause)
{
    att_part_t whole = call_at(0, 0);
    whole.call = call;
    whole.start_sum_ns = 2 * start_of(call, period, pause) - 500;
    return whole;
}

/* Up to the longest period that the rhythm knows, beside a pause too. */
static void every_period_is_known_when_the_source_is_chosen(void **state)
{
    (void)state;
    for (uint32_t period = 2; period <= ATT_RHYTHM_PERIOD; period++)
        for (uint64_t pause = 5; pause < 1000; pause += 980) {
            att_source_t s;
            att_source_sample_t sample;
            att_source_init(&s, ATT_REDUCTION_COMMON, true);
            int enough = 0;
            for (uint64_t c = 0; !enough; c++) {
                att_part_t whole = call_of(c, period, pause);
                enough = att_source_watch(&s, &whole);
                att_source_sample(&s, &whole, 0, &sample);
            }
            assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
            assert_int_equal(s.window, period);
        }
}

/* It would be in as many samples as a period has calls. */
static void a_pause_is_in_no_sample_of_a_whole_period(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    for (uint64_t pause = 100; pause < 104; pause++) {
        uint32_t samples = 0;
        att_source_init(&s, ATT_REDUCTION_COMMON, true);
        for (uint64_t c = 0; c < 140; c++) {
            att_part_t whole = call_of(c, 4, pause);
            if (c < ATT_SOURCE_STEPS && att_source_watch(&s, &whole))
                assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
            if (!att_source_sample(&s, &whole, c < 90 ? 0 : UINT64_MAX, &sample) || c < 80)
                continue;
            assert_float_equal(sample.duration_us, 1750, 1e-6);
            samples++;
        }
        assert_int_equal(samples, 60 - 4);
    }
}

/* A disturbed call is in as many samples as a period has calls. */
static void a_disturbed_call_disturbs_its_whole_periods(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    att_source_init(&s, ATT_REDUCTION_COMMON, true);
    for (uint64_t c = 0; c < 120; c++) {
        att_part_t whole = call_of(c, 4, UINT64_MAX);
        whole.disturbed = c == 100;
        if (c < ATT_SOURCE_STEPS && att_source_watch(&s, &whole))
            assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
        int there = att_source_sample(&s, &whole, 0, &sample);
        if (c < 80)
            continue;
        assert_int_equal(there, 1);
        /* The steps of calls 99 and 100 are. */
        assert_int_equal(sample.disturbed, sample.call >= 99 && sample.call < 104);
    }
}

/* Who makes each step five times as long makes no pauses. */
static void a_slow_setting_is_no_pause(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    uint64_t start_ns = 1000000;
    att_source_init(&s, ATT_REDUCTION_COMMON, true);
    for (uint64_t c = 0; c < 120; c++) {
        att_part_t whole = call_at(0, 0);
        whole.call = c;
        whole.start_sum_ns = 2 * start_ns - 500;
        start_ns += (c % 4 == 3 ? 4000000 : 1000000) * (c < 100 ? 1 : 10);
        if (c < ATT_SOURCE_STEPS && att_source_watch(&s, &whole))
            assert_int_equal(att_source_choose(&s, true), UINT32_MAX);
        int there = att_source_sample(&s, &whole, c < 90 ? 0 : UINT64_MAX, &sample);
        if (c > 104) {
            assert_int_equal(there, 1);
            assert_float_equal(sample.duration_us, 17500, 1e-6);
        }
    }
}

/* A setting that makes the long step far shorter: its level is below 0, and counts. */
static void a_level_below_nothing_counts(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    uint64_t start_ns = 1000000;
    double sum = 0;
    att_source_init(&s, ATT_REDUCTION_COMMON, false);
    s.beside = true;
    for (uint64_t c = 0; c < 61; c++) {
        att_part_t whole = call_at(0, 0);
        whole.call = c;
        whole.start_sum_ns = 2 * start_ns - 500;
        start_ns += c % 4 == 3 ? (c < 40 ? 4000000 : 1500000) : 1000000;
        att_source_sample(&s, &whole, c < 40 ? 0 : UINT64_MAX, &sample);
        if (c > 40)
            sum += sample.step_us;
    }
    assert_float_equal(sum / 20, (3 * 1000 + 1500) / 4.0, 1e-6);
}

/* Beside a collective that is measured alone, single steps are made level; what was learnt between
 * lists holds in them. */
static void steps_beside_are_made_level(void **state)
{
    (void)state;
    att_source_t s;
    att_source_sample_t sample;
    uint64_t start_ns = 1000000;
    att_source_init(&s, ATT_REDUCTION_COMMON, false);
    s.beside = true;
    for (uint64_t c = 0; c < 60; c++) {
        att_part_t whole = call_at(0, 0);
        whole.call = c;
        whole.start_sum_ns = 2 * start_ns - 500;
        start_ns += (c % 4 == 3 ? 4000000 : 1000000) + (c > 32 && c <= 40 ? 70000 : 0);
        att_source_sample(&s, &whole, c < 33 ? 0 : 41, &sample);
        if (c > 18) /* known by the 16th */
            assert_float_equal(sample.step_us, c - 1 > 32 && c - 1 <= 40 ? 1820 : 1750, 1e-6);
    }
    assert_int_equal(s.rhythm.count, 32 + 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_to_back_calls_are_timed_start_to_start),
        cmocka_unit_test(waiting_for_multiprocessors_is_part_of_a_call),
        cmocka_unit_test(calls_with_gaps_leave_ring_only),
        cmocka_unit_test(whole_stamps_are_used_as_they_are),
        cmocka_unit_test(the_step_is_timed_start_to_start_on_demand),
        cmocka_unit_test(the_step_beside_is_known_a_call_later),
        cmocka_unit_test(a_step_that_is_to_be_short_is_a_whole_period),
        cmocka_unit_test(every_period_is_known_when_the_source_is_chosen),
        cmocka_unit_test(a_pause_is_in_no_sample_of_a_whole_period),
        cmocka_unit_test(a_disturbed_call_disturbs_its_whole_periods),
        cmocka_unit_test(a_slow_setting_is_no_pause),
        cmocka_unit_test(a_level_below_nothing_counts),
        cmocka_unit_test(steps_beside_are_made_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
