/* The tables of a segment: claiming, publishing and finding entries (segment.h). */
#include "base/clock.h"
#include "base/ring.h"
#include "base/segment.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Claim the next entry of a table; the counter never passes the capacity. */
static uint32_t claim(att_segment_memory_t *memory, _Atomic uint32_t *count, uint32_t capacity)
{
    uint32_t index = atomic_load(count);
    do {
        if (index >= capacity) {
            atomic_store(&memory->header.full, 1);
            return ATT_NONE;
        }
    } while (!atomic_compare_exchange_weak(count, &index, index + 1));
    return index;
}

/* An entry claimed by a process that died stays unfinished; a walk over a table waits for such
 * entries no longer than this, all of them together: it may be inside of a training call. */
#define PATIENCE 2000 /* looks; with the kernel's timer slack about 70 us each */

static bool settle(_Atomic uint32_t *state, int *patience)
{
    for (;; --*patience) {
        uint32_t now = atomic_load_explicit(state, memory_order_acquire);
        if (now != ATT_ENTRY_FREE && now != ATT_ENTRY_CLAIMED)
            return now == ATT_ENTRY_LIVE;
        if (*patience <= 0)
            return false;
        if (*patience < PATIENCE - 100)
            att_clock_sleep_ns(10000);
    }
}

/* One that the agent has emptied, CLAIMED now. */
static uint32_t claim_again(att_segment_memory_t *memory)
{
    uint32_t count = att_segment_count(&memory->header.process_count, ATT_PROCESSES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t empty = ATT_ENTRY_EMPTY;
        if (!atomic_compare_exchange_strong(&memory->processes[i].state, &empty, ATT_ENTRY_CLAIMED))
            continue;
        att_segment_process_t *process = &memory->processes[i];
        atomic_store(&process->guarded, 0);
        atomic_store(&process->unstamped, 0);
        /* Counts and helper; what the agent wants of processes stays. */
        memset((void *)&process->decisions, 0,
               sizeof *process - offsetof(att_segment_process_t, decisions));
        return i;
    }
    return ATT_NONE;
}

uint32_t att_segment_add_process(att_segment_memory_t *memory, const char *program)
{
    uint32_t index = claim_again(memory);
    if (index == ATT_NONE)
        index = claim(memory, &memory->header.process_count, ATT_PROCESSES);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_process_t *process = &memory->processes[index];
    process->pid = (int32_t)getpid();
    process->started_ns = att_clock_ns();
    const char *slash = strrchr(program, '/');
    snprintf(process->program, sizeof process->program, "%s", slash != NULL ? slash + 1 : program);
    att_ring_init(&memory->rings[index]);
    atomic_store_explicit(&process->state, ATT_ENTRY_LIVE, memory_order_release);
    return index;
}

/* Find-or-create in an append-only table: look at every entry, claim the next one, then look again
 * at those that others added meanwhile; the lowest equal entry wins, ours is retired. */
uint32_t att_segment_group(att_segment_memory_t *memory, uint64_t hash, uint32_t ranks,
                           uint32_t nodes)
{
    uint32_t mine = ATT_NONE;
    int patience = PATIENCE;
    for (uint32_t i = 0;; i++) {
        if (i >= att_segment_count(&memory->header.group_count, ATT_GROUPS)) {
            if (mine != ATT_NONE)
                return mine;
            mine = claim(memory, &memory->header.group_count, ATT_GROUPS);
            if (mine == ATT_NONE)
                return ATT_NONE;
            att_segment_group_t *group = &memory->groups[mine];
            group->hash = hash;
            group->ranks = ranks;
            group->nodes = nodes;
            atomic_store_explicit(&group->state, ATT_ENTRY_LIVE, memory_order_release);
            if (mine < i) /* cannot happen: the counter only grows */
                return mine;
        }
        att_segment_group_t *group = &memory->groups[i];
        if (!settle(&group->state, &patience) || group->hash != hash || group->ranks != ranks)
            continue;
        if (mine != ATT_NONE && i != mine)
            atomic_store(&memory->groups[mine].state, ATT_ENTRY_RETIRED);
        return i;
    }
}

