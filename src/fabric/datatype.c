#include "fabric/datatype.h"

#include <stdint.h>
#include <string.h>

typedef struct bfloat16 {
    uint16_t bits;
} bfloat16_t;

static inline float from_bfloat16(bfloat16_t value)
{
    uint32_t bits = (uint32_t)value.bits << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline bfloat16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (bfloat16_t){(uint16_t)((bits >> 16) | 0x40u)};
    bits += 0x7fffu + ((bits >> 16) & 1u);
    return (bfloat16_t){(uint16_t)(bits >> 16)};
}

#define SAME(value)   (value)
#define OP_SUM(x, y)  ((x) + (y))
#define OP_PROD(x, y) ((x) * (y))
#define OP_MAX(x, y)  ((x) > (y) ? (x) : (y))
#define OP_MIN(x, y)  ((x) < (y) ? (x) : (y))
#define FROM_HALF(v)  ((float)(v))
#define TO_HALF(v)    ((_Float16)(v))

#define REDUCE_LOOP(type, wide, from, to, operation)                                               \
    for (size_t i = 0; i < count; i++) {                                                           \
        wide x = (wide)from(left[i]), y = (wide)from(right[i]);                                    \
        out[i] = to(operation(x, y));                                                              \
    }

/* Integers are computed as unsigned or wide enough numbers, so that overflow wraps as on a GPU. */
#define REDUCE_TYPE(name, type, wide, from, to)                                                    \
    static void reduce_##name(void *target, const void *a, const void *b, size_t count,            \
                              ncclRedOp_t op)                                                      \
    {                                                                                              \
        type *out = target;                                                                        \
        const type *left = a, *right = b;                                                          \
        switch (op) {                                                                              \
        case ncclProd:                                                                             \
            REDUCE_LOOP(type, wide, from, to, OP_PROD)                                             \
            break;                                                                                 \
        case ncclMax:                                                                              \
            REDUCE_LOOP(type, wide, from, to, OP_MAX)                                              \
            break;                                                                                 \
        case ncclMin:                                                                              \
            REDUCE_LOOP(type, wide, from, to, OP_MIN)                                              \
            break;                                                                                 \
        default:                                                                                   \
            REDUCE_LOOP(type, wide, from, to, OP_SUM)                                              \
        }                                                                                          \
    }

#define TO_INT8(v)  ((int8_t)(v))
#define TO_UINT8(v) ((uint8_t)(v))
#define TO_INT32(v) ((int32_t)(v))

REDUCE_TYPE(int8, int8_t, int, SAME, TO_INT8)
REDUCE_TYPE(uint8, uint8_t, int, SAME, TO_UINT8)
REDUCE_TYPE(int32, int32_t, int64_t, SAME, TO_INT32)
REDUCE_TYPE(uint32, uint32_t, uint32_t, SAME, SAME)
REDUCE_TYPE(uint64, uint64_t, uint64_t, SAME, SAME)
REDUCE_TYPE(half, _Float16, float, FROM_HALF, TO_HALF)
REDUCE_TYPE(float, float, float, SAME, SAME)
REDUCE_TYPE(double, double, double, SAME, SAME)
REDUCE_TYPE(bfloat16, bfloat16_t, float, from_bfloat16, to_bfloat16)

/* Comparison must be signed, arithmetic must wrap. */
static void reduce_int64(void *target, const void *a, const void *b, size_t count, ncclRedOp_t op)
{
    int64_t *out = target;
    const int64_t *left = a, *right = b;
    if (op == ncclMax || op == ncclMin) {
        for (size_t i = 0; i < count; i++) {
            int64_t x = left[i], y = right[i];
            out[i] = op == ncclMax ? OP_MAX(x, y) : OP_MIN(x, y);
        }
    } else {
        reduce_uint64(target, a, b, count, op);
    }
}

void att_datatype_reduce(void *target, const void *a, const void *b, size_t count,
                         ncclDataType_t type, ncclRedOp_t op)
{
    switch (type) {
    case ncclInt8:
        reduce_int8(target, a, b, count, op);
        break;
    case ncclUint8:
        reduce_uint8(target, a, b, count, op);
        break;
    case ncclInt32:
        reduce_int32(target, a, b, count, op);
        break;
    case ncclUint32:
        reduce_uint32(target, a, b, count, op);
        break;
    case ncclInt64:
        reduce_int64(target, a, b, count, op);
        break;
    case ncclUint64:
        reduce_uint64(target, a, b, count, op);
        break;
    case ncclFloat16:
        reduce_half(target, a, b, count, op);
        break;
    case ncclFloat32:
        reduce_float(target, a, b, count, op);
        break;
    case ncclFloat64:
        reduce_double(target, a, b, count, op);
        break;
    case ncclBfloat16:
        reduce_bfloat16(target, a, b, count, op);
        break;
    default:
        break; /* refused before anything was launched */
    }
}

#define SCALE_INTEGER(type)                                                                        \
    {                                                                                              \
        type *values = target;                                                                     \
        for (size_t i = 0; i < count; i++)                                                         \
            values[i] = (type)(values[i] / (type)ranks);                                           \
    }

void att_datatype_scale(void *target, size_t count, ncclDataType_t type, int ranks)
{
    switch (type) {
    case ncclInt8:
        SCALE_INTEGER(int8_t)
        break;
    case ncclUint8:
        SCALE_INTEGER(uint8_t)
        break;
    case ncclInt32:
        SCALE_INTEGER(int32_t)
        break;
    case ncclUint32:
        SCALE_INTEGER(uint32_t)
        break;
    case ncclInt64:
        SCALE_INTEGER(int64_t)
        break;
    case ncclUint64:
        SCALE_INTEGER(uint64_t)
        break;
    case ncclFloat16: {
        _Float16 *values = target;
        for (size_t i = 0; i < count; i++)
            values[i] = (_Float16)((float)values[i] / (float)ranks);
        break;
    }
    case ncclFloat32: {
        float *values = target;
        for (size_t i = 0; i < count; i++)
            values[i] /= (float)ranks;
        break;
    }
    case ncclFloat64: {
        double *values = target;
        for (size_t i = 0; i < count; i++)
            values[i] /= (double)ranks;
        break;
    }
    case ncclBfloat16: {
        bfloat16_t *values = target;
        for (size_t i = 0; i < count; i++)
            values[i] = to_bfloat16(from_bfloat16(values[i]) / (float)ranks);
        break;
    }
    default:
        break;
    }
}

size_t att_datatype_size(ncclDataType_t type)
{
    static const uint8_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < ncclNumTypes ? sizes[type] : 0;
}

const char *att_datatype_name(ncclDataType_t type)
{
    static const char *const names[ncclNumTypes] = {
        "ncclInt8",    "Unknown",      "ncclInt32",      "ncclUint32",
        "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
        "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    return (unsigned)type < ncclNumTypes ? names[type] : "Unknown";
}

bool att_datatype_reducible(ncclDataType_t type)
{
    return (unsigned)type < ncclFloat8e4m3;
}
