/* The last calls of a task: what they take, who keeps coming last. */
#include "profile/recent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static att_part_t part(uint64_t call, uint32_t rank, uint64_t start)
{
    att_record_t record = {
        .call = call, .start_ns = start, .stop_ns = start + 500, .source = ATT_TIME_KERNEL};
    att_part_t p = att_part_of_record(&record);
    p.rank = p.last_rank = rank;
    return p;
}

/* 4 ranks in the order given; the last one's start is `late` ns after the others'. */
static void feed(att_recent_t *recent, struct att_aggregate *a, uint64_t call, uint32_t last,
                 uint64_t late)
{
    att_part_t whole;
    int complete = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t rank = (i + (uint32_t)call) % 4;
        att_part_t p = part(call, rank, 1000000 + call * 10000 + (rank == last ? late : rank));
        complete = att_aggregate_add(a, &p, &whole);
    }
    assert_true(complete);
    assert_int_equal(whole.last_rank, last);
    att_recent_call(recent, &whole);
}

static void a_rank_that_keeps_coming_last_is_named(void **state)
{
    (void)state;
    struct att_aggregate *a;
    att_recent_t recent = {0};
    att_recent_late_t late;
    assert_int_equal(att_aggregate_create(4, &a), ATT_OK);
    for (uint64_t call = 0; call < 31; call++)
        feed(&recent, a, call, 2, 3000);
    assert_false(att_recent_late(&recent, &late)); /* too few calls to tell */
    feed(&recent, a, 31, 2, 3000);
    assert_true(att_recent_late(&recent, &late));
    assert_int_equal(late.rank, 2);
    assert_float_equal(late.late_us, 2.997, 1e-9); /* alone: until rank 3 was there */
    assert_float_equal(late.share, 1, 1e-9);
    att_aggregate_destroy(a);
}

static void the_last_of_many_near_ones_is_not(void **state)
{
    (void)state;
    struct att_aggregate *a;
    att_recent_t near = {0}, turns = {0};
    att_recent_late_t late;
    assert_int_equal(att_aggregate_create(4, &a), ATT_OK);
    for (uint64_t call = 0; call < 40; call++)
        feed(&near, a, call, 1, 100); /* 1 % of the time from call to call */
    assert_false(att_recent_late(&near, &late));
    for (uint64_t call = 40; call < 80; call++)
        feed(&turns, a, call, call % 4, 3000); /* each in turn */
    assert_false(att_recent_late(&turns, &late));
    att_aggregate_destroy(a);
}

static void parts_of_nodes_keep_the_two_last_starts(void **state)
{
    (void)state;
    struct att_aggregate *a, *b;
    att_part_t left, right, whole;
    assert_int_equal(att_aggregate_create(3, &a), ATT_OK);
    assert_int_equal(att_aggregate_create(5, &b), ATT_OK);
    const uint64_t starts[5] = {900, 700, 800, 950, 100};
    for (uint32_t r = 0; r < 3; r++) {
        att_part_t p = part(7, r, starts[r]);
        att_aggregate_add(a, &p, &left);
    }
    assert_int_equal(left.second_start_ns, 800);
    att_part_t p = part(7, 3, starts[3]);
    att_aggregate_add(b, &p, &whole);
    p = part(7, 4, starts[4]);
    p.untimed = ATT_UNTIMED_OFF; /* has no start */
    right = p;
    att_aggregate_add(b, &right, &whole);
    assert_true(att_aggregate_add(b, &left, &whole));
    assert_int_equal(whole.last_start_ns, 950);
    assert_int_equal(whole.last_rank, 3);
    att_aggregate_destroy(a);
    att_aggregate_destroy(b);
}

static void the_median_is_of_the_last_calls(void **state)
{
    (void)state;
    att_recent_t recent = {0};
    assert_float_equal(att_recent_duration_us(&recent), 0, 0);
    for (int i = 0; i < 100; i++)
        att_recent_sample(&recent, i < 60 ? 10 : 20, 5);
    assert_float_equal(att_recent_duration_us(&recent), 20, 1e-9);
    assert_int_equal(recent.sampled_ns, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_keeps_coming_last_is_named),
        cmocka_unit_test(the_last_of_many_near_ones_is_not),
        cmocka_unit_test(parts_of_nodes_keep_the_two_last_starts),
        cmocka_unit_test(the_median_is_of_the_last_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