uint32_t att_segment_add_member(att_segment_memory_t *memory, uint32_t group, uint32_t rank,
                                uint32_t process)
{
    uint32_t index = claim(memory, &memory->header.member_count, ATT_MEMBERS);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_member_t *member = &memory->members[index];
    member->group = group;
    member->rank = rank;
    member->process = process;
    snprintf(member->hook_version, sizeof member->hook_version, "%s", ATTUNE_VERSION);
    atomic_store_explicit(&member->state, ATT_ENTRY_CLAIMED, memory_order_release);
    return index;
}

void att_segment_publish_member(att_segment_memory_t *memory, uint32_t member)
{
    att_segment_member_t *mine = &memory->members[member];
    atomic_store(&mine->state, ATT_ENTRY_LIVE);
    uint32_t count = att_segment_count(&memory->header.member_count, ATT_MEMBERS);
    uint32_t group = mine->group;
    for (uint32_t i = 0; i < count && group < ATT_GROUPS; i++) {
        att_segment_member_t *other = &memory->members[i];
        if (i != member && atomic_load(&other->state) == ATT_ENTRY_LIVE && other->group == group &&
            other->rank == mine->rank)
            atomic_store(&memory->groups[group].duplicate, 1);
    }
}

void att_segment_retire_member(att_segment_memory_t *memory, uint32_t member)
{
    atomic_store(&memory->members[member].state, ATT_ENTRY_RETIRED);
}

uint32_t att_segment_task(att_segment_memory_t *memory, uint32_t group, uint32_t collective,
                          uint64_t bytes, uint32_t legal_pairs, const float cost_us[ATT_PAIR_COUNT])
{
    uint32_t mine = ATT_NONE;
    int patience = PATIENCE;
    for (uint32_t i = 0;; i++) {
        if (i >= att_segment_count(&memory->header.task_count, ATT_TASKS)) {
            if (mine != ATT_NONE)
                return mine;
            mine = claim(memory, &memory->header.task_count, ATT_TASKS);
            if (mine == ATT_NONE)
                return ATT_NONE;
            att_segment_task_t *task = &memory->tasks[mine];
            task->group = group;
            task->collective = collective;
            task->bytes = bytes;
            task->legal_pairs = legal_pairs;
            task->incumbent = ATT_SETTING_KEEP;
            memcpy(task->cost_us, cost_us, sizeof task->cost_us);
            atomic_store_explicit(&task->state, ATT_ENTRY_LIVE, memory_order_release);
        }
        att_segment_task_t *task = &memory->tasks[i];
        if (!settle(&task->state, &patience) || task->group != group ||
            task->collective != collective || task->bytes != bytes ||
            task->legal_pairs != legal_pairs)
            continue;
        if (mine != ATT_NONE && i != mine)
            atomic_store(&memory->tasks[mine].state, ATT_ENTRY_RETIRED);
        return i;
    }
}

uint32_t att_segment_add_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member)
{
    return att_segment_add_routed_lane(memory, task, member, 0);
}

uint32_t att_segment_add_routed_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member,
                                     uint32_t variants)
{
    uint32_t index = claim(memory, &memory->header.lane_count, ATT_LANES);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_lane_t *lane = &memory->lanes[index];
    lane->task = task;
    lane->member = member;
    atomic_store_explicit(&lane->variants, variants, memory_order_relaxed);
    /* A lane that comes late starts from what is decided; the agent counts lanes before it votes.
     */
    atomic_store(&lane->absorbed, (uint32_t)atomic_load(&memory->tasks[task].prepared));
    atomic_store_explicit(&lane->state, ATT_ENTRY_LIVE, memory_order_release);
    return index;
}
