/*
 * Decisions without communicators: how a task is shared over channels, chunks, costs, variables,
 * noise. The layouts were worked out by hand from scheduleCollTasksToPlan of NCCL 2.30.7.
 */
#include "attune/setting.h"
#include "fabric/datatype.h"
#include "base/protocol.h"
#include "fabric/decision.h"
#include "fabric/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static att_decider_t decider(int ranks)
{
    att_decider_t d = {.algorithms = ATT_ALGORITHMS,
                       .ranks = ranks,
                       .channels = 16,
                       .default_channels = 2,
                       .default_chunk = 524288};
    att_pairs_parse(NULL, NULL, &d.pairs);
    return d;
}

static att_task_t task(int function, size_t count, int channels)
{
    return (att_task_t){.function = function,
                        .count = count,
                        .type = ncclFloat32,
                        .algorithm = ATT_ALGORITHM_RING,
                        .protocol = ATT_PROTOCOL_SIMPLE,
                        .max_channels = channels};
}

/* Parts must follow each other and cover the task. */
static void check_cover(const att_task_t *t)
{
    size_t at = 0;
    for (int c = t->channel_low; c < t->channel_low + t->channels; c++) {
        att_part_t part;
        assert_true(att_task_part(t, c, &part));
        assert_int_equal(part.offset, at);
        assert_true(part.count == 0 || part.chunk > 0);
        at += part.count;
    }
    assert_int_equal(at, t->count);
    att_part_t part;
    assert_false(att_task_part(t, t->channel_low - 1, &part));
    assert_false(att_task_part(t, t->channel_low + t->channels, &part));
}

static void test_one_task(void **state)
{
    att_decider_t d = decider(4);
    att_task_t t = task(ATT_COLLECTIVE_ALL_REDUCE, 1 << 20, 4); /* 4 MiB */
    assert_int_equal(att_decision_lay_out(&d, &t, 1), ncclSuccess);
    assert_int_equal(t.channels, 4);
    assert_int_equal(t.count_low, 1 << 18);
    assert_int_equal(t.count_middle, 1 << 18);
    assert_int_equal(t.count_high, 1 << 18);
    assert_int_equal(t.chunk_low, 524288);
    check_cover(&t);

    /* cells of 16 KiB, 32 KiB of traffic each: 3 cells for 40,000 bytes */
    t = task(ATT_COLLECTIVE_ALL_REDUCE, 10000, 16);
    assert_int_equal(att_decision_lay_out(&d, &t, 1), ncclSuccess);
    assert_int_equal(t.channels, 3);
    assert_int_equal(t.count_low, 4096);
    assert_int_equal(t.count_high, 10000 - 2 * 4096);
    check_cover(&t);

    /* one channel has no middle and no high part */
    t = task(ATT_COLLECTIVE_BROADCAST, 777, 16);
    assert_int_equal(att_decision_lay_out(&d, &t, 1), ncclSuccess);
    assert_int_equal(t.channels, 1);
    assert_int_equal(t.count_low, 777);
    assert_int_equal(t.chunk_high, 0);
    check_cover(&t);
}

static void test_many_shapes(void **state)
{
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        att_task_t tasks[5];
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        att_decider_t d = decider(2 + (int)(seed >> 60));
        d.channels = 1 + (int)(seed >> 40 & 31);
        size_t count = 1 + (seed >> 50 & 3);
        for (size_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            tasks[i] =
                task((int)(seed >> 33 & 0xff) % 5, 1 + (seed >> 20) % (1u << (seed >> 58) % 25),
                     1 + (int)(seed >> 45) % d.channels);
            tasks[i].protocol = (int)(seed >> 30 & 0xff) % 3;
        }
        assert_int_equal(att_decision_lay_out(&d, tasks, count), ncclSuccess);
        for (size_t i = 0; i < count; i++) {
            check_cover(&tasks[i]);
            assert_in_range(tasks[i].channels, 1, d.channels);
            assert_in_range(tasks[i].channel_low + tasks[i].channels, 1, d.channels);
        }
    }
}

static void test_chunks(void **state)
{
    assert_int_equal(att_protocol_grain(ATT_PROTOCOL_LL), 16);
    assert_int_equal(att_protocol_grain(ATT_PROTOCOL_LL128), 1920);
    assert_int_equal(att_protocol_grain(ATT_PROTOCOL_SIMPLE), 512);
    int ring = ATT_ALGORITHM_RING, tree = ATT_ALGORITHM_TREE, simple = ATT_PROTOCOL_SIMPLE;
    assert_int_equal(att_protocol_chunk_most(ATT_COLLECTIVE_ALL_REDUCE, ring, simple,
                                             att_protocol_buffer(simple)),
                     2097152);
    assert_int_equal(att_protocol_chunk_most(ATT_COLLECTIVE_ALL_REDUCE, tree, simple,
                                             att_protocol_buffer(simple)),
                     524288);
    assert_int_equal(att_protocol_chunk_most(ATT_COLLECTIVE_BROADCAST, ring, simple,
                                             att_protocol_buffer(simple)),
                     524288);
    assert_int_equal(att_protocol_chunk_most(ATT_COLLECTIVE_ALL_GATHER, ring, ATT_PROTOCOL_LL,
                                             att_protocol_buffer(ATT_PROTOCOL_LL)),
                     32768);
    assert_int_equal(att_protocol_chunk_most(ATT_COLLECTIVE_ALL_GATHER, ring, ATT_PROTOCOL_LL128,
                                             att_protocol_buffer(ATT_PROTOCOL_LL128)),
                     576000);
}

