#include "fabric/decision.h"

#include "attune/setting.h"
#include "base/protocol.h"
#include "fabric/datatype.h"
#include "fabric/error.h"
#include "surface/surface.h"

#include <float.h>

#define CELL_TRAFFIC ((size_t)32 << 10) /* least traffic of a channel, enqueue.cc */
#define WARP         32

/* Fill the pairs that there are; the others stay at -1, NCCL_ALGO_PROTO_IGNORE. */
static void fill_table(const att_decider_t *decider, const att_task_t *task, size_t bytes,
                       float table[ATT_ALGORITHMS][ATT_PROTOCOLS])
{
    uint32_t pairs = decider->surface ? att_surface_pairs(decider->surface, task->function)
                                      : att_cost_pairs(task->function);
    pairs &= decider->pairs.allowed[task->function];
    if (decider->algorithms <= ATT_ALGORITHM_PAT)
        pairs &= ATT_PAIR_BIT(ATT_ALGORITHM_PAT, 0) - 1;
    for (int a = 0; a < ATT_ALGORITHMS; a++) {
        for (int p = 0; p < ATT_PROTOCOLS; p++) {
            table[a][p] = -1.0f;
            if (!(pairs & ATT_PAIR_BIT(a, p)))
                continue;
            double cost = decider->surface
                              ? att_surface_cost_us(decider->surface, task->function, bytes, a, p)
                              : att_cost_us(task->function, a, p, bytes, decider->ranks);
            if (cost >= 0)
                table[a][p] = (float)cost;
        }
    }
}

/* Threads of a block by NCCL's rule (topoGetAlgoInfo), channels already reduced. */
static int threads_of(int most, int algorithm, int protocol, size_t bytes, int channels,
                      size_t threshold)
{
    int threads = most != 0 ? most : protocol == ATT_PROTOCOL_LL128 ? 640 : 512;
    while (bytes < (size_t)channels * (size_t)threads * threshold && threads % 128 == 0)
        threads /= 2;
    if (protocol == ATT_PROTOCOL_SIMPLE && algorithm == ATT_ALGORITHM_RING)
        threads += WARP;
    if (threads < 3 * WARP)
        threads = 3 * WARP;
    if (algorithm != ATT_ALGORITHM_RING)
        threads = 640;
    return threads;
}

/* The fabric's own channels and warps for the pair that was chosen. */
static void own_resources(const att_decider_t *decider, att_task_t *task, size_t bytes)
{
    bool takes_threads =
        task->algorithm == ATT_ALGORITHM_RING && task->protocol != ATT_PROTOCOL_LL128;
    task->threads = takes_threads ? decider->threads : 0;
    task->transport = decider->transport;
    if (decider->surface) {
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.algorithm = (int8_t)task->algorithm;
        setting.protocol = (int8_t)task->protocol;
        setting.threads = (uint16_t)task->threads;
        setting = att_surface_resolve(decider->surface, task->function, bytes, setting);
        task->max_channels = setting.channels ? setting.channels : 1;
        task->warps = setting.threads ? setting.threads / WARP : 640 / WARP;
        return;
    }
    size_t threshold = task->protocol == ATT_PROTOCOL_SIMPLE ? 64 : 8;
    if (task->protocol == ATT_PROTOCOL_LL && task->algorithm == ATT_ALGORITHM_RING)
        threshold *= (size_t)decider->ranks;
    int channels = decider->default_channels;
    size_t threads = task->protocol == ATT_PROTOCOL_LL128 ? 640 : 512;
    while (channels > 1 && bytes < (size_t)channels * threads * threshold)
        channels--;
    task->max_channels = channels;
    task->warps =
        threads_of(task->threads, task->algorithm, task->protocol, bytes, channels, threshold) /
        WARP;
}

/* The smallest entry that is not negative; the first of equals. */
static bool smallest(float table[ATT_ALGORITHMS][ATT_PROTOCOLS], int *algorithm, int *protocol)
{
    float least = FLT_MAX;
    bool found = false;
    for (int a = 0; a < ATT_ALGORITHMS; a++) {
        for (int p = 0; p < ATT_PROTOCOLS; p++) {
            if (table[a][p] >= 0.0f && table[a][p] < least) {
                least = table[a][p];
                *algorithm = a;
                *protocol = p;
                found = true;
            }
        }
    }
    return found;
}

