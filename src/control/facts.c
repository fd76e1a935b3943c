#include "control/facts.h"

#include <string.h>

static const att_segment_member_t *member_of(const struct att_node *node, uint32_t lane)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    return &memory->members[memory->lanes[lane].member % ATT_MEMBERS];
}

uint32_t att_facts_lanes(const struct att_node *node, uint32_t task, uint32_t *lanes, uint32_t most)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    const att_index_list_t *list = att_node_lanes(node, task);
    uint32_t ranks = memory->groups[memory->tasks[task].group % ATT_GROUPS].ranks, found = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const att_segment_member_t *member = member_of(node, list->items[i]);
        if (atomic_load(&member->state) != ATT_ENTRY_LIVE || member->rank >= ranks)
            continue;
        uint32_t at = found;
        while (at > 0 && member_of(node, lanes[at - 1])->rank > member->rank)
            at--;
        if ((at > 0 && member_of(node, lanes[at - 1])->rank == member->rank) || found == most)
            continue;
        memmove(lanes + at + 1, lanes + at, (found - at) * sizeof *lanes);
        lanes[at] = list->items[i];
        found++;
    }
    return found;
}

uint32_t att_facts_unstamped(const struct att_node *node, uint32_t lane)
{
    const att_segment_member_t *member = member_of(node, lane);
    const att_segment_memory_t *memory = att_node_memory(node);
    return member->profiler_abi != 0
               ? atomic_load(&memory->processes[member->process % ATT_PROCESSES].unstamped)
               : 0;
}

void att_facts_report(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const uint32_t *lanes, uint32_t count, att_reported_t *reported)
{
    const att_segment_task_t *t = &att_node_memory(node)->tasks[task];
    uint64_t word = atomic_load(&t->home);
    for (uint32_t i = 0; i < count; i++) {
        const att_segment_member_t *m = member_of(node, lanes[i]);
        att_reported_t one = {
            .ranks = 1,
            .pinned = m->pinned,
            .connected_pairs = m->all_connected ? UINT32_MAX : atomic_load(&m->used_pairs),
            .ceiling = att_facts_ceiling(node, config, t->group, 0),
            .has_chunk = m->tuner_abi >= 6,
            .variants = atomic_load(&att_node_memory(node)->lanes[lanes[i]].variants),
            .whole_stamps = m->whole_stamps,
            .unstamped = att_facts_unstamped(node, lanes[i]),
            .nccl_version = m->nccl_version,
            .tuner_abi = m->tuner_abi,
            .profiler_abi = m->profiler_abi,
            .clock_id = m->clock_id,
            .rank = m->rank,
            .odd_rank = ATT_NONE,
            .prepared = (uint32_t)atomic_load(&t->prepared),
            .open = ATT_HOME_STATE(word) == ATT_HOME_OPEN ? ATT_HOME_TXN(word) : 0,
        };
        memcpy(&one.hook_version, m->hook_version, sizeof one.hook_version);
        if (ATT_HOME_TXN(word) > one.prepared)
            one.prepared = ATT_HOME_TXN(word);
        if (i == 0)
            *reported = one;
        else
            att_facts_merge(reported, &one);
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void att_facts_merge(att_reported_t *into, const att_reported_t *other)
{
    if (into->odd_rank == ATT_NONE) {
        into->odd_rank = other->odd_rank;
        if (into->nccl_version != other->nccl_version || into->tuner_abi != other->tuner_abi ||
            into->profiler_abi != other->profiler_abi ||
            into->hook_version != other->hook_version)
            into->odd_rank = other->rank;
    }
    into->ranks += other->ranks;
    into->pinned |= other->pinned;
    into->connected_pairs &= other->connected_pairs;
    into->ceiling = least(into->ceiling, other->ceiling);
    into->has_chunk &= other->has_chunk;
    into->variants &= other->variants;
    into->whole_stamps &= other->whole_stamps;
    into->unstamped |= other->unstamped;
    if (into->clock_id != other->clock_id)
        into->clock_id = 0;
    into->prepared = larger(into->prepared, other->prepared);
    into->open = larger(into->open, other->open);
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
        if (att_segment_is_filled(&memory->tasks[i].state) && memory->tasks[i].group == group &&
            memory->tasks[i].incumbent.channels > most)
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
    ceiling = least(ceiling, att_channels_max(0));
    if (config->max_channels > 0 && ceiling > (uint32_t)config->max_channels)
        ceiling = (uint32_t)config->max_channels;
    return ceiling;
}

/* The list as this program was told it; returns its digest. The option was parsed when attune run
 * checked it. */
static uint32_t variants_of(const att_config_t *config, att_variants_t *variants)
{
    if (att_variants_parse(config->variants, variants, NULL) != ATT_OK)
        memset(variants, 0, sizeof *variants);
    return variants->digest;
}

static void keep_variants(att_variants_t *variants, uint32_t mask)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < variants->count; i++)
        if (mask & 1u << i)
            variants->items[kept++] = variants->items[i];
    variants->count = kept;
}

void att_facts_gather(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const att_reported_t *reported, att_setting_t native,
                      att_space_facts_t *facts)
{
    const att_segment_memory_t *memory = att_node_memory(node);
    const att_segment_task_t *t = &memory->tasks[task];
    const att_segment_group_t *group = &memory->groups[t->group % ATT_GROUPS];
    *facts = (att_space_facts_t){.collective = (int)t->collective,
                                 .bytes = t->bytes,
                                 .ranks = (int)group->ranks,
                                 .nodes = (int)group->nodes,
                                 .legal_pairs = t->legal_pairs,
                                 .connected_pairs = reported->connected_pairs,
                                 .pinned = reported->pinned,
                                 .nccl_version = (int)reported->nccl_version,
                                 .has_chunk = (int)reported->has_chunk,
                                 .gathers_hidden = reported->profiler_abi == 0,
                                 .native = native};
    if (atomic_load(&group->variants_digest) == variants_of(config, &facts->variants))
        keep_variants(&facts->variants, reported->variants);
    else
        facts->variants.count = 0;
    memcpy(facts->cost_us, t->cost_us, sizeof facts->cost_us);
    uint32_t here = att_facts_ceiling(node, config, t->group, native.channels);
    /* Elsewhere an unknown device means: never above NCCL's choice. */
    uint32_t anywhere = reported->ceiling != 0 ? reported->ceiling : native.channels;
    facts->channels_ceiling = (int)least(here, anywhere);
    const att_index_list_t *members = att_node_members(node, t->group);
    for (uint32_t i = 0; i < members->count; i++) {
        uint32_t seen = atomic_load(&memory->members[members->items[i]].channels);
        facts->channels_seen = (int)larger((uint32_t)facts->channels_seen, seen);
    }
}
