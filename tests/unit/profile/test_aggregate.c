/* Reduction of ranks to samples: clocks, late peers, losses, disagreement. */
#include "attune/setting.h"
#include "profile/aggregate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static att_part_t rank_part(uint64_t call, uint64_t start, uint64_t stop)
{
    att_record_t record = {.call = call,
                           .start_ns = start,
                           .stop_ns = stop,
                           .nccl_seq = call,
                           .source = ATT_TIME_KERNEL};
    return att_part_of_record(&record);
}

static void late_peers_do_not_count(void **state)
{
    (void)state;
    struct att_aggregate *a;
    assert_int_equal(att_aggregate_create(3, &a), ATT_OK);
    att_part_t whole, p = rank_part(5, 1000, 9000);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 0);
    p = rank_part(5, 6000, 9500);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 0);
    p = rank_part(5, 2000, 9000);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
    assert_float_equal(att_part_duration_us(&whole, ATT_REDUCTION_COMMON), 3.5, 1e-9);
    assert_float_equal(att_part_duration_us(&whole, ATT_REDUCTION_MIN), 3.5, 1e-9);
    assert_true(att_part_duration_us(&whole, ATT_REDUCTION_NONE) < 0);
    att_aggregate_destroy(a);
}

static void calls_may_interleave_and_get_lost(void **state)
{
    (void)state;
    struct att_aggregate *a;
    assert_int_equal(att_aggregate_create(2, &a), ATT_OK);
    att_part_t whole, p;
    for (uint64_t c = 0; c < 100; c++) {
        p = rank_part(c, 10 * c, 10 * c + 5);
        assert_int_equal(att_aggregate_add(a, &p, &whole), 0);
    }
    for (uint64_t c = 0; c < 99; c++) {
        p = rank_part(c, 10 * c, 10 * c + 7);
        assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
        assert_int_equal(whole.call, c);
    }
    /* Call 99 never completes; its slot is taken by a later call. */
    p = rank_part(99 + ATT_AGGREGATE_WINDOW, 1, 2);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 0);
    assert_int_equal(att_aggregate_lost(a), 1);
    p = rank_part(99, 1, 2);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 0);
    p = rank_part(99 + ATT_AGGREGATE_WINDOW, 1, 3);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
    assert_int_equal(whole.call, 99 + ATT_AGGREGATE_WINDOW);
    att_aggregate_destroy(a);
}

/* Every record has one fate, whatever order they come in and whatever is missing. */
static void every_record_is_accounted_for(void **state)
{
    (void)state;
    enum { RANKS = 3, CALLS = 3 * ATT_AGGREGATE_WINDOW };
    struct att_aggregate *a;
    assert_int_equal(att_aggregate_create(RANKS, &a), ATT_OK);
    att_part_t whole;
    uint64_t given = 0, wholes = 0;
    unsigned seed = 3;
    for (uint64_t call = 0; call < CALLS; call++)
        for (uint32_t r = 0; r < RANKS; r++) {
            /* A tenth never comes, some come far too late. */
            int fate = rand_r(&seed) % 100;
            if (fate < 10)
                continue;
            uint64_t of = fate < 15 && call > 2 * ATT_AGGREGATE_WINDOW
                              ? call - 2 * ATT_AGGREGATE_WINDOW
                              : call;
            att_part_t p = rank_part(of, 1, 2);
            given++;
            wholes += (uint64_t)att_aggregate_add(a, &p, &whole);
        }
    att_aggregate_fates_t fates = att_aggregate_fates(a);
    assert_int_equal(fates.added, given);
    assert_int_equal(fates.added, fates.whole + fates.lost + fates.late + fates.waiting);
    assert_int_equal(fates.whole, RANKS * wholes);
    assert_true(fates.lost > 0 && fates.late > 0 && fates.waiting > 0);
    assert_true(fates.waiting <= (RANKS - 1) * ATT_AGGREGATE_WINDOW);
    att_aggregate_destroy(a);
}

static void one_untimed_rank_spoils_the_sample(void **state)
{
    (void)state;
    struct att_aggregate *a;
    assert_int_equal(att_aggregate_create(2, &a), ATT_OK);
    att_part_t whole, p = rank_part(1, 10, 20);
    p.untimed = ATT_UNTIMED_GROUPED;
    att_aggregate_add(a, &p, &whole);
    p = rank_part(1, 10, 20);
    assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
    assert_int_equal(whole.untimed, ATT_UNTIMED_GROUPED);
    assert_true(att_part_duration_us(&whole, ATT_REDUCTION_COMMON) < 0);
    att_aggregate_destroy(a);
}

static void disagreement_is_seen(void **state)
{
    (void)state;
    struct att_aggregate *a;
    assert_int_equal(att_aggregate_create(2, &a), ATT_OK);
    att_part_t whole, p = rank_part(1, 10, 20);
    att_aggregate_add(a, &p, &whole);
    p.nccl_seq = 7;
    assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
    assert_int_equal(whole.differs, 1);
    p = rank_part(2, 10, 20);
    att_aggregate_add(a, &p, &whole);
    p.txn = 3;
    assert_int_equal(att_aggregate_add(a, &p, &whole), 1);
    assert_int_equal(whole.differs, 1);
    att_aggregate_destroy(a);
}

static void reduction_rule(void **state)
{
    (void)state;
    assert_int_equal(att_reduction_choose(ATT_COLLECTIVE_BROADCAST, true), ATT_REDUCTION_COMMON);
    assert_int_equal(att_reduction_choose(ATT_COLLECTIVE_BROADCAST, false), ATT_REDUCTION_NONE);
    assert_int_equal(att_reduction_choose(ATT_COLLECTIVE_ALL_REDUCE, false), ATT_REDUCTION_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_peers_do_not_count),
        cmocka_unit_test(calls_may_interleave_and_get_lost),
        cmocka_unit_test(every_record_is_accounted_for),
        cmocka_unit_test(one_untimed_rank_spoils_the_sample),
        cmocka_unit_test(disagreement_is_seen),
        cmocka_unit_test(reduction_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
