#include "control/node.h"

#include <stdlib.h>
#include <string.h>

#define TURN_RECORDS 256 /* taken from one ring before the next one has its turn */

/* Entries 0..done of a table were taken up; an entry beyond may be taken up already (bit set) while
 * an earlier one is still being filled by its hook. */
typedef struct cursor {
    uint32_t done;
    uint8_t *taken;
} cursor_t;

struct att_node {
    att_segment_memory_t *memory;
    cursor_t members, tasks, lanes;
    uint32_t groups, task_count;
    uint32_t fullest;
    uint64_t unused;     /* records without a task or member */
    uint8_t *buried;     /* members whose process was gone before they had left */
    att_coverage_t gone; /* of processes whose entries were emptied */
    att_index_list_t members_of[ATT_GROUPS];
    att_index_list_t lanes_of[ATT_TASKS];
    uint32_t largest; /* members of a group */
    int timing;
    uint32_t timed_processes;
};

int att_index_list_add(att_index_list_t *list, uint32_t item)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        uint32_t *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL)
            return -ATT_ENOMEM;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return ATT_OK;
}

void att_index_list_free(att_index_list_t *list)
{
    free(list->items);
    *list = (att_index_list_t){0};
}

static void add_process(const att_segment_memory_t *m, uint32_t p, att_coverage_t *coverage);

int att_node_create(att_segment_memory_t *memory, struct att_node **out)
{
    struct att_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return -ATT_ENOMEM;
    node->memory = memory;
    node->members.taken = calloc(ATT_MEMBERS, 1);
    node->tasks.taken = calloc(ATT_TASKS, 1);
    node->lanes.taken = calloc(ATT_LANES, 1);
    node->buried = calloc(ATT_MEMBERS, 1);
    if (node->members.taken == NULL || node->tasks.taken == NULL || node->lanes.taken == NULL ||
        node->buried == NULL) {
        att_node_destroy(node);
        return -ATT_ENOMEM;
    }
    /* An earlier agent emptied them. */
    for (uint32_t p = 0; p < att_segment_count(&memory->header.process_count, ATT_PROCESSES); p++)
        if (atomic_load(&memory->processes[p].state) == ATT_ENTRY_EMPTY)
            add_process(memory, p, &node->gone);
    *out = node;
    return ATT_OK;
}

void att_node_destroy(struct att_node *node)
{
    if (node == NULL)
        return;
    for (uint32_t i = 0; i < ATT_GROUPS; i++)
        att_index_list_free(&node->members_of[i]);
    for (uint32_t i = 0; i < ATT_TASKS; i++)
        att_index_list_free(&node->lanes_of[i]);
    free(node->members.taken);
    free(node->tasks.taken);
    free(node->lanes.taken);
    free(node->buried);
    free(node);
}

att_segment_memory_t *att_node_memory(const struct att_node *node)
{
    return node->memory;
}

/* Next entry of a table that is filled and not taken yet, or ATT_NONE. */
static uint32_t next_entry(cursor_t *cursor, uint32_t from, uint32_t count,
                           const _Atomic uint32_t *first_state, size_t stride)
{
    if (from < cursor->done)
        from = cursor->done;
    for (uint32_t i = from; i < count; i++) {
        const _Atomic uint32_t *state =
            (const _Atomic uint32_t *)((const char *)first_state + i * stride);
        if (!cursor->taken[i] && att_segment_is_filled(state)) {
            cursor->taken[i] = 1;
            while (cursor->done < count && cursor->taken[cursor->done])
                cursor->done++;
            return i;
        }
    }
    return ATT_NONE;
}

int att_node_scan(struct att_node *node)
{
    att_segment_memory_t *m = node->memory;
    int added = 0;
    uint32_t i = 0;
    while (
        (i = next_entry(&node->members, i, att_segment_count(&m->header.member_count, ATT_MEMBERS),
                        &m->members[0].state, sizeof m->members[0])) != ATT_NONE) {
        uint32_t group = m->members[i].group;
        if (group >= ATT_GROUPS)
            continue;
        added |= att_index_list_add(&node->members_of[group], i) == ATT_OK;
        if (node->members_of[group].count > node->largest)
            node->largest = node->members_of[group].count;
    }
    i = 0;
    node->task_count = att_segment_count(&m->header.task_count, ATT_TASKS);
    while ((i = next_entry(&node->tasks, i, node->task_count, &m->tasks[0].state,
                           sizeof m->tasks[0])) != ATT_NONE)
        added = 1;
    i = 0;
    while ((i = next_entry(&node->lanes, i, att_segment_count(&m->header.lane_count, ATT_LANES),
                           &m->lanes[0].state, sizeof m->lanes[0])) != ATT_NONE) {
        uint32_t task = m->lanes[i].task;
        if (task < ATT_TASKS && m->lanes[i].member < ATT_MEMBERS)
            added |= att_index_list_add(&node->lanes_of[task], i) == ATT_OK;
    }
    node->groups = att_segment_count(&m->header.group_count, ATT_GROUPS);
    if (att_segment_count(&m->header.process_count, ATT_PROCESSES) != node->timed_processes)
        att_node_set_timing(node, node->timing);
    return added;
}

