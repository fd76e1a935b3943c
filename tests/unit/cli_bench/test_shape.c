/* Counts and offsets, against nccl-tests' own rules (src/all_gather.cu and others there). */
#include "attune/setting.h"
#include "cli/bench_shape.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_allreduce_takes_the_whole_size(void **state)
{
    att_shape_t s = att_shape_make(ATT_COLLECTIVE_ALL_REDUCE, 1000, ATT_NCCL_FLOAT, 0, 0, 3);
    assert_int_equal(s.count, 250);
    assert_int_equal(s.send_count, 250);
    assert_int_equal(s.recv_count, 250);
    assert_int_equal(s.bytes, 1000);
    s = att_shape_make(ATT_COLLECTIVE_BROADCAST, 1003, ATT_NCCL_FLOAT, 0, 0, 3);
    assert_int_equal(s.bytes, 1000);
    assert_true(att_shape_has_root(&s));
    assert_false(att_shape_is_symmetric(&s));
}

/* (1000 / 4 / 3) = 83, rounded down to 16 bytes: 80. */
static void test_gathered_parts_are_whole_16_bytes(void **state)
{
    att_shape_t s = att_shape_make(ATT_COLLECTIVE_ALL_GATHER, 1000, ATT_NCCL_FLOAT, 0, 0, 3);
    assert_int_equal(s.count, 80);
    assert_int_equal(s.send_count, 80);
    assert_int_equal(s.recv_count, 240);
    assert_int_equal(s.bytes, 960);
    assert_int_equal(att_shape_send_offset(&s, 2), 160);
    assert_int_equal(att_shape_recv_offset(&s, 2), 0);
    s = att_shape_make(ATT_COLLECTIVE_REDUCE_SCATTER, 1000, ATT_NCCL_HALF, 0, 0, 4);
    assert_int_equal(s.count, 120);
    assert_int_equal(s.recv_count, 120);
    assert_int_equal(s.send_count, 480);
    assert_int_equal(s.bytes, 960);
    assert_int_equal(att_shape_send_offset(&s, 3), 0);
    assert_int_equal(att_shape_recv_offset(&s, 3), 360);
}

static void test_a_size_below_16_bytes_a_rank_is_nothing(void **state)
{
    att_shape_t s = att_shape_make(ATT_COLLECTIVE_ALL_GATHER, 8, ATT_NCCL_FLOAT, 0, 0, 4);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allreduce_takes_the_whole_size),
        cmocka_unit_test(test_gathered_parts_are_whole_16_bytes),
        cmocka_unit_test(test_a_size_below_16_bytes_a_rank_is_nothing),
    };
    return cmocka_run_group_tests_name("cli_bench_shape", tests, NULL, NULL);
}
