#include "control/turn.h"

#include <stdlib.h>
#include <string.h>

typedef struct want {
    struct want *next; /* in the order of asking */
    att_group_key_t key;
    uint32_t leader;
    uint32_t told, total; /* agents that are known */
    uint32_t *agents;
    int granted, asked, passed;
} want_t;

struct att_turn_keeper {
    const att_turn_ops_t *ops;
    void *context;
    uint32_t agents;
    want_t *groups, **groups_end;
    uint8_t *taken; /* per agent, scratch */
};

int att_turn_keeper_create(const att_turn_ops_t *ops, void *context, uint32_t agents,
                           struct att_turn_keeper **out)
{
    struct att_turn_keeper *k = calloc(1, sizeof *k);
    if (k == NULL)
        return -ATT_ENOMEM;
    k->taken = calloc(agents, 1);
    if (k->taken == NULL) {
        free(k);
        return -ATT_ENOMEM;
    }
    k->ops = ops;
    k->context = context;
    k->agents = agents;
    k->groups_end = &k->groups;
    *out = k;
    return ATT_OK;
}

void att_turn_keeper_destroy(struct att_turn_keeper *k)
{
    if (k == NULL)
        return;
    while (k->groups != NULL) {
        want_t *w = k->groups;
        k->groups = w->next;
        free(w->agents);
        free(w);
    }
    free(k->taken);
    free(k);
}

static want_t **find(struct att_turn_keeper *k, const att_group_key_t *key)
{
    want_t **link = &k->groups;
    while (*link != NULL && ((*link)->key.hash != key->hash || (*link)->key.ranks != key->ranks))
        link = &(*link)->next;
    return link;
}

static void append(struct att_turn_keeper *k, want_t *w)
{
    w->next = NULL;
    *k->groups_end = w;
    k->groups_end = &w->next;
}

static void take_out(struct att_turn_keeper *k, want_t **link)
{
    want_t *w = *link;
    *link = w->next;
    if (w->next == NULL)
        k->groups_end = link;
}

#define KEPT   1 /* taken, or kept for one that was passed */
#define WANTED 2 /* by an earlier one that waits */
#define LATE   4 /* just granted past such a one */

/* What is on its nodes, ORed. */
static int on_nodes_of(const struct att_turn_keeper *k, const want_t *w)
{
    int on = 0;
    for (uint32_t i = 0; i < w->total; i++)
        on |= k->taken[w->agents[i]];
    return on;
}

static void mark(struct att_turn_keeper *k, const want_t *w, uint8_t what)
{
    for (uint32_t i = 0; i < w->total; i++)
        k->taken[w->agents[i]] |= what;
}

static bool waits(const want_t *w)
{
    return w->asked && !w->granted && w->told == w->total && w->total > 0;
}

/* `late` was granted: those before it that wait and share a node with it will not be passed again.
 */
static void note_passed(struct att_turn_keeper *k, const want_t *late)
{
    mark(k, late, LATE);
    for (want_t *w = k->groups; w != late; w = w->next)
        if (waits(w) && (on_nodes_of(k, w) & LATE) != 0)
            w->passed = 1;
    for (want_t *w = k->groups; w != late; w = w->next)
        if (waits(w) && w->passed)
            mark(k, w, KEPT);
    for (uint32_t i = 0; i < late->total; i++)
        k->taken[late->agents[i]] &= (uint8_t)~LATE;
}

/* Held sets first, then the waiting ones in order. O(sum of the sets), and once more for a pass. */
static void grant_what_is_free(struct att_turn_keeper *k)
{
    memset(k->taken, 0, k->agents);
    for (const want_t *w = k->groups; w != NULL; w = w->next)
        if (w->granted)
            mark(k, w, KEPT);
    for (want_t *w = k->groups; w != NULL; w = w->next) {
        if (!waits(w))
            continue;
        int on = on_nodes_of(k, w);
        if ((on & KEPT) != 0) {
            mark(k, w, w->passed ? KEPT : WANTED);
            continue;
        }
        w->granted = 1;
        w->passed = 0;
        mark(k, w, KEPT);
        if ((on & WANTED) != 0)
            note_passed(k, w);
        k->ops->grant(k->context, w->leader, &w->key);
    }
}

static want_t *find_or_make(struct att_turn_keeper *k, const att_group_key_t *key)
{
    want_t *w = *find(k, key);
    if (w != NULL)
        return w;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->key = *key;
    append(k, w);
    return w;
}

static void on_nodes(struct att_turn_keeper *k, const att_message_t *m)
{
    uint32_t total = m->body.agents.total, first = m->body.agents.first;
    want_t *w = find_or_make(k, &m->group);
    if (w == NULL || total > k->agents || first > total || m->count > total - first)
        return;
    if (w->agents == NULL) {
        w->agents = calloc(total, sizeof *w->agents);
        if (w->agents == NULL)
            return;
        w->total = total;
    }
    for (uint32_t i = 0; i < m->count && w->total == total; i++)
        if (m->body.agents.agent[i] < k->agents) {
            w->agents[first + i] = m->body.agents.agent[i];
            w->told++;
        }
}

void att_turn_message(struct att_turn_keeper *k, uint32_t from, const att_message_t *m)
{
    want_t **link, *w;
    switch (m->type) {
    case ATT_MESSAGE_NODES:
        on_nodes(k, m);
        break;
    case ATT_MESSAGE_ASK:
        w = find_or_make(k, &m->group);
        if (w == NULL || w->asked)
            return;
        /* To the end of the order. */
        link = find(k, &m->group);
        take_out(k, link);
        append(k, w);
        w->asked = 1;
        w->leader = from;
        break;
    case ATT_MESSAGE_RETURN:
        w = *find(k, &m->group);
        if (w == NULL)
            return;
        w->asked = w->granted = w->passed = 0;
        break;
    case ATT_MESSAGE_ENDED:
        link = find(k, &m->group);
        w = *link;
        if (w == NULL)
            return;
        take_out(k, link);
        free(w->agents);
        free(w);
        break;
    default:
        return;
    }
    grant_what_is_free(k);
}

void att_turn_counts(const struct att_turn_keeper *k, uint32_t *granted, uint32_t *waiting)
{
    *granted = *waiting = 0;
    for (const want_t *w = k->groups; w != NULL; w = w->next) {
        *granted += (uint32_t)w->granted;
        *waiting += (uint32_t)(w->asked && !w->granted);
    }
}