uint32_t att_node_group_count(const struct att_node *node)
{
    return node->groups;
}

uint32_t att_node_ranks(const struct att_node *node)
{
    return node->largest > 0 ? node->largest : 1;
}

uint32_t att_node_task_count(const struct att_node *node)
{
    return node->task_count;
}

int att_node_has_task(const struct att_node *node, uint32_t task)
{
    return atomic_load(&node->memory->tasks[task % ATT_TASKS].state) == ATT_ENTRY_LIVE &&
           att_node_lanes(node, task)->count > 0;
}

const att_index_list_t *att_node_members(const struct att_node *node, uint32_t group)
{
    return &node->members_of[group % ATT_GROUPS]; /* indices come from the segment */
}

const att_index_list_t *att_node_lanes(const struct att_node *node, uint32_t task)
{
    return &node->lanes_of[task % ATT_TASKS];
}

uint64_t att_node_drain(struct att_node *node, uint32_t limit, att_record_fn each, void *context)
{
    att_segment_memory_t *m = node->memory;
    uint32_t count = att_segment_count(&m->header.process_count, ATT_PROCESSES);
    uint32_t held[ATT_PROCESSES] = {0};
    uint64_t taken = 0, before = 1;
    /* In turns: the records of a call must not be farther apart than the reduction's window. */
    for (uint32_t turn = 0; before > 0 && turn < limit; turn += TURN_RECORDS) {
        before = taken;
        for (uint32_t p = 0; p < count; p++) {
            /* A process that has ended may have left records. */
            if (!att_segment_is_filled(&m->processes[p].state))
                continue;
            att_record_t record;
            for (uint32_t i = 0; i < TURN_RECORDS && att_ring_get(&m->rings[p], &record); i++) {
                held[p]++;
                taken++;
                if ((record.task < ATT_TASKS && record.member < ATT_MEMBERS) ||
                    record.source == ATT_TIME_MARK)
                    each(context, &record);
                else
                    node->unused++;
            }
        }
        before = taken - before;
    }
    node->fullest = 0;
    for (uint32_t p = 0; p < count; p++)
        if (held[p] > node->fullest)
            node->fullest = held[p];
    return taken;
}

uint32_t att_node_fullest(const struct att_node *node)
{
    return node->fullest;
}

uint64_t att_node_dropped(const struct att_node *node)
{
    uint64_t dropped = 0;
    uint32_t count = att_segment_count(&node->memory->header.process_count, ATT_PROCESSES);
    for (uint32_t p = 0; p < count; p++)
        dropped += atomic_load(&node->memory->rings[p].dropped);
    return dropped;
}

void att_node_set_timing(struct att_node *node, int on)
{
    uint32_t count = att_segment_count(&node->memory->header.process_count, ATT_PROCESSES);
    for (uint32_t p = 0; p < count; p++)
        atomic_store_explicit(&node->memory->processes[p].timing, (uint32_t)on,
                              memory_order_relaxed);
    node->timing = on;
    node->timed_processes = count;
}

uint32_t att_node_channel_ceiling(const struct att_node *node, uint32_t group, uint32_t reserve,
                                  att_channels_fn others, void *context)
{
    static const uint8_t unknown[16];
    const att_segment_memory_t *m = node->memory;
    uint32_t ceiling = UINT32_MAX;
    const att_index_list_t *mine = att_node_members(node, group);
    for (uint32_t i = 0; i < mine->count; i++) {
        const att_segment_member_t *a = &m->members[mine->items[i]];
        if (a->device_units == 0 || memcmp(a->device_id, unknown, sizeof unknown) == 0)
            return 0;
        /* Everything else that can run on this member's device at the same time. */
        uint32_t taken = reserve, sharers = 0;
        for (uint32_t g = 0; g < node->groups; g++) {
            const att_index_list_t *list = &node->members_of[g];
            for (uint32_t k = 0; k < list->count; k++) {
                const att_segment_member_t *b = &m->members[list->items[k]];
                if (atomic_load(&b->state) != ATT_ENTRY_LIVE ||
                    memcmp(a->device_id, b->device_id, sizeof a->device_id) != 0)
                    continue;
                if (g == group)
                    sharers++;
                else
                    taken += others(context, g);
            }
        }
        if (sharers == 0)
            continue;
        uint32_t share = a->device_units > taken ? (a->device_units - taken) / sharers : 0;
        if (a->channels_most != 0 && a->channels_most < share)
            share = a->channels_most;
        if (share < ceiling)
            ceiling = share;
    }
    return ceiling == UINT32_MAX ? 0 : ceiling;
}