ncclResult_t att_decision_choose(const att_decider_t *decider, att_task_t *task, int pipe_ops,
                                 float *estimate_us)
{
    size_t bytes = att_task_bytes(task, decider->ranks);
    const char *name = att_task_function_name(task->function);
    float own[ATT_ALGORITHMS][ATT_PROTOCOLS], table[ATT_ALGORITHMS][ATT_PROTOCOLS];
    fill_table(decider, task, bytes, own);
    fill_table(decider, task, bytes, table);
    int channels = 0;
    if (decider->tuner) {
        ncclResult_t result = decider->tuner->getCollInfo(
            decider->tuner_context, task->function, bytes, pipe_ops, (float **)table,
            decider->algorithms, ATT_PROTOCOLS, 0, &channels);
        if (result != ncclSuccess)
            return att_fabric_error(result, "%s of %zu bytes: the tuner's getCollInfo failed", name,
                                    bytes);
    }
    if (!smallest(table, &task->algorithm, &task->protocol))
        return att_fabric_error(ncclInvalidUsage,
                                "no algorithm and protocol is left for %s (NCCL_ALGO, "
                                "NCCL_PROTO or the tuner ruled all out)",
                                name);
    if (own[task->algorithm][task->protocol] < 0)
        return att_fabric_error(
            ncclInternalError,
            "the tuner chose %s/%s for %s, whose cost entry was IGNORE: NCCL would run a "
            "wrong kernel",
            att_task_algorithm_name(task->algorithm), att_task_protocol_name(task->protocol), name);
    if (channels < 0)
        return att_fabric_error(ncclInternalError,
                                "the tuner chose %d channels for %s: NCCL would use the "
                                "number as it is",
                                channels, name);
    own_resources(decider, task, bytes);
    if (channels > 0)
        task->max_channels = channels;
    if (task->max_channels > decider->channels)
        task->max_channels = decider->channels;
    if (estimate_us)
        *estimate_us = table[task->algorithm][task->protocol];
    return ncclSuccess;
}

static size_t div_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit;
}

static size_t largest_chunk(const att_decider_t *decider, int function, int algorithm, int protocol)
{
    uint32_t buffer = protocol == ATT_PROTOCOL_SIMPLE && decider->buffer != 0
                          ? decider->buffer
                          : att_protocol_buffer(protocol);
    return att_protocol_chunk_most(function, algorithm, protocol, buffer);
}

/* Chunk of one part of a task: `count` elements on one channel. */
static ncclResult_t choose_chunk(const att_decider_t *decider, const att_task_t *task, size_t count,
                                 size_t *chunk)
{
    *chunk = 0;
    if (!count)
        return ncclSuccess;
    int f = task->function, a = task->algorithm, p = task->protocol;
    size_t most = largest_chunk(decider, f, a, p), grain = att_protocol_grain(p), value = most;
    if (decider->surface) {
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.algorithm = (int8_t)a;
        setting.protocol = (int8_t)p;
        size_t bytes = att_task_bytes(task, decider->ranks);
        value = att_surface_resolve(decider->surface, f, bytes, setting).chunk_bytes;
        if (value == 0)
            value = most;
    } else if (p == ATT_PROTOCOL_SIMPLE) {
        value = decider->default_chunk;
    }
    if (value > most)
        value = most;
    if (decider->tuner && decider->tuner_chunks && decider->tuner->getChunkSize) {
        att_task_t part = *task;
        part.count = count;
        ncclResult_t result = decider->tuner->getChunkSize(
            decider->tuner_context, f, att_task_bytes(&part, decider->ranks), a, p, 1, &value);
        if (result != ncclSuccess)
            return att_fabric_error(result, "%s: the tuner's getChunkSize failed",
                                    att_task_function_name(f));
        if (value > most) {
            att_fabric_info("%s: tuner chunk size %zu exceeds buffer max %zu, clamping",
                            att_task_function_name(f), value, most);
            value = most;
        }
    }
    *chunk = value / grain * grain;
    if (*chunk == 0)
        return att_fabric_error(ncclInternalError,
                                "the tuner chose a chunk of %zu bytes for %s/%s, below the "
                                "grain of %zu: NCCL would divide by zero",
                                value, att_task_algorithm_name(a), att_task_protocol_name(p),
                                grain);
    return ncclSuccess;
}

