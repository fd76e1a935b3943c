#include "fabric/task.h"

#include "attune/setting.h"
#include "fabric/datatype.h"

size_t att_task_bytes(const att_task_t *task, int ranks)
{
    size_t bytes = task->count * att_datatype_size(task->type);
    return task->function == ATT_COLLECTIVE_ALL_GATHER ||
                   task->function == ATT_COLLECTIVE_REDUCE_SCATTER
               ? bytes * (size_t)ranks
               : bytes;
}

int att_task_traffic(int function, int ranks)
{
    switch (function) {
    case ATT_COLLECTIVE_ALL_REDUCE:
        return 2;
    case ATT_COLLECTIVE_ALL_GATHER:
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return ranks;
    default:
        return 1;
    }
}

bool att_task_part(const att_task_t *task, int channel, att_part_t *part)
{
    int index = channel - task->channel_low;
    if (index < 0 || index >= task->channels)
        return false;
    if (index == 0)
        *part = (att_part_t){0, task->count_low, task->chunk_low};
    else if (index == task->channels - 1)
        *part = (att_part_t){task->count_low + (size_t)(index - 1) * task->count_middle,
                             task->count_high, task->chunk_high};
    else
        *part = (att_part_t){task->count_low + (size_t)(index - 1) * task->count_middle,
                             task->count_middle, task->chunk_middle};
    return true;
}

const char *att_task_function_name(int function)
{
    static const char *const names[ATT_COLLECTIVE_COUNT] = {"Broadcast", "Reduce", "AllGather",
                                                            "ReduceScatter", "AllReduce"};
    return (unsigned)function < ATT_COLLECTIVE_COUNT ? names[function] : "Invalid";
}

const char *att_task_algorithm_name(int algorithm)
{
    static const char *const names[ATT_ALGORITHM_COUNT] = {
        "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
    return (unsigned)algorithm < ATT_ALGORITHM_COUNT ? names[algorithm] : "Unknown";
}

const char *att_task_protocol_name(int protocol)
{
    static const char *const names[ATT_PROTOCOL_COUNT] = {"LL", "LL128", "SIMPLE"};
    return (unsigned)protocol < ATT_PROTOCOL_COUNT ? names[protocol] : "Unknown";
}
