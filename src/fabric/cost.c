#include "fabric/cost.h"

#include "attune/setting.h"
#include "base/names.h"
#include "fabric/error.h"

#include <stdio.h>
#include <string.h>

static const double latency_us[ATT_PROTOCOLS] = {4, 5, 9};
static const double bytes_per_us[ATT_PROTOCOLS] = {1200, 2600, 4000};

uint32_t att_cost_pairs(int function)
{
    uint32_t pairs = 0;
    for (int p = 0; p < ATT_PROTOCOLS; p++) {
        pairs |= ATT_PAIR_BIT(ATT_ALGORITHM_RING, p);
        if (function == ATT_COLLECTIVE_ALL_REDUCE)
            pairs |= ATT_PAIR_BIT(ATT_ALGORITHM_TREE, p);
    }
    return pairs;
}

static int log2_ceil(int n)
{
    int steps = 0;
    while ((1 << steps) < n)
        steps++;
    return steps;
}

double att_cost_us(int function, int algorithm, int protocol, size_t bytes, int ranks)
{
    double n = ranks, size = (double)bytes, steps = n - 1, traffic = size;
    if (algorithm == ATT_ALGORITHM_TREE) {
        steps = 2 * log2_ceil(ranks);
        traffic = 2 * size;
    } else if (function == ATT_COLLECTIVE_ALL_REDUCE) {
        steps = 2 * (n - 1);
        traffic = 2 * (n - 1) / n * size;
    } else if (function == ATT_COLLECTIVE_ALL_GATHER || function == ATT_COLLECTIVE_REDUCE_SCATTER) {
        traffic = (n - 1) / n * size;
    }
    return steps * latency_us[protocol] + traffic / bytes_per_us[protocol];
}

typedef int (*parse_fn)(const char *word);

/* One list of elements, "a,b" or "^a,b", as a mask. */
static ncclResult_t parse_elements(char *text, parse_fn parse, int count, const char *variable,
                                   uint32_t *mask)
{
    bool without = *text == '^';
    uint32_t named = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text + without, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        int number = parse(word);
        if (number < 0)
            return att_fabric_error(ncclInvalidUsage, "%s: unknown word \"%s\"", variable, word);
        named |= 1u << number;
    }
    *mask = without ? ((1u << count) - 1) & ~named : named;
    return ncclSuccess;
}

/* masks[function]: elements allowed for it. */
static ncclResult_t parse_list(const char *list, parse_fn parse, int count, const char *variable,
                               uint32_t masks[ATT_FUNCTIONS])
{
    for (int f = 0; f < ATT_FUNCTIONS; f++)
        masks[f] = (1u << count) - 1;
    if (!list || !*list)
        return ncclSuccess;
    char text[512], *rest = NULL;
    if ((size_t)snprintf(text, sizeof text, "%s", list) >= sizeof text)
        return att_fabric_error(ncclInvalidUsage, "%s is too long", variable);
    ncclResult_t result = ncclSuccess;
    bool first = true;
    for (char *entry = strtok_r(text, ";", &rest); entry && result == ncclSuccess;
         entry = strtok_r(NULL, ";", &rest), first = false) {
        char *colon = strchr(entry, ':');
        uint32_t mask = 0;
        if (!colon && !first)
            return att_fabric_error(ncclInvalidUsage, "%s: only the first list may lack a function",
                                    variable);
        if (colon)
            *colon = '\0';
        int only = colon ? att_collective_parse(entry) : -1;
        if (colon && only < 0)
            return att_fabric_error(ncclInvalidUsage, "%s: unknown function \"%s\"", variable,
                                    entry);
        result = parse_elements(colon ? colon + 1 : entry, parse, count, variable, &mask);
        for (int f = 0; f < ATT_FUNCTIONS; f++)
            if (only < 0 || only == f)
                masks[f] = mask;
    }
    return result;
}

ncclResult_t att_pairs_parse(const char *algorithms, const char *protocols, att_pairs_t *pairs)
{
    uint32_t by_algorithm[ATT_FUNCTIONS], by_protocol[ATT_FUNCTIONS];
    ncclResult_t result =
        parse_list(algorithms, att_algorithm_parse, ATT_ALGORITHMS, "NCCL_ALGO", by_algorithm);
    if (result == ncclSuccess)
        result =
            parse_list(protocols, att_protocol_parse, ATT_PROTOCOLS, "NCCL_PROTO", by_protocol);
    if (result != ncclSuccess)
        return result;
    for (int f = 0; f < ATT_FUNCTIONS; f++) {
        pairs->allowed[f] = 0;
        for (int a = 0; a < ATT_ALGORITHMS; a++)
            for (int p = 0; p < ATT_PROTOCOLS; p++)
                if (by_algorithm[f] >> a & 1 && by_protocol[f] >> p & 1)
                    pairs->allowed[f] |= ATT_PAIR_BIT(a, p);
    }
    return ncclSuccess;
}
