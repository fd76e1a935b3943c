/* The grid of a sweep and the order in which it is measured. */
#include "cli/bench_candidate.h"
#include "search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAIR(a, p) ATT_PAIR_BIT(ATT_ALGORITHM_##a, ATT_PROTOCOL_##p)

static void test_the_grid_is_legal_and_holds_the_choice_of_nccl_once(void **state)
{
    att_shape_t shape =
        att_shape_make(ATT_COLLECTIVE_ALL_REDUCE, 1 << 20, ATT_NCCL_FLOAT, ATT_NCCL_SUM, 0, 4);
    uint32_t legal = PAIR(RING, SIMPLE) | PAIR(RING, LL) | PAIR(TREE, LL128);
    att_candidates_t list;
    att_candidates_init(&list, 1);
    assert_int_equal(att_candidates_grid(&list, &shape, legal, 32), 0);
    int native = 0, full = 0;
    uint32_t seen = 0;
    for (int i = 0; i < list.count; i++) {
        att_setting_t s = list.items[i].setting;
        for (int j = 0; j < i; j++)
            assert_false(att_setting_equal(s, list.items[j].setting));
        if (att_setting_is_keep(s)) {
            native++;
            assert_int_equal(i, 0);
            continue;
        }
        seen |= ATT_PAIR_BIT(s.algorithm, s.protocol);
        full += s.channels == 32;
        assert_in_range(s.channels, 1, 32);
        if (s.chunk_bytes != 0) {
            assert_int_equal(s.chunk_bytes % att_chunk_grain(s.protocol), 0);
            assert_true(s.chunk_bytes <= att_chunk_max(shape.collective, s.algorithm, s.protocol));
        }
    }
    assert_int_equal(native, 1);
    assert_int_equal(seen, legal);
    assert_true(full > 0);
    att_candidates_free(&list);
}

/* NVLS chunks must not grow beyond NCCL's own: the grid keeps them. */
static void test_algorithms_without_a_safe_chunk_keep_it(void **state)
{
    att_shape_t shape =
        att_shape_make(ATT_COLLECTIVE_ALL_REDUCE, 1 << 20, ATT_NCCL_FLOAT, ATT_NCCL_SUM, 0, 4);
    att_candidates_t list;
    att_candidates_init(&list, 1);
    assert_int_equal(att_candidates_grid(&list, &shape, PAIR(NVLS, SIMPLE), 4), 0);
    assert_int_equal(list.count, 1 + 3);
    for (int i = 0; i < list.count; i++)
        assert_int_equal(list.items[i].setting.chunk_bytes, 0);
    att_candidates_free(&list);
}

static void test_sorting_is_by_median_then_by_the_first_call(void **state)
{
    att_candidates_t list;
    att_candidates_init(&list, 3);
    const double samples[4][3] = {{9, 1, 8}, {2, 3, 100}, {5, 5, 5}, {1, 1, 1}};
    for (int i = 0; i < 6; i++) {
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.channels = (uint16_t)i;
        att_candidate_t *c = att_candidates_add(&list, setting);
        c->first_us = 100 - i;
        for (int k = 0; i < 4 && k < 4; k++) /* one more than fits */
            att_candidate_sample(c, 3, samples[i][k % 3]);
        assert_int_equal(c->sample_count, i < 4 ? 3 : 0);
        c->refused = i == 3;
        c->slow = i > 3;
    }
    att_candidates_sort(&list);
    const int order[] = {1, 2, 0, 5, 4, 3};
    for (int i = 0; i < 6; i++)
        assert_int_equal(list.items[i].setting.channels, order[i]);
    assert_true(list.items[0].median_us == 3);
    att_candidates_free(&list);
}

/* NCCL's choice 100; a lucky sample puts nobody out, what is slow each time goes. */
static void test_one_lucky_sample_does_not_put_out_the_others(void **state)
{
    att_candidates_t list;
    att_candidates_init(&list, 3);
    const double first_us[] = {100, 90, 100, 160, 100, 300},
                 second_us[] = {100, 10, 80, 90, 400, 300};
    for (int i = 0; i < 6; i++) {
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.channels = (uint16_t)i;
        att_candidate_t *c = att_candidates_add(&list, setting);
        c->first_us = first_us[i];
        att_candidate_sample(c, 3, second_us[i]);
    }
    att_candidates_drop_slow(&list);
    for (int i = 0; i < 6; i++)
        assert_int_equal(list.items[i].slow, i == 5);
    for (int k = 0; k < 2; k++) /* fast each time now: below 80 / 1.5 */
        att_candidate_sample(&list.items[1], 3, 20);
    list.items[1].first_us = 20;
    att_candidates_drop_slow(&list);
    for (int i = 0; i < 6; i++)
        assert_int_equal(list.items[i].slow, i > 1);
    att_candidates_free(&list);
}

static void test_the_order_is_a_permutation_of_the_seed(void **state)
{
    int a[100], b[100], c[100], present[100] = {0}, moved = 0;
    att_candidates_shuffle(a, 100, 7);
    att_candidates_shuffle(b, 100, 7);
    att_candidates_shuffle(c, 100, 8);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    for (int i = 0; i < 100; i++) {
        assert_in_range(a[i], 0, 99);
        present[a[i]]++;
        moved += a[i] != i;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(present[i], 1);
    assert_true(moved > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_grid_is_legal_and_holds_the_choice_of_nccl_once),
        cmocka_unit_test(test_algorithms_without_a_safe_chunk_keep_it),
        cmocka_unit_test(test_sorting_is_by_median_then_by_the_first_call),
        cmocka_unit_test(test_one_lucky_sample_does_not_put_out_the_others),
        cmocka_unit_test(test_the_order_is_a_permutation_of_the_seed),
    };
    return cmocka_run_group_tests_name("cli_bench_candidate", tests, NULL, NULL);
}
