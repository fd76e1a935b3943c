#include "cli/bench_data.h"

#include "base/status.h"
#include "cli/bench_nccl.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Largest integer up to which all integers are exact. */
static uint64_t exact_limit(int type)
{
    switch (type) {
    case ATT_NCCL_INT8:
        return 127;
    case ATT_NCCL_UINT8:
        return 255;
    case ATT_NCCL_HALF:
        return 2048;
    case ATT_NCCL_BFLOAT16:
        return 256;
    default:
        return 1u << 24;
    }
}

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca77u;
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 13;
    return x;
}

/* The integer that `rank` sends as element i. */
static uint64_t value_of(int type, int op, int ranks, int rank, uint32_t i)
{
    if (op == ATT_NCCL_PROD) {
        /* 2 on i % 7 of the ranks, 1 on the others: the product is a power of two up to 64. */
        uint32_t twos = i % 7 < (uint32_t)ranks ? i % 7 : (uint32_t)ranks;
        return (i * 5 + (uint32_t)rank) % (uint32_t)ranks < twos ? 2 : 1;
    }
    uint64_t limit = exact_limit(type) / (op == ATT_NCCL_MAX || op == ATT_NCCL_MIN ? 1 : ranks);
    uint64_t range = limit > 128 ? 128 : limit + 1;
    return mix(i, (uint32_t)rank + 1) % range;
}

/* Encodings of small integers and fractions of them; exact where the type is. */
static void encode(int type, double value, void *to)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (type) {
    case ATT_NCCL_INT8:
    case ATT_NCCL_UINT8:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case ATT_NCCL_INT32:
    case ATT_NCCL_UINT32:
        *(uint32_t *)to = (uint32_t)value;
        break;
    case ATT_NCCL_INT64:
    case ATT_NCCL_UINT64:
        *(uint64_t *)to = (uint64_t)value;
        break;
    case ATT_NCCL_HALF:
        /* Bias 127 -> 15, mantissa 23 -> 10 bits; normal numbers only. */
        *(uint16_t *)to = bits == 0 ? 0 : (uint16_t)((bits >> 13) - ((127u - 15u) << 10));
        break;
    case ATT_NCCL_BFLOAT16:
        *(uint16_t *)to = (uint16_t)(bits >> 16);
        break;
    case ATT_NCCL_FLOAT:
        *(float *)to = single;
        break;
    default:
        *(double *)to = value;
        break;
    }
}

static double decode(int type, const void *from)
{
    uint16_t half;
    uint32_t bits;
    float single;
    switch (type) {
    case ATT_NCCL_HALF:
        memcpy(&half, from, sizeof half);
        if ((half & 0x7c00) == 0x7c00)
            return (half & 0x3ff) != 0 ? NAN : INFINITY;
        return (half & 0x8000 ? -1.0 : 1.0) *
               ((half & 0x7c00) == 0 ? ldexp(half & 0x3ff, -24)
                                     : ldexp((half & 0x3ff) | 0x400, ((half >> 10) & 0x1f) - 25));
    case ATT_NCCL_BFLOAT16:
        memcpy(&half, from, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    case ATT_NCCL_FLOAT:
        memcpy(&single, from, sizeof single);
        return (double)single;
    default: {
        double value;
        memcpy(&value, from, sizeof value);
        return value;
    }
    }
}

static bool is_floating(int type)
{
    return type >= ATT_NCCL_HALF;
}

static int start(att_data_t *data, int type, int op, int ranks)
{
    data->type = type;
    data->op = op;
    data->ranks = ranks;
    data->element = att_nccl_type_size(type);
    data->values = malloc(ATT_DATA_PERIOD * data->element);
    return data->values != NULL ? ATT_OK : -ATT_ENOMEM;
}

int att_data_of_rank(att_data_t *data, int type, int op, int ranks, int rank)
{
    int rc = start(data, type, -1, ranks);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < ATT_DATA_PERIOD; i++)
        encode(type, (double)value_of(type, op, ranks, rank, i),
               (char *)data->values + i * data->element);
    return ATT_OK;
}

static uint64_t fold(int op, uint64_t a, uint64_t b)
{
    switch (op) {
    case ATT_NCCL_PROD:
        return a * b;
    case ATT_NCCL_MAX:
        return a > b ? a : b;
    case ATT_NCCL_MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

int att_data_reduced(att_data_t *data, int type, int op, int ranks)
{
    int rc = start(data, type, op, ranks);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < ATT_DATA_PERIOD; i++) {
        uint64_t value = value_of(type, op, ranks, 0, i);
        for (int rank = 1; rank < ranks; rank++)
            value = fold(op, value, value_of(type, op, ranks, rank, i));
        double result = (double)value;
        if (op == ATT_NCCL_AVG)
            result = is_floating(type) ? result / ranks : (double)(value / (uint64_t)ranks);
        encode(type, result, (char *)data->values + i * data->element);
    }
    return ATT_OK;
}

void att_data_free(att_data_t *data)
{
    free(data->values);
    data->values = NULL;
}

void att_data_write(const att_data_t *data, void *to, size_t first, size_t count)
{
    size_t at = first % ATT_DATA_PERIOD;
    char *out = to;
    while (count > 0) {
        size_t run = ATT_DATA_PERIOD - at < count ? ATT_DATA_PERIOD - at : count;
        memcpy(out, (const char *)data->values + at * data->element, run * data->element);
        out += run * data->element;
        count -= run;
        at = 0;
    }
}

/* Averages are computed as sums of inputs times 1/n, rounded at each step: n roundings. */
static bool near_enough(const att_data_t *data, const void *got, const void *want)
{
    if (data->op != ATT_NCCL_AVG || !is_floating(data->type) ||
        (data->ranks & (data->ranks - 1)) == 0)
        return false;
    static const double epsilons[] = {[ATT_NCCL_HALF] = 0x1p-10,
                                      [ATT_NCCL_FLOAT] = 0x1p-23,
                                      [ATT_NCCL_DOUBLE] = 0x1p-52,
                                      [ATT_NCCL_BFLOAT16] = 0x1p-7};
    double a = decode(data->type, got), b = decode(data->type, want);
    return fabs(a - b) <= epsilons[data->type] * (data->ranks + 1) * fabs(b);
}

uint64_t att_data_wrong(const att_data_t *data, const void *got, size_t first, size_t count)
{
    size_t at = first % ATT_DATA_PERIOD;
    const char *in = got;
    uint64_t wrong = 0;
    while (count > 0) {
        size_t run = ATT_DATA_PERIOD - at < count ? ATT_DATA_PERIOD - at : count;
        const char *want = (const char *)data->values + at * data->element;
        if (memcmp(in, want, run * data->element) != 0)
            for (size_t i = 0; i < run; i++) {
                const char *g = in + i * data->element, *w = want + i * data->element;
                if (memcmp(g, w, data->element) != 0 && !near_enough(data, g, w))
                    wrong++;
            }
        in += run * data->element;
        count -= run;
        at = 0;
    }
    return wrong;
}