/* Where the next task starts: the channel in use and the traffic already on it. */
typedef struct att_cursor {
    int channel;
    size_t traffic;
    size_t per_channel;
} att_cursor_t;

static void lay_out_task(const att_decider_t *decider, att_task_t *task, att_cursor_t *cursor)
{
    size_t element = att_datatype_size(task->type);
    size_t per_byte = (size_t)att_task_traffic(task->function, decider->ranks);
    if (task->protocol == ATT_PROTOCOL_LL)
        per_byte *= 4;
    size_t cell = div_up(div_up(CELL_TRAFFIC, per_byte), 16) * 16; /* bytes of the vector */
    size_t cell_elements = cell / element, cell_traffic = cell * per_byte;
    size_t cells = div_up(task->count * element, cell);
    size_t middle_cells = div_up(cursor->per_channel, cell_traffic);
    if (middle_cells > cells)
        middle_cells = cells;

    int limit = decider->channels;
    size_t low = div_up(cursor->per_channel - cursor->traffic, cell_traffic);
    if (low > cells || cursor->channel + 1 == limit)
        low = cells; /* the last channel takes whatever is left */
    size_t rest = cells - low;
    int middles = (int)(rest / middle_cells);
    size_t high = rest % middle_cells;
    int used = (low != 0) + middles + (high != 0);
    if (cursor->channel + used > limit) {
        middles = limit - cursor->channel - 2;
        middle_cells = rest / (size_t)(middles + 1);
        high = middle_cells + rest % (size_t)(middles + 1);
    }
    if (high == 0 && middles > 0) {
        high = middle_cells;
        middles--;
    }
    if (low == 0) { /* the channel in use is full */
        cursor->channel++;
        if (middles == 0) {
            low = high;
            high = 0;
        } else {
            low = middle_cells;
            middles--;
        }
    }
    task->count_low = low * cell_elements;
    task->count_middle = middles ? middle_cells * cell_elements : 0;
    task->count_high = high * cell_elements;
    size_t excess = cells * cell_elements - task->count; /* the last cell is not full */
    if (high)
        task->count_high -= excess;
    else
        task->count_low -= excess;
    task->channel_low = cursor->channel;
    task->channels = (low != 0) + middles + (high != 0);

    size_t element_traffic = element * per_byte;
    if (high) {
        cursor->channel += task->channels - 1;
        cursor->traffic = high * cell_elements * element_traffic;
    } else {
        cursor->traffic += low * cell_elements * element_traffic;
    }
    if (cursor->traffic >= cursor->per_channel && cursor->channel + 1 != limit) {
        cursor->channel++;
        cursor->traffic = 0;
    }
}

ncclResult_t att_decision_lay_out(const att_decider_t *decider, att_task_t *tasks, size_t count)
{
    size_t traffic = 0;
    int channels = 0;
    for (size_t i = 0; i < count; i++) {
        size_t one = tasks[i].count * att_datatype_size(tasks[i].type) *
                     (size_t)att_task_traffic(tasks[i].function, decider->ranks);
        if (tasks[i].protocol == ATT_PROTOCOL_LL)
            one *= 4;
        traffic += one > CELL_TRAFFIC ? one : CELL_TRAFFIC;
        channels += tasks[i].max_channels;
        if (channels > decider->channels)
            channels = decider->channels;
    }
    if (count == 0)
        return ncclSuccess;
    att_cursor_t cursor = {0, 0, div_up(traffic / (size_t)channels, 16) * 16};
    for (size_t i = 0; i < count; i++) {
        att_task_t *task = &tasks[i];
        lay_out_task(decider, task, &cursor);
        /* NCCL asks in this order: low, high, middle. */
        ncclResult_t result = choose_chunk(decider, task, task->count_low, &task->chunk_low);
        if (result == ncclSuccess)
            result = choose_chunk(decider, task, task->count_high, &task->chunk_high);
        if (result == ncclSuccess)
            result = choose_chunk(decider, task, task->count_middle, &task->chunk_middle);
        if (result != ncclSuccess)
            return result;
    }
    return ncclSuccess;
}
