#include "profile/catalog.h"

#include "profile/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger indices than any segment has are damage. */
#define MOST 65536u

/* Room for entry `index` of an array that grows by doubling; new room is filled with `fill`. */
static int make_room(void *array, uint32_t *room, uint32_t index, size_t size, int fill)
{
    char **items = array;
    if (index < *room)
        return ATT_OK;
    uint32_t wanted = *room == 0 ? 16 : *room;
    while (wanted <= index)
        wanted *= 2;
    char *grown = realloc(*items, wanted * size);
    if (grown == NULL)
        return -ATT_ENOMEM;
    memset(grown + *room * size, fill, (wanted - *room) * size);
    *items = grown;
    *room = wanted;
    return ATT_OK;
}

int att_catalog_node(att_catalog_t *c, const att_stream_header_t *header, uint32_t *node)
{
    for (uint32_t i = 0; i < c->node_count; i++)
        if (c->nodes[i].agent == header->node &&
            memcmp(c->nodes[i].node_id, header->node_id, sizeof header->node_id) == 0) {
            *node = i;
            return ATT_OK;
        }
    if (att_room_append(&c->nodes, c->node_count, sizeof *c->nodes) != ATT_OK)
        return -ATT_ENOMEM;
    att_catalog_node_t *n = &c->nodes[c->node_count];
    *n = (att_catalog_node_t){.agent = header->node};
    memcpy(n->node_id, header->node_id, sizeof n->node_id);
    snprintf(n->host, sizeof n->host, "%s", header->host);
    *node = c->node_count++;
    return ATT_OK;
}

int att_catalog_add_group(att_catalog_t *c, uint32_t node, const att_stream_group_t *group)
{
    att_catalog_node_t *n = &c->nodes[node];
    if (group->index >= MOST || group->ranks == 0)
        return ATT_OK;
    if (make_room(&n->groups, &n->group_room, group->index, sizeof *n->groups, 0xff) != ATT_OK)
        return -ATT_ENOMEM;
    if (n->groups[group->index] != ATT_CATALOG_NONE)
        return ATT_OK;
    uint32_t g = 0;
    while (g < c->group_count &&
           (c->groups[g].hash != group->hash || c->groups[g].ranks != group->ranks))
        g++;
    if (g == c->group_count) {
        if (att_room_append(&c->groups, c->group_count, sizeof *c->groups) != ATT_OK)
            return -ATT_ENOMEM;
        c->groups[c->group_count++] = (att_catalog_group_t){
            .hash = group->hash, .ranks = group->ranks, .nodes = group->nodes};
    }
    n->groups[group->index] = g;
    return ATT_OK;
}

int att_catalog_add_process(att_catalog_t *c, uint32_t node, const att_stream_process_t *process)
{
    att_catalog_node_t *n = &c->nodes[node];
    if (process->index >= MOST)
        return ATT_OK;
    if (make_room(&n->processes, &n->process_room, process->index, sizeof *n->processes, 0) !=
        ATT_OK)
        return -ATT_ENOMEM;
    n->processes[process->index].pid = process->pid;
    snprintf(n->processes[process->index].program, sizeof n->processes[0].program, "%.63s",
             process->program);
    return ATT_OK;
}

int att_catalog_add_task(att_catalog_t *c, uint32_t node, const att_stream_task_t *task)
{
    att_catalog_node_t *n = &c->nodes[node];
    if (task->index >= MOST || task->group >= n->group_room ||
        n->groups[task->group] == ATT_CATALOG_NONE || task->collective >= ATT_COLLECTIVE_COUNT)
        return ATT_OK;
    if (make_room(&n->tasks, &n->task_room, task->index, sizeof *n->tasks, 0xff) != ATT_OK)
        return -ATT_ENOMEM;
    if (n->tasks[task->index] != ATT_CATALOG_NONE)
        return ATT_OK;
    uint32_t group = n->groups[task->group], t = 0;
    while (t < c->task_count &&
           (c->tasks[t].group != group || c->tasks[t].collective != task->collective ||
            c->tasks[t].bytes != task->bytes || c->tasks[t].legal_pairs != task->legal_pairs))
        t++;
    if (t == c->task_count) {
        if (att_room_append(&c->tasks, c->task_count, sizeof *c->tasks) != ATT_OK)
            return -ATT_ENOMEM;
        c->tasks[c->task_count++] = (att_catalog_task_t){.group = group,
                                                         .collective = task->collective,
                                                         .legal_pairs = task->legal_pairs,
                                                         .bytes = task->bytes};
    }
    n->tasks[task->index] = t;
    return ATT_OK;
}

int att_catalog_add_member(att_catalog_t *c, uint32_t node, const att_stream_member_t *member)
{
    att_catalog_node_t *n = &c->nodes[node];
    if (member->index >= MOST || member->group >= n->group_room ||
        n->groups[member->group] == ATT_CATALOG_NONE)
        return ATT_OK;
    uint32_t group = n->groups[member->group];
    if (member->rank >= c->groups[group].ranks)
        return ATT_OK;
    if (make_room(&n->members, &n->member_room, member->index, sizeof *n->members, 0xff) != ATT_OK)
        return -ATT_ENOMEM;
    if (n->members[member->index] != ATT_CATALOG_NONE)
        return ATT_OK;
    if (att_room_append(&c->members, c->member_count, sizeof *c->members) != ATT_OK)
        return -ATT_ENOMEM;
    att_catalog_member_t *m = &c->members[c->member_count];
    *m = (att_catalog_member_t){.node = node,
                                .group = group,
                                .rank = member->rank,
                                .process = member->process,
                                .place = ATT_CATALOG_NONE,
                                .clock_kind = member->clock_kind,
                                .clock_id = member->clock_id,
                                .nccl_version = member->nccl_version,
                                .local = member->index};
    memcpy(m->device_id, member->device_id, sizeof m->device_id);
    n->members[member->index] = c->member_count++;
    c->groups[group].members++;
    return ATT_OK;
}

