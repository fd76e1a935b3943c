/* Values sent and expected: exact in every type, and sensitive to place. */
#include "cli/bench_data.h"
#include "cli/bench_nccl.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROBES 4000

/* A second reading of the formats, to check the first. */
static double value_at(int type, const void *values, size_t i)
{
    const uint16_t *h = values;
    uint32_t bits;
    float f;
    switch (type) {
    case ATT_NCCL_INT8:
        return ((const int8_t *)values)[i];
    case ATT_NCCL_UINT8:
        return ((const uint8_t *)values)[i];
    case ATT_NCCL_INT32:
        return ((const int32_t *)values)[i];
    case ATT_NCCL_UINT32:
        return ((const uint32_t *)values)[i];
    case ATT_NCCL_INT64:
        return (double)((const int64_t *)values)[i];
    case ATT_NCCL_UINT64:
        return (double)((const uint64_t *)values)[i];
    case ATT_NCCL_HALF: {
        int exponent = h[i] >> 10 & 31, mantissa = h[i] & 1023;
        return exponent == 0 ? mantissa * 0x1p-24 : (1024 + mantissa) * exp2(exponent - 25);
    }
    case ATT_NCCL_FLOAT:
        return (double)((const float *)values)[i];
    case ATT_NCCL_DOUBLE:
        return ((const double *)values)[i];
    default:
        bits = (uint32_t)h[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
}

static int mantissa_bits(int type)
{
    static const int bits[] = {7, 8, 31, 32, 53, 53, 11, 24, 53, 8};
    return bits[type];
}

/* Whole numbers up to 2^bits (and fractions of them) are exact. */
static void assert_exact(int type, double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);
    double scaled = ldexp(fraction, mantissa_bits(type));
    assert_true(scaled == floor(scaled));
    if (type < ATT_NCCL_HALF)
        assert_true(value <= exp2(mantissa_bits(type)) - 1);
}

static double reduce(int op, double a, double b)
{
    return op == ATT_NCCL_PROD  ? a * b
           : op == ATT_NCCL_MAX ? fmax(a, b)
           : op == ATT_NCCL_MIN ? fmin(a, b)
                                : a + b;
}

static void check_reduction(int type, int op, int ranks)
{
    att_data_t sent[32], reduced;
    for (int r = 0; r < ranks; r++)
        assert_int_equal(att_data_of_rank(&sent[r], type, op, ranks, r), 0);
    assert_int_equal(att_data_reduced(&reduced, type, op, ranks), 0);
    for (size_t i = 0; i < PROBES; i++) {
        double value = value_at(type, sent[0].values, i);
        for (int r = 1; r < ranks; r++) {
            value = reduce(op, value, value_at(type, sent[r].values, i));
            assert_exact(type, value); /* also on the way */
        }
        if (op == ATT_NCCL_AVG)
            value = type < ATT_NCCL_HALF ? floor(value / ranks) : value / ranks;
        assert_true(value_at(type, reduced.values, i) == value);
    }
    for (int r = 0; r < ranks; r++)
        att_data_free(&sent[r]);
    att_data_free(&reduced);
}

static void test_reductions_are_exact_in_every_type(void **state)
{
    for (int type = 0; type < ATT_NCCL_TYPES; type++)
        for (int op = 0; op < ATT_NCCL_OPS; op++)
            check_reduction(type, op, 4);
    check_reduction(ATT_NCCL_FLOAT, ATT_NCCL_SUM, 1);
    check_reduction(ATT_NCCL_INT8, ATT_NCCL_PROD, 8);
    check_reduction(ATT_NCCL_BFLOAT16, ATT_NCCL_SUM, 32);
    check_reduction(ATT_NCCL_HALF, ATT_NCCL_SUM, 32);
    check_reduction(ATT_NCCL_FLOAT, ATT_NCCL_SUM, 3);
}

static void test_ranks_send_different_values(void **state)
{
    att_data_t a, b;
    assert_int_equal(att_data_of_rank(&a, ATT_NCCL_FLOAT, ATT_NCCL_SUM, 4, 0), 0);
    assert_int_equal(att_data_of_rank(&b, ATT_NCCL_FLOAT, ATT_NCCL_SUM, 4, 1), 0);
    assert_true(att_data_wrong(&a, b.values, 0, 1000) > 900);
    att_data_free(&a);
    att_data_free(&b);
}

/* Written past the period, read back from another place in it. */
static void test_writing_and_comparing_agree_over_the_period(void **state)
{
    size_t count = 2 * ATT_DATA_PERIOD + 77, first = 60000;
    for (int type = 0; type < ATT_NCCL_TYPES; type++) {
        att_data_t data;
        assert_int_equal(att_data_of_rank(&data, type, ATT_NCCL_SUM, 4, 2), 0);
        char *buffer = malloc(count * data.element);
        att_data_write(&data, buffer, first, count);
        assert_int_equal(att_data_wrong(&data, buffer, first, count), 0);
        assert_int_equal(att_data_wrong(&data, buffer + 100 * data.element, first + 100, 5000), 0);
        buffer[(count - 1) * data.element] ^= 1;
        buffer[0] ^= 1;
        assert_int_equal(att_data_wrong(&data, buffer, first, count), 2);
        free(buffer);
        att_data_free(&data);
    }
}

/* Shifts as a wrong offset, chunk or rank would make them. */
static void test_misplaced_data_is_seen(void **state)
{
    size_t count = 1 << 20;
    att_data_t data;
    assert_int_equal(att_data_of_rank(&data, ATT_NCCL_FLOAT, ATT_NCCL_SUM, 4, 0), 0);
    float *buffer = malloc(count * sizeof *buffer);
    for (size_t shift = 1; shift <= 1 << 20; shift *= 2) {
        att_data_write(&data, buffer, shift, count);
        assert_true(att_data_wrong(&data, buffer, 0, count) > count / 2);
    }
    free(buffer);
    att_data_free(&data);
}

static void test_an_average_over_three_ranks_has_a_tolerance(void **state)
{
    att_data_t data;
    assert_int_equal(att_data_reduced(&data, ATT_NCCL_FLOAT, ATT_NCCL_AVG, 3), 0);
    float *copy = malloc(1000 * sizeof *copy);
    att_data_write(&data, copy, 0, 1000);
    for (int i = 0; i < 1000; i++)
        copy[i] = nextafterf(copy[i], 1e9f);
    /* 0 has no relative neighbourhood. */
    uint64_t zeros = 0;
    for (int i = 0; i < 1000; i++)
        zeros += ((float *)data.values)[i] == 0;
    assert_int_equal(att_data_wrong(&data, copy, 0, 1000), zeros);
    for (int i = 0; i < 1000; i++)
        copy[i] *= 1.0001f;
    assert_int_equal(att_data_wrong(&data, copy, 0, 1000), 1000);
    free(copy);
    att_data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions_are_exact_in_every_type),
        cmocka_unit_test(test_ranks_send_different_values),
        cmocka_unit_test(test_writing_and_comparing_agree_over_the_period),
        cmocka_unit_test(test_misplaced_data_is_seen),
        cmocka_unit_test(test_an_average_over_three_ranks_has_a_tolerance),
    };
    return cmocka_run_group_tests_name("cli_bench_data", tests, NULL, NULL);
}
