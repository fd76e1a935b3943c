#include "control/registry.h"

#include "base/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS   4096
#define NOBODY    UINT32_MAX
#define MOST_RANK 1048576u /* a registration of more ranks is nonsense */

typedef struct entry {
    struct entry *next;
    att_group_key_t key;
    uint32_t nodes;
    uint32_t known;     /* ranks registered */
    uint32_t *agent_of; /* per rank, NOBODY unknown */
    uint32_t *agents;   /* sorted; once announced */
    uint32_t agent_count, retired;
    int announced, ended;
} entry_t;

struct att_registry {
    const att_registry_ops_t *ops;
    void *context;
    uint32_t agents;
    uint32_t groups;
    entry_t *buckets[BUCKETS];
};

int att_registry_create(const att_registry_ops_t *ops, void *context, uint32_t agents,
                        struct att_registry **out)
{
    struct att_registry *r = calloc(1, sizeof *r);
    if (r == NULL)
        return -ATT_ENOMEM;
    r->ops = ops;
    r->context = context;
    r->agents = agents;
    *out = r;
    return ATT_OK;
}

static void free_entry(entry_t *entry)
{
    free(entry->agent_of);
    free(entry->agents);
    free(entry);
}

void att_registry_destroy(struct att_registry *r)
{
    if (r == NULL)
        return;
    for (uint32_t b = 0; b < BUCKETS; b++)
        while (r->buckets[b] != NULL) {
            entry_t *entry = r->buckets[b];
            r->buckets[b] = entry->next;
            free_entry(entry);
        }
    free(r);
}

uint32_t att_registry_groups(const struct att_registry *r)
{
    return r->groups;
}

static void step(struct att_registry *r, att_step_t reached, const att_group_key_t *group)
{
    if (r->ops->step != NULL)
        r->ops->step(r->context, (int)reached, group);
}

static entry_t **find(struct att_registry *r, const att_group_key_t *key)
{
    entry_t **link = &r->buckets[(key->hash ^ key->hash >> 32) % BUCKETS];
    while (*link != NULL && ((*link)->key.hash != key->hash || (*link)->key.ranks != key->ranks))
        link = &(*link)->next;
    return link;
}

