#include "control/identity.h"

att_identity_t att_identity_of(const att_segment_memory_t *memory, const att_segment_task_t *task,
                               uint32_t lane)
{
    const att_segment_group_t *group = &memory->groups[task->group % ATT_GROUPS];
    const att_segment_member_t *member = &memory->members[memory->lanes[lane].member % ATT_MEMBERS];
    att_identity_t identity = {.nccl_version = member->nccl_version,
                               .collective = task->collective,
                               .ranks = group->ranks,
                               .nodes = group->nodes,
                               .bytes = task->bytes};
    att_device_text(member, identity.device, sizeof identity.device);
    return identity;
}