static void test_own_choice(void **state)
{
    att_decider_t d = decider(4);
    att_task_t t = task(ATT_COLLECTIVE_ALL_REDUCE, 16, 0);
    assert_int_equal(att_decision_choose(&d, &t, 1, NULL), ncclSuccess);
    assert_int_equal(t.protocol, ATT_PROTOCOL_LL);
    assert_int_equal(t.max_channels, 1);
    t = task(ATT_COLLECTIVE_ALL_REDUCE, 8 << 20, 0);
    float us = 0;
    assert_int_equal(att_decision_choose(&d, &t, 1, &us), ncclSuccess);
    assert_int_equal(t.algorithm, ATT_ALGORITHM_RING);
    assert_int_equal(t.protocol, ATT_PROTOCOL_SIMPLE);
    assert_int_equal(t.max_channels, 2);
    assert_int_equal(t.warps, 17);
    assert_true(us > 0);
}

static void test_variables(void **state)
{
    att_pairs_t pairs;
    uint32_t ring = ATT_PAIR_BIT(1, 0) | ATT_PAIR_BIT(1, 1) | ATT_PAIR_BIT(1, 2);
    assert_int_equal(att_pairs_parse("Ring", NULL, &pairs), ncclSuccess);
    assert_int_equal(pairs.allowed[ATT_COLLECTIVE_REDUCE], ring);
    assert_int_equal(att_pairs_parse("ring;allreduce:tree,CollNetDirect", "^LL128", &pairs),
                     ncclSuccess);
    assert_int_equal(pairs.allowed[ATT_COLLECTIVE_ALL_GATHER],
                     ATT_PAIR_BIT(1, 0) | ATT_PAIR_BIT(1, 2));
    assert_int_equal(pairs.allowed[ATT_COLLECTIVE_ALL_REDUCE],
                     ATT_PAIR_BIT(0, 0) | ATT_PAIR_BIT(0, 2) | ATT_PAIR_BIT(2, 0) |
                         ATT_PAIR_BIT(2, 2));
    assert_int_equal(att_pairs_parse("ring;tree", NULL, &pairs), ncclInvalidUsage);
    assert_int_equal(att_pairs_parse("keep", NULL, &pairs), ncclInvalidUsage);
    assert_int_equal(att_pairs_parse(NULL, "sendrecv:LL", &pairs), ncclInvalidUsage);
    assert_int_equal(att_pairs_parse(NULL, "", &pairs), ncclSuccess);
}

static void test_lines(void **state)
{
    static _Alignas(128) uint8_t slot[16384];
    uint8_t data[1000], got[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = (uint8_t)(i * 7);
    for (int p = 0; p < 2; p++) {
        for (size_t bytes = 1; bytes <= 1000; bytes += 37) {
            memset(slot, 0, sizeof slot);
            size_t unit = att_line_data(p), half = bytes / 2 / unit * unit;
            att_line_write(p, slot, 0, data, half, 5);
            memset(got, 0, sizeof got);
            assert_int_equal(att_line_read(p, slot, 0, got, bytes, 5),
                             half); /* the rest is not there */
            att_line_write(p, slot, half, data + half, bytes - half, 5);
            assert_int_equal(att_line_read(p, slot, half, got + half, bytes - half, 5),
                             bytes - half);
            assert_memory_equal(got, data, bytes);
            assert_int_equal(att_line_read(p, slot, 0, got, bytes, 6), 0); /* an old flag */
            assert_true(att_line_bytes(p, bytes) <= sizeof slot);
        }
    }
}

static void test_bfloat16(void **state)
{
    uint16_t one = 0x3f80, sum = 0, tiny = 0x3b80, nan = 0x7fc0; /* 1, 2^-8 */
    att_datatype_reduce(&sum, &one, &tiny, 1, ncclBfloat16, ncclSum);
    assert_int_equal(sum, 0x3f80); /* a tie goes to even */
    att_datatype_reduce(&sum, &one, &nan, 1, ncclBfloat16, ncclSum);
    assert_int_equal(sum & 0x7fc0, 0x7fc0);
    int64_t a = -1, b = 1, low = 0;
    att_datatype_reduce(&low, &a, &b, 1, ncclInt64, ncclMin);
    assert_int_equal(low, -1);
    uint64_t c = UINT64_MAX, d = 1, high = 0;
    att_datatype_reduce(&high, &c, &d, 1, ncclUint64, ncclMax);
    assert_true(high == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_task),  cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_chunks),    cmocka_unit_test(test_own_choice),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bfloat16),
    };
    return cmocka_run_group_tests_name("fabric_decision", tests, NULL, NULL);
}