/* --- places -------------------------------------------------------------------------------------
 */

/* Several ranks of one group may share a device: they are told apart by their order in it. */
static uint32_t ordinal_of(const att_catalog_t *c, uint32_t member)
{
    const att_catalog_member_t *m = &c->members[member];
    uint32_t ordinal = 0;
    for (uint32_t i = 0; i < member; i++) {
        const att_catalog_member_t *o = &c->members[i];
        ordinal += o->node == m->node && o->process == m->process && o->group == m->group &&
                   o->rank != m->rank &&
                   memcmp(o->device_id, m->device_id, sizeof m->device_id) == 0;
    }
    return ordinal;
}

static int place_member(att_catalog_t *c, uint32_t member)
{
    att_catalog_member_t *m = &c->members[member];
    uint32_t ordinal = ordinal_of(c, member);
    for (uint32_t i = 0; i < c->place_count; i++) {
        const att_catalog_place_t *p = &c->places[i];
        if (p->node == m->node && p->process == m->process && p->ordinal == ordinal &&
            memcmp(p->device_id, m->device_id, sizeof m->device_id) == 0) {
            m->place = i;
            return ATT_OK;
        }
    }
    if (att_room_append(&c->places, c->place_count, sizeof *c->places) != ATT_OK)
        return -ATT_ENOMEM;
    const att_catalog_node_t *n = &c->nodes[m->node];
    att_catalog_place_t *p = &c->places[c->place_count];
    *p = (att_catalog_place_t){
        .node = m->node, .process = m->process, .ordinal = ordinal, .job_rank = ATT_CATALOG_NONE};
    memcpy(p->device_id, m->device_id, sizeof p->device_id);
    if (m->process < n->process_room) {
        p->pid = n->processes[m->process].pid;
        snprintf(p->program, sizeof p->program, "%s", n->processes[m->process].program);
    }
    m->place = c->place_count++;
    return ATT_OK;
}

static int by_job_rank(const void *a, const void *b)
{
    const att_catalog_place_t *x = a, *y = b;
    return (x->job_rank > y->job_rank) - (x->job_rank < y->job_rank);
}

/* In order of their numbers; members follow. */
static int sort_places(att_catalog_t *c)
{
    uint32_t *ranks = malloc((c->member_count + 1) * sizeof *ranks);
    if (ranks == NULL)
        return -ATT_ENOMEM;
    for (uint32_t i = 0; i < c->member_count; i++)
        ranks[i] = c->places[c->members[i].place].job_rank;
    qsort(c->places, c->place_count, sizeof *c->places, by_job_rank);
    for (uint32_t i = 0; i < c->member_count; i++) {
        uint32_t low = 0, high = c->place_count;
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (c->places[middle].job_rank <= ranks[i])
                low = middle;
            else
                high = middle;
        }
        c->members[i].place = low;
    }
    free(ranks);
    return ATT_OK;
}

int att_catalog_finish(att_catalog_t *c)
{
    c->world = ATT_CATALOG_NONE;
    for (uint32_t i = 0; i < c->member_count; i++)
        if (place_member(c, i) != ATT_OK)
            return -ATT_ENOMEM;
    for (uint32_t g = 0; g < c->group_count; g++)
        if (c->world == ATT_CATALOG_NONE || c->groups[g].ranks > c->groups[c->world].ranks)
            c->world = g;
    uint32_t next = c->world == ATT_CATALOG_NONE ? 0 : c->groups[c->world].ranks;
    for (uint32_t i = 0; i < c->member_count; i++)
        if (c->members[i].group == c->world)
            c->places[c->members[i].place].job_rank = c->members[i].rank;
    for (uint32_t i = 0; i < c->place_count; i++)
        if (c->places[i].job_rank == ATT_CATALOG_NONE)
            c->places[i].job_rank = next++;
    return c->place_count > 0 ? sort_places(c) : ATT_OK;
}

void att_catalog_free(att_catalog_t *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        free(c->nodes[i].tasks);
        free(c->nodes[i].members);
        free(c->nodes[i].groups);
        free(c->nodes[i].processes);
    }
    free(c->nodes);
    free(c->groups);
    free(c->tasks);
    free(c->members);
    free(c->places);
    *c = (att_catalog_t){0};
}

uint32_t att_catalog_task_of(const att_catalog_t *c, uint32_t node, uint32_t local)
{
    const att_catalog_node_t *n = &c->nodes[node];
    return local < n->task_room ? n->tasks[local] : ATT_CATALOG_NONE;
}

uint32_t att_catalog_member_of(const att_catalog_t *c, uint32_t node, uint32_t local)
{
    const att_catalog_node_t *n = &c->nodes[node];
    return local < n->member_room ? n->members[local] : ATT_CATALOG_NONE;
}
