#include "fabric/oracle.h"

#include "attune/setting.h"
#include "base/names.h"
#include "fabric/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ncclResult_t att_oracle_open(att_oracle_t *oracle)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->inject_rank = -1;
    const char *keep = getenv("ATTUNE_FABRIC_KEEP_GOING");
    oracle->keep_going = keep && !strcmp(keep, "1");
    const char *inject = getenv("ATTUNE_FABRIC_INJECT_MISMATCH");
    if (inject && *inject) {
        unsigned long long call;
        char extra;
        if (sscanf(inject, "%d:%llu%c", &oracle->inject_rank, &call, &extra) != 2)
            return att_fabric_error(
                ncclInvalidUsage, "ATTUNE_FABRIC_INJECT_MISMATCH=%s is not <rank>:<call>", inject);
        oracle->inject_call = call;
    }
    return ncclSuccess;
}

void att_oracle_inject(const att_oracle_t *oracle, att_task_t *task, int rank, int most)
{
    if (rank != oracle->inject_rank || task->call != oracle->inject_call)
        return;
    task->max_channels = task->max_channels > 1 ? task->max_channels - 1 : most > 1 ? 2 : 0;
}

static att_arena_call_t record_of(const att_task_t *task, int ranks)
{
    att_arena_call_t record;
    memset(&record, 0, sizeof record); /* padding is compared too */
    record.call = task->call;
    record.bytes = att_task_bytes(task, ranks);
    record.count = task->count;
    record.function = (uint8_t)task->function;
    record.algorithm = (uint8_t)task->algorithm;
    record.protocol = (uint8_t)task->protocol;
    record.datatype = (uint8_t)task->type;
    record.op = (uint8_t)task->op;
    record.root = (uint8_t)task->root;
    record.max_channels = (uint16_t)task->max_channels;
    record.channel_low = (uint16_t)task->channel_low;
    record.channels = (uint16_t)task->channels;
    record.chunk_low = (uint32_t)task->chunk_low;
    record.chunk_middle = (uint32_t)task->chunk_middle;
    record.chunk_high = (uint32_t)task->chunk_high;
    record.count_low = task->count_low;
    record.count_middle = task->count_middle;
    record.count_high = task->count_high;
    return record;
}

static att_arena_call_t *record_at(att_arena_t *arena, int rank, uint64_t call)
{
    return &arena->ranks[rank].calls[call % ATT_ARENA_CALLS];
}

#define DESCRIPTION 128
static const char *describe(const att_arena_call_t *record, char *text)
{
    char bytes[24];
    att_setting_t setting = {.algorithm = (int8_t)record->algorithm,
                             .protocol = (int8_t)record->protocol,
                             .transport = ATT_TRANSPORT_KEEP,
                             .channels = record->max_channels,
                             .chunk_bytes = record->chunk_low};
    char words[ATT_SETTING_TEXT];
    snprintf(text, DESCRIPTION, "%s of %s bytes with %s", att_task_function_name(record->function),
             att_bytes_text(record->bytes, bytes, sizeof bytes),
             att_setting_text(setting, words, sizeof words));
    return text;
}

static void report(att_oracle_t *oracle, uint64_t call, int rank, const att_arena_call_t *record,
                   int other, const att_arena_call_t *other_record)
{
    char mine[DESCRIPTION], theirs[DESCRIPTION];
    atomic_fetch_add(&oracle->mismatches, 1);
    att_fabric_error(ncclInternalError, "mismatch at call %llu: rank %d does %s, rank %d does %s",
                     (unsigned long long)call, rank, describe(record, mine), other,
                     describe(other_record, theirs));
}

/* True for the one rank that reports this call of the communicator. */
static bool first_to_see(att_arena_t *arena, uint64_t call)
{
    uint64_t seen = atomic_load(&arena->header->mismatched);
    while (seen < call + 1)
        if (atomic_compare_exchange_weak(&arena->header->mismatched, &seen, call + 1))
            return true;
    return false;
}

static void compare(att_oracle_t *oracle, att_arena_t *arena, const att_task_t *tasks, size_t count,
                    int other)
{
    uint32_t arrived = atomic_load(&arena->ranks[other].arrived.value);
    for (size_t i = 0; i < count; i++) {
        uint64_t call = tasks[i].call;
        if ((int32_t)(arrived - (uint32_t)call) <= 0)
            return; /* it comes later and will look at us */
        const att_arena_call_t *mine = record_at(arena, arena->rank, call);
        const att_arena_call_t *theirs = record_at(arena, other, call);
        if (!memcmp(mine, theirs, sizeof *mine))
            continue;
        if (first_to_see(arena, call))
            report(oracle, call, arena->rank, mine, other, theirs);
        att_arena_fail(arena, ncclInternalError, call);
        return;
    }
}

void att_oracle_publish(att_oracle_t *oracle, att_arena_t *arena, const att_task_t *tasks,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        *record_at(arena, arena->rank, tasks[i].call) = record_of(&tasks[i], arena->count);
    uint64_t through = tasks[count - 1].call + 1;
    atomic_store(&arena->round, through);
    att_signal_set(&arena->ranks[arena->rank].arrived, (uint32_t)through);
    for (int other = 0; other < arena->count && !oracle->keep_going; other++)
        if (other != arena->rank)
            compare(oracle, arena, tasks, count, other);
    att_signal_set(&arena->ranks[arena->rank].compared, (uint32_t)through);
}

/* Until all ranks have compared (and told before) the batch. */
static ncclResult_t wait_for_all(att_arena_t *arena, const att_task_t *tasks, size_t count)
{
    uint32_t through = (uint32_t)(tasks[count - 1].call + 1);
    for (int other = 0; other < arena->count; other++) {
        ncclResult_t result = att_arena_wait(arena, &arena->ranks[other].compared, through);
        if (result != ncclSuccess)
            return result;
    }
    return ncclSuccess;
}

static void take_over(att_task_t *task, const att_arena_call_t *record)
{
    task->algorithm = record->algorithm;
    task->protocol = record->protocol;
    task->max_channels = record->max_channels;
    task->channel_low = record->channel_low;
    task->channels = record->channels;
    task->chunk_low = record->chunk_low;
    task->chunk_middle = record->chunk_middle;
    task->chunk_high = record->chunk_high;
    task->count_low = record->count_low;
    task->count_middle = record->count_middle;
    task->count_high = record->count_high;
}

ncclResult_t att_oracle_agree(att_oracle_t *oracle, att_arena_t *arena, att_task_t *tasks,
                              size_t count)
{
    if (!oracle->keep_going)
        return ncclSuccess;
    ncclResult_t result = wait_for_all(arena, tasks, count);
    if (result != ncclSuccess)
        return result;
    for (size_t i = 0; i < count; i++) {
        const att_arena_call_t *mine = record_at(arena, arena->rank, tasks[i].call);
        const att_arena_call_t *first = record_at(arena, 0, tasks[i].call);
        if (!memcmp(mine, first, sizeof *mine))
            continue;
        report(oracle, tasks[i].call, arena->rank, mine, 0, first);
        if (mine->function != first->function || mine->bytes != first->bytes)
            return ncclInternalError; /* another collective: there is nothing to go on with */
        take_over(&tasks[i], first);
    }
    return ncclSuccess;
}

ncclResult_t att_oracle_confirm(att_arena_t *arena, const att_task_t *tasks, size_t count)
{
    ncclResult_t result = wait_for_all(arena, tasks, count);
    return result != ncclSuccess ? result : att_arena_failure(arena);
}
