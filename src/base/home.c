#include "base/home.h"

#include <string.h>

void att_home_ask(const att_segment_memory_t *memory, const att_segment_task_t *task, uint32_t txn,
                  att_home_request_t *request)
{
    const att_segment_group_t *group = &memory->groups[task->group % ATT_GROUPS];
    *request = (att_home_request_t){.magic = ATT_HOME_MAGIC,
                                    .hash = group->hash,
                                    .bytes = task->bytes,
                                    .ranks = group->ranks,
                                    .verb = ATT_HOME_RESOLVE,
                                    .collective = task->collective,
                                    .legal_pairs = task->legal_pairs,
                                    .home_task = task->home_task,
                                    .txn = txn};
    memcpy(request->key, group->home_key, sizeof request->key);
}

/* Time does not depend on where the keys differ. */
static bool same_key(const uint8_t a[16], const uint8_t b[16])
{
    uint8_t differs = 0;
    for (int i = 0; i < 16; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

static bool has_group(const att_segment_memory_t *memory, const att_home_request_t *request)
{
    uint32_t count = atomic_load(&memory->header.group_count);
    for (uint32_t g = 0; g < count && g < ATT_GROUPS; g++)
        if (memory->groups[g].hash == request->hash && memory->groups[g].ranks == request->ranks)
            return true;
    return false;
}

int att_home_answer(att_segment_memory_t *memory, const uint8_t key[16],
                    const att_home_request_t *request, att_home_reply_t *reply)
{
    if (request->magic != ATT_HOME_MAGIC || !same_key(request->key, key))
        return -ATT_EPERMISSION;
    *reply = (att_home_reply_t){.magic = ATT_HOME_MAGIC, .txn = request->txn};
    if (request->verb == ATT_HOME_TEST)
        return has_group(memory, request) ? ATT_OK : -ATT_EINPUT;
    if (request->verb != ATT_HOME_RESOLVE || request->txn == 0 || request->home_task >= ATT_TASKS)
        return -ATT_EINPUT;
    att_segment_task_t *task = &memory->tasks[request->home_task];
    if (atomic_load(&task->state) != ATT_ENTRY_LIVE || task->group >= ATT_GROUPS ||
        task->bytes != request->bytes || task->collective != request->collective ||
        task->legal_pairs != request->legal_pairs || atomic_load(&task->copied) != 0 ||
        memory->groups[task->group % ATT_GROUPS].hash != request->hash ||
        memory->groups[task->group % ATT_GROUPS].ranks != request->ranks)
        return -ATT_EINPUT;
    reply->state = (uint32_t)att_home_decide(task, request->txn, ATT_HOME_ABORTED);
    return ATT_OK;
}

att_home_state_t att_home_read(const att_home_request_t *request, const att_home_reply_t *reply)
{
    if (reply->magic != ATT_HOME_MAGIC || reply->txn != request->txn ||
        (reply->state != ATT_HOME_COMMITTED && reply->state != ATT_HOME_ABORTED))
        return ATT_HOME_NONE;
    return (att_home_state_t)reply->state;
}
