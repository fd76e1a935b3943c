#include "control/protocol.h"

static uint64_t mix(uint64_t digest, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        digest = (digest ^ (value >> (8 * i) & 255)) * 1099511628211u;
    return digest;
}

uint64_t att_schedule_digest(const att_group_key_t *group, const att_task_key_t *task,
                             const att_schedule_t *schedule)
{
    uint64_t digest = 14695981039346656037u;
    digest = mix(digest, group->hash);
    digest = mix(digest, group->ranks);
    digest = mix(digest, task->bytes);
    digest = mix(digest, (uint64_t)task->collective << 32 | task->legal_pairs);
    digest = mix(digest, (uint64_t)schedule->txn << 32 | schedule->count);
    for (uint32_t i = 0; i < schedule->count && i < ATT_SCHEDULE; i++) {
        const att_setting_t *s = &schedule->entries[i].setting;
        digest = mix(digest, schedule->entries[i].first_call);
        digest = mix(digest, (uint64_t)(uint8_t)s->algorithm << 40 |
                                 (uint64_t)(uint8_t)s->protocol << 32 | (uint32_t)s->channels);
        digest = mix(digest, (uint64_t)s->threads << 32 | s->chunk_bytes);
    }
    return digest;
}