void att_coverage_add(att_coverage_t *sum, const att_coverage_t *other)
{
    sum->decisions += other->decisions;
    sum->timed += other->timed;
    for (int i = 0; i < ATT_UNTIMED_COUNT; i++)
        sum->untimed[i] += other->untimed[i];
    sum->frozen += other->frozen;
    sum->simulated += other->simulated;
    sum->unseen += other->unseen;
    sum->dropped += other->dropped;
    sum->anomalies += other->anomalies;
    sum->waited += other->waited;
    if (other->longest_wait_ns > sum->longest_wait_ns)
        sum->longest_wait_ns = other->longest_wait_ns;
    sum->in_doubt += other->in_doubt;
    sum->refused += other->refused;
    sum->called += other->called;
    sum->answered += other->answered;
    sum->bypassed += other->bypassed;
    sum->streams += other->streams;
    sum->unused += other->unused;
    sum->incomplete += other->incomplete;
    sum->unsent += other->unsent;
    sum->waiting += other->waiting;
    sum->processes += other->processes;
}

static void add_process(const att_segment_memory_t *m, uint32_t p, att_coverage_t *coverage)
{
    const att_segment_process_t *process = &m->processes[p];
    coverage->processes++;
    coverage->decisions += atomic_load(&process->decisions);
    coverage->timed += atomic_load(&process->timed);
    for (int i = 0; i < ATT_UNTIMED_COUNT; i++)
        coverage->untimed[i] += atomic_load(&process->untimed[i]);
    coverage->frozen += atomic_load(&process->frozen);
    coverage->simulated += atomic_load(&process->simulated);
    coverage->unseen += atomic_load(&process->unseen);
    coverage->anomalies += atomic_load(&process->anomalies);
    coverage->waited += atomic_load(&process->waited);
    coverage->in_doubt += atomic_load(&process->in_doubt);
    coverage->called += atomic_load(&process->called);
    coverage->answered += atomic_load(&process->answered);
    coverage->bypassed += atomic_load(&process->bypassed);
    coverage->streams += atomic_load(&process->streams);
    coverage->dropped += atomic_load(&m->rings[p].dropped);
    uint64_t longest = atomic_load(&process->longest_wait_ns);
    if (longest > coverage->longest_wait_ns)
        coverage->longest_wait_ns = longest;
}

void att_node_coverage(const struct att_node *node, att_coverage_t *coverage)
{
    const att_segment_memory_t *m = node->memory;
    *coverage = node->gone;
    uint32_t count = att_segment_count(&m->header.process_count, ATT_PROCESSES);
    for (uint32_t p = 0; p < count; p++)
        if (atomic_load(&m->processes[p].state) != ATT_ENTRY_EMPTY)
            add_process(m, p, coverage);
    uint32_t lanes = att_segment_count(&m->header.lane_count, ATT_LANES);
    for (uint32_t i = 0; i < lanes; i++)
        coverage->refused += atomic_load(&m->lanes[i].refused);
    coverage->unused += node->unused;
}

/* --- processes that are gone ------------------------------------------------------------------ */

/* What it has left in its ring is taken. A record that it was writing when it was killed blocks
 * those behind it: they are lost. */
static void empty(struct att_node *node, uint32_t p)
{
    const att_ring_t *ring = &node->memory->rings[p];
    add_process(node->memory, p, &node->gone);
    node->gone.dropped += atomic_load(&ring->head) - atomic_load(&ring->tail);
    atomic_store(&node->memory->processes[p].state, ATT_ENTRY_EMPTY);
}

uint32_t att_node_bury(struct att_node *node, att_alive_fn alive, void *context)
{
    att_segment_memory_t *m = node->memory;
    uint32_t buried = 0, count = att_segment_count(&m->header.process_count, ATT_PROCESSES);
    for (uint32_t p = 0; p < count; p++) {
        uint32_t state = atomic_load(&m->processes[p].state);
        if ((state != ATT_ENTRY_LIVE && state != ATT_ENTRY_RETIRED) || alive(context, p))
            continue;
        uint32_t members = att_segment_count(&m->header.member_count, ATT_MEMBERS);
        for (uint32_t i = 0; i < members; i++)
            if (m->members[i].process == p && atomic_load(&m->members[i].state) == ATT_ENTRY_LIVE) {
                node->buried[i] = 1;
                att_segment_retire_member(m, i);
                buried += state == ATT_ENTRY_LIVE;
            }
        /* Not before its ring was drained once more. */
        if (state == ATT_ENTRY_LIVE)
            atomic_store(&m->processes[p].state, ATT_ENTRY_RETIRED);
        else
            empty(node, p);
    }
    return buried;
}

bool att_node_all_left(const struct att_node *node, uint32_t group)
{
    const att_index_list_t *members = att_node_members(node, group);
    for (uint32_t i = 0; i < members->count; i++)
        if (node->buried[members->items[i]] ||
            atomic_load(&node->memory->members[members->items[i]].state) != ATT_ENTRY_RETIRED)
            return false;
    return members->count > 0;
}