static entry_t *find_or_make(struct att_registry *r, const att_message_t *m)
{
    entry_t **link = find(r, &m->group);
    if (*link != NULL)
        return *link;
    entry_t *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->key = m->group;
    entry->nodes = m->body.ranks.nodes;
    entry->agent_of = malloc(m->group.ranks * sizeof *entry->agent_of);
    if (entry->agent_of == NULL) {
        free(entry);
        return NULL;
    }
    for (uint32_t i = 0; i < m->group.ranks; i++)
        entry->agent_of[i] = NOBODY;
    *link = entry;
    r->groups++;
    return entry;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The group's agents, each once, in order. */
static int list_agents(entry_t *entry)
{
    entry->agents = malloc(entry->key.ranks * sizeof *entry->agents);
    if (entry->agents == NULL)
        return -ATT_ENOMEM;
    memcpy(entry->agents, entry->agent_of, entry->key.ranks * sizeof *entry->agents);
    qsort(entry->agents, entry->key.ranks, sizeof *entry->agents, by_number);
    uint32_t count = 1;
    for (uint32_t i = 1; i < entry->key.ranks; i++)
        if (entry->agents[i] != entry->agents[count - 1])
            entry->agents[count++] = entry->agents[i];
    entry->agent_count = count;
    return ATT_OK;
}

static uint32_t index_of(const entry_t *entry, uint32_t agent)
{
    const uint32_t *at =
        bsearch(&agent, entry->agents, entry->agent_count, sizeof agent, by_number);
    return (uint32_t)(at - entry->agents);
}

static void tell_keeper(struct att_registry *r, const entry_t *entry)
{
    att_message_t m = {.type = ATT_MESSAGE_NODES, .group = entry->key};
    m.body.agents.total = entry->agent_count;
    for (uint32_t first = 0; first < entry->agent_count; first += m.count) {
        uint32_t left = entry->agent_count - first;
        m.count = left < ATT_RANKS_A_SLICE ? left : ATT_RANKS_A_SLICE;
        m.body.agents.first = first;
        memcpy(m.body.agents.agent, entry->agents + first, m.count * sizeof *entry->agents);
        r->ops->send(r->context, ATT_KEEPER, &m);
    }
}

static void announce(struct att_registry *r, entry_t *entry)
{
    if (list_agents(entry) != ATT_OK)
        return;
    uint32_t count = entry->agent_count;
    uint32_t *here = calloc(2 * (size_t)count, sizeof *here);
    if (here == NULL)
        return;
    uint32_t *below = here + count;
    for (uint32_t i = 0; i < entry->key.ranks; i++)
        here[index_of(entry, entry->agent_of[i])]++;
    uint32_t root = index_of(entry, entry->agent_of[0]);
    att_tree_sums(here, count, root, below);
    tell_keeper(r, entry);
    for (uint32_t a = 0; a < count; a++) {
        att_tree_place_t place = att_tree_place(entry->agents, count, root, a);
        att_message_t m = {.type = ATT_MESSAGE_PLACE, .group = entry->key};
        m.body.place = (att_place_t){.agents = count,
                                     .leader = entry->agent_of[0],
                                     .parent = place.parent,
                                     .child_count = place.child_count,
                                     .ranks_here = here[a],
                                     .ranks_below = below[a],
                                     .agents_below = place.below};
        memcpy(m.body.place.children, place.children, sizeof place.children);
        r->ops->send(r->context, entry->agents[a], &m);
    }
    free(here);
    entry->announced = 1;
    step(r, ATT_STEP_ANNOUNCED, &entry->key);
}

static void end(struct att_registry *r, entry_t *entry, const char *why)
{
    if (entry->ended)
        return;
    entry->ended = 1;
    att_message_t m = {.type = ATT_MESSAGE_ENDED, .group = entry->key};
    snprintf(m.body.reason, sizeof m.body.reason, "%s", why);
    if (entry->announced) {
        for (uint32_t a = 0; a < entry->agent_count; a++)
            r->ops->send(r->context, entry->agents[a], &m);
        r->ops->send(r->context, ATT_KEEPER, &m);
        return;
    }
    /* Not complete: whoever has registered is told. A rank may be the first of its agent. */
    for (uint32_t i = 0; i < entry->key.ranks; i++) {
        uint32_t agent = entry->agent_of[i], k = 0;
        while (agent != NOBODY && k < i && entry->agent_of[k] != agent)
            k++;
        if (agent != NOBODY && k == i)
            r->ops->send(r->context, agent, &m);
    }
}

static void on_register(struct att_registry *r, uint32_t from, const att_message_t *m)
{
    entry_t *entry = find_or_make(r, m);
    if (entry == NULL)
        return;
    step(r, ATT_STEP_ENTERED, &entry->key);
    char why[ATT_REASON_BYTES] = "";
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t rank = m->body.ranks.rank[i];
        if (rank >= entry->key.ranks)
            continue;
        if (entry->agent_of[rank] != NOBODY && why[0] == '\0') {
            snprintf(why, sizeof why, "two communicators carry its hash: rank %u is there twice",
                     rank);
            continue;
        }
        entry->known++;
        entry->agent_of[rank] = from;
    }
    if (why[0] != '\0')
        end(r, entry, why);
    else if (entry->known == entry->key.ranks && !entry->announced && !entry->ended)
        announce(r, entry);
}

/* Each agent retires a group once. When all have, its hash may come again. */
static void on_retire(struct att_registry *r, const att_message_t *m)
{
    entry_t **link = find(r, &m->group);
    entry_t *entry = *link;
    if (entry == NULL)
        return;
    end(r, entry, "its communicator is gone");
    entry->retired++;
    if (!entry->announced || entry->retired < entry->agent_count)
        return;
    *link = entry->next;
    r->groups--;
    step(r, ATT_STEP_DROPPED, &entry->key);
    free_entry(entry);
}

void att_registry_message(struct att_registry *r, uint32_t from, const att_message_t *m)
{
    if (m->group.ranks == 0 || m->group.ranks > MOST_RANK)
        return;
    if (m->type == ATT_MESSAGE_REGISTER)
        on_register(r, from, m);
    else if (m->type == ATT_MESSAGE_RETIRE)
        on_retire(r, m);
}
