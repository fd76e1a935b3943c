#include "control/facts.h"

#include <string.h>

#define NCCL_MAX_CHANNELS 64 /* MAXCHANNELS, device.h, NCCL 2.25 and later */

static const att_segment_member_t *member_of(const struct att_node *node, uint32_t lane)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    return &memory->members[memory->lanes[lane].member];
}

int att_facts_lanes(const struct att_node *node, uint32_t task, uint32_t *lanes)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    const att_index_list_t *list = att_node_lanes(node, task);
    uint32_t ranks = memory->groups[memory->tasks[task].group].ranks, found = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const att_segment_member_t *member = member_of(node, list->items[i]);
        if (atomic_load(&member->state) != ATT_ENTRY_LIVE || member->rank >= ranks)
            continue;
        lanes[member->rank] = list->items[i];
        found++;
    }
    return found == ranks;
}

bool att_facts_one_clock(const struct att_node *node, const uint32_t *lanes, uint32_t ranks)
{
    uint64_t first = member_of(node, lanes[0])->clock_id;
    for (uint32_t r = 1; r < ranks; r++)
        if (member_of(node, lanes[r])->clock_id != first)
            return false;
    return first != 0;
}

bool att_facts_whole_stamps(const struct att_node *node, const uint32_t *lanes, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        if (!member_of(node, lanes[r])->whole_stamps)
            return false;
    return true;
}

/* Channels that another group may have in force. */
static uint32_t channels_of_group(void *context, uint32_t group)
{
    const struct att_node *node = context;
    const att_segment_memory_t *memory = att_node_memory(node);
    const att_index_list_t *members = att_node_members(node, group);
    uint32_t most = 1;
    for (uint32_t i = 0; i < members->count; i++) {
        uint32_t seen = atomic_load(&memory->members[members->items[i]].channels);
        if (seen > most)
            most = seen;
    }
    for (uint32_t i = 0; i < att_node_task_count(node); i++)
        if (memory->tasks[i].group == group && memory->tasks[i].incumbent.channels > most)
            most = memory->tasks[i].incumbent.channels;
    return most;
}

uint32_t att_facts_ceiling(const struct att_node *node, const att_config_t *config, uint32_t group,
                           uint32_t native)
{
    uint32_t ceiling = att_node_channel_ceiling(node, group, (uint32_t)config->reserve_units,
                                                channels_of_group, (void *)node);
    if (ceiling == 0)
        ceiling = native;
    if (ceiling > NCCL_MAX_CHANNELS)
        ceiling = NCCL_MAX_CHANNELS;
    if (config->max_channels > 0 && ceiling > (uint32_t)config->max_channels)
        ceiling = (uint32_t)config->max_channels;
    return ceiling;
}

void att_facts_gather(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const uint32_t *lanes, att_setting_t native, att_space_facts_t *facts)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    const att_segment_task_t *t = &memory->tasks[task];
    const att_segment_group_t *group = &memory->groups[t->group];
    *facts = (att_space_facts_t){.collective = (int)t->collective,
                                 .bytes = t->bytes,
                                 .ranks = (int)group->ranks,
                                 .nodes = (int)group->nodes,
                                 .legal_pairs = t->legal_pairs,
                                 .connected_pairs = UINT32_MAX,
                                 .has_chunk = 1,
                                 .native = native};
    memcpy(facts->cost_us, t->cost_us, sizeof facts->cost_us);
    for (uint32_t r = 0; r < group->ranks; r++) {
        const att_segment_member_t *member = member_of(node, lanes[r]);
        facts->pinned |= member->pinned;
        facts->has_chunk &= member->tuner_abi >= 6;
        if (!member->all_connected)
            facts->connected_pairs &= atomic_load(&member->used_pairs);
    }
    facts->channels_ceiling = (int)att_facts_ceiling(node, config, t->group, native.channels);
}
