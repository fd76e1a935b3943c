#include "profile/kineto.h"

#include "attune/setting.h"

#include <stddef.h>

static const char *word(const char *const *words, int count, int index)
{
    return index >= 0 && index < count ? words[index] : "UNKNOWN";
}

const char *att_kineto_collective(int collective)
{
    static const char *const words[ATT_COLLECTIVE_COUNT] = {
        "broadcast", "reduce", "_allgather_base", "_reduce_scatter_base", "allreduce"};
    return word(words, ATT_COLLECTIVE_COUNT, collective);
}

const char *att_kineto_function(int collective)
{
    static const char *const words[ATT_COLLECTIVE_COUNT] = {"Broadcast", "Reduce", "AllGather",
                                                            "ReduceScatter", "AllReduce"};
    return word(words, ATT_COLLECTIVE_COUNT, collective);
}

const char *att_kineto_algorithm(int algorithm)
{
    static const char *const words[ATT_ALGORITHM_COUNT] = {
        "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
    return word(words, ATT_ALGORITHM_COUNT, algorithm);
}

const char *att_kineto_protocol(int protocol)
{
    static const char *const words[ATT_PROTOCOL_COUNT] = {"LL", "LL128", "SIMPLE"};
    return word(words, ATT_PROTOCOL_COUNT, protocol);
}

/* nccl.h 2.30, ncclDataType_t; names of c10::ScalarType. */
static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {{"Char", 1},   {"Byte", 1},     {"Int", 4},           {"UInt32", 4},
              {"Long", 8},   {"UInt64", 8},   {"Half", 2},          {"Float", 4},
              {"Double", 8}, {"BFloat16", 2}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
#define DTYPES (int)(sizeof dtypes / sizeof dtypes[0])

const char *att_kineto_dtype(int datatype)
{
    return datatype >= 0 && datatype < DTYPES ? dtypes[datatype].name : "Byte";
}

uint32_t att_kineto_dtype_bytes(int datatype)
{
    return datatype >= 0 && datatype < DTYPES ? dtypes[datatype].bytes : 1;
}

void att_kineto_elements(int collective, uint64_t bytes, uint32_t ranks, int datatype, uint64_t *in,
                         uint64_t *out)
{
    uint64_t whole = bytes / att_kineto_dtype_bytes(datatype);
    uint64_t share = ranks > 0 ? whole / ranks : whole;
    *in = collective == ATT_COLLECTIVE_ALL_GATHER ? share : whole;
    *out = collective == ATT_COLLECTIVE_REDUCE_SCATTER ? share : whole;
}
