#include "control/registry.h"

#include "control/messenger.h"

#include <stdlib.h>
#include <string.h>

#define RANKS_A_MESSAGE 900
#define PARTS_A_MESSAGE 48
#define OBSERVED_TASKS  256
#define FIRST_LOOK      256 /* calls of a new task that are timed at once */
#define FLUSH_NS        100000000ull
#define NO_AGENT        UINT32_MAX

/* Messages: a header, then `count` ranks (REGISTER) or parts (PARTS). Same machine type on all
 * agents of a job is assumed, as MPI_BYTE does. */
typedef enum message_type { REGISTER = 1, MEMBERS = 2, PARTS = 3 } message_type_t;

typedef struct message {
    uint32_t type;
    uint32_t count;
    uint64_t hash;
    uint32_t ranks, nodes;
    uint32_t leader, agents;          /* MEMBERS */
    uint32_t collective, legal_pairs; /* PARTS */
    uint64_t bytes;
    union {
        uint32_t rank[RANKS_A_MESSAGE];
        att_part_t part[PARTS_A_MESSAGE];
    } body;
} message_t;
_Static_assert(sizeof(message_t) <= ATT_MESSAGE_BYTES, "a message fits");

/* A group as its registry owner knows it. */
typedef struct entry {
    struct entry *next;
    uint64_t hash;
    uint32_t ranks;
    uint32_t known;     /* ranks registered */
    uint32_t *agent_of; /* per rank, NO_AGENT unknown */
    int announced;
} entry_t;

/* This agent's view of one of its segment's groups. */
typedef struct view {
    uint32_t registered; /* members told to the owner */
    uint32_t agents;     /* 0 unknown */
    uint32_t leader;
} view_t;

/* A task of a group over several nodes: local ranks are reduced, then sent or, at the leader,
 * reduced again. */
typedef struct observed {
    uint64_t hash, bytes;
    uint32_t ranks, nodes, collective, legal_pairs;
    struct att_aggregate *local; /* of this node's ranks */
    struct att_aggregate *whole; /* leader only */
    message_t outbox;
    uint64_t calls, samples; /* at the leader: complete ones; elsewhere calls = parts sent */
    double recent_us[64];
    att_setting_t native;
} observed_t;

struct att_registry {
    struct att_messenger *messenger;
    struct att_node *node;
    entry_t *entries;
    view_t views[ATT_GROUPS];
    observed_t *observed[OBSERVED_TASKS];
    uint32_t observed_count;
    uint64_t flushed_ns;
    uint32_t urgent; /* messages that somebody waits for, in this step */
};

int att_registry_create(struct att_messenger *messenger, struct att_node *node,
                        struct att_registry **out, att_error_t *error)
{
    struct att_registry *r = calloc(1, sizeof *r);
    if (r == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    r->messenger = messenger;
    r->node = node;
    *out = r;
    return ATT_OK;
}

void att_registry_destroy(struct att_registry *r)
{
    if (r == NULL)
        return;
    while (r->entries != NULL) {
        entry_t *entry = r->entries;
        r->entries = entry->next;
        free(entry->agent_of);
        free(entry);
    }
    for (uint32_t i = 0; i < r->observed_count; i++) {
        att_aggregate_destroy(r->observed[i]->local);
        att_aggregate_destroy(r->observed[i]->whole);
        free(r->observed[i]);
    }
    free(r);
}

static void send_message(struct att_registry *r, uint32_t to, const message_t *message)
{
    size_t body = message->type == REGISTER ? message->count * sizeof message->body.rank[0]
                  : message->type == PARTS  ? message->count * sizeof message->body.part[0]
                                            : 0;
    att_messenger_send(r->messenger, to, message, (uint32_t)(offsetof(message_t, body) + body));
}

/* --- owner ------------------------------------------------------------------------------------ */

static entry_t *find_entry(struct att_registry *r, const message_t *m)
{
    entry_t *entry = r->entries;
    while (entry != NULL && (entry->hash != m->hash || entry->ranks != m->ranks))
        entry = entry->next;
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->agent_of = malloc(m->ranks * sizeof *entry->agent_of);
    if (entry->agent_of == NULL) {
        free(entry);
        return NULL;
    }
    for (uint32_t i = 0; i < m->ranks; i++)
        entry->agent_of[i] = NO_AGENT;
    entry->hash = m->hash;
    entry->ranks = m->ranks;
    entry->next = r->entries;
    r->entries = entry;
    return entry;
}

static void announce(struct att_registry *r, entry_t *entry)
{
    message_t m = {.type = MEMBERS, .hash = entry->hash, .ranks = entry->ranks};
    m.leader = entry->agent_of[0];
    uint32_t count = att_messenger_count(r->messenger);
    uint8_t *holds = calloc(count, 1);
    if (holds == NULL)
        return;
    for (uint32_t i = 0; i < entry->ranks; i++)
        holds[entry->agent_of[i]] = 1;
    for (uint32_t a = 0; a < count; a++)
        m.agents += holds[a];
    for (uint32_t a = 0; a < count; a++)
        if (holds[a])
            send_message(r, a, &m);
    free(holds);
    entry->announced = 1;
}

static void on_register(struct att_registry *r, uint32_t from, const message_t *m)
{
    entry_t *entry = find_entry(r, m);
    if (entry == NULL)
        return;
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t rank = m->body.rank[i];
        if (rank >= entry->ranks)
            continue;
        entry->known += entry->agent_of[rank] == NO_AGENT;
        entry->agent_of[rank] = from;
    }
    if (entry->known == entry->ranks && !entry->announced)
        announce(r, entry);
}

/* --- members ---------------------------------------------------------------------------------- */

static void on_members(struct att_registry *r, const message_t *m)
{
    const att_segment_memory_t *memory = att_node_memory(r->node);
    for (uint32_t g = 0; g < att_node_group_count(r->node); g++)
        if (memory->groups[g].hash == m->hash && memory->groups[g].ranks == m->ranks) {
            r->views[g].agents = m->agents;
            r->views[g].leader = m->leader;
        }
}

static void register_group(struct att_registry *r, uint32_t group)
{
    const att_segment_memory_t *memory = att_node_memory(r->node);
    const att_index_list_t *members = att_node_members(r->node, group);
    view_t *view = &r->views[group];
    const att_segment_group_t *shared = &memory->groups[group];
    /* Local groups need no registry. */
    if (members->count == view->registered || members->count >= shared->ranks)
        return;
    message_t m = {
        .type = REGISTER, .hash = shared->hash, .ranks = shared->ranks, .nodes = shared->nodes};
    while (view->registered < members->count && m.count < RANKS_A_MESSAGE)
        m.body.rank[m.count++] = memory->members[members->items[view->registered++]].rank;
    send_message(r, (uint32_t)(shared->hash % att_messenger_count(r->messenger)), &m);
}

/* --- observed tasks --------------------------------------------------------------------------- */

static observed_t *find_observed(struct att_registry *r, const message_t *key, uint32_t local_ranks,
                                 int leads)
{
    for (uint32_t i = 0; i < r->observed_count; i++) {
        observed_t *o = r->observed[i];
        if (o->hash == key->hash && o->ranks == key->ranks && o->bytes == key->bytes &&
            o->collective == key->collective && o->legal_pairs == key->legal_pairs)
            return o;
    }
    if (r->observed_count == OBSERVED_TASKS)
        return NULL;
    observed_t *o = calloc(1, sizeof *o);
    if (o == NULL || att_aggregate_create(local_ranks, &o->local) != ATT_OK ||
        (leads && att_aggregate_create(key->ranks, &o->whole) != ATT_OK)) {
        if (o != NULL)
            att_aggregate_destroy(o->local);
        free(o);
        return NULL;
    }
    o->hash = key->hash;
    o->bytes = key->bytes;
    o->ranks = key->ranks;
    o->nodes = key->nodes;
    o->collective = key->collective;
    o->legal_pairs = key->legal_pairs;
    o->native = ATT_SETTING_KEEP;
    o->outbox = *key;
    o->outbox.type = PARTS;
    o->outbox.count = 0;
    r->observed[r->observed_count++] = o;
    return o;
}

static void lead_part(observed_t *o, const att_part_t *part)
{
    att_part_t whole;
    if (o->whole == NULL || att_aggregate_add(o->whole, part, &whole) == 0)
        return;
    o->calls++;
    double us = att_part_duration_us(&whole, att_reduction_choose((int)o->collective, false));
    if (us <= 0)
        return;
    o->recent_us[o->samples++ % 64] = us;
    o->native.algorithm = whole.algorithm;
    o->native.protocol = whole.protocol;
    o->native.channels = whole.channels;
}

static message_t key_of(const att_segment_memory_t *memory, uint32_t task)
{
    const att_segment_task_t *t = &memory->tasks[task];
    const att_segment_group_t *g = &memory->groups[t->group];
    return (message_t){.hash = g->hash,
                       .ranks = g->ranks,
                       .nodes = g->nodes,
                       .collective = t->collective,
                       .legal_pairs = t->legal_pairs,
                       .bytes = t->bytes};
}

static void send_parts(struct att_registry *r, observed_t *o)
{
    if (o->outbox.count > 0)
        send_message(r, o->outbox.leader, &o->outbox);
    o->outbox.count = 0;
}

void att_registry_record(struct att_registry *r, const att_record_t *record)
{
    const att_segment_memory_t *memory = att_node_memory(r->node);
    uint32_t group = memory->tasks[record->task].group;
    if (group >= ATT_GROUPS || r->views[group].agents < 2)
        return;
    view_t *view = &r->views[group];
    int leads = view->leader == att_messenger_self(r->messenger);
    message_t key = key_of(memory, record->task);
    observed_t *o = find_observed(r, &key, att_node_members(r->node, group)->count, leads);
    att_part_t part = att_part_of_record(record), reduced;
    if (o == NULL || att_aggregate_add(o->local, &part, &reduced) == 0)
        return;
    if (leads) {
        lead_part(o, &reduced);
        return;
    }
    o->calls++;
    o->outbox.leader = view->leader;
    o->outbox.body.part[o->outbox.count++] = reduced;
    if (o->outbox.count == PARTS_A_MESSAGE)
        send_parts(r, o);
}

static void on_parts(struct att_registry *r, const message_t *m)
{
    const att_segment_memory_t *memory = att_node_memory(r->node);
    for (uint32_t g = 0; g < att_node_group_count(r->node); g++) {
        if (memory->groups[g].hash != m->hash || memory->groups[g].ranks != m->ranks)
            continue;
        observed_t *o = find_observed(r, m, att_node_members(r->node, g)->count, 1);
        for (uint32_t i = 0; o != NULL && i < m->count; i++)
            lead_part(o, &m->body.part[i]);
    }
}

/* --- public ----------------------------------------------------------------------------------- */

static void on_message(void *context, uint32_t from, const void *bytes, uint32_t size)
{
    struct att_registry *r = context;
    message_t m;
    if (size < offsetof(message_t, body) || size > sizeof m)
        return;
    memcpy(&m, bytes, size);
    size_t body = size - offsetof(message_t, body);
    r->urgent += m.type != PARTS; /* samples may wait, they come in lots */
    if (m.type == REGISTER && m.ranks > 0 && m.count <= body / sizeof m.body.rank[0])
        on_register(r, from, &m);
    else if (m.type == MEMBERS)
        on_members(r, &m);
    else if (m.type == PARTS && m.count <= body / sizeof m.body.part[0])
        on_parts(r, &m);
}

uint32_t att_registry_step(struct att_registry *r, uint64_t now_ns)
{
    if (att_messenger_count(r->messenger) < 2)
        return 0;
    if (now_ns - r->flushed_ns > FLUSH_NS) {
        r->flushed_ns = now_ns;
        for (uint32_t i = 0; i < r->observed_count; i++)
            send_parts(r, r->observed[i]);
    }
    for (uint32_t g = 0; g < att_node_group_count(r->node); g++)
        register_group(r, g);
    r->urgent = 0;
    att_messenger_poll(r->messenger, on_message, r);
    return r->urgent;
}

uint32_t att_registry_spans(const struct att_registry *r, uint32_t group)
{
    return r->views[group].agents;
}

int att_registry_wants_timing(const struct att_registry *r)
{
    /* A first look, the same on every agent; then the watch windows are enough. */
    for (uint32_t i = 0; i < r->observed_count; i++)
        if (r->observed[i]->calls < FIRST_LOOK)
            return 1;
    for (uint32_t g = 0; g < att_node_group_count(r->node); g++)
        if (r->views[g].agents > 1 && r->observed_count == 0)
            return 1;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

uint32_t att_registry_report(const struct att_registry *r, att_task_report_t *rows,
                             uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->observed_count && count < capacity; i++) {
        const observed_t *o = r->observed[i];
        if (o->whole == NULL)
            continue;
        double sorted[64];
        uint32_t n = o->samples < 64 ? (uint32_t)o->samples : 64;
        memcpy(sorted, o->recent_us, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_value);
        att_task_report_t *row = &rows[count++];
        memset(row, 0, sizeof *row);
        row->hash = o->hash;
        row->ranks = o->ranks;
        row->nodes = o->nodes;
        row->collective = o->collective;
        row->legal_pairs = o->legal_pairs;
        row->bytes = o->bytes;
        row->state = ATT_TASK_OBSERVED;
        row->native = row->tuned = o->native;
        row->calls_seen = o->calls;
        row->samples_seen = o->samples;
        row->lost = att_aggregate_lost(o->whole);
        row->reduction = att_reduction_choose((int)o->collective, false);
        row->status.kept_default = 1;
        row->status.baseline_us = n > 0 ? sorted[n / 2] : 0;
        row->status.baseline_samples = n;
        row->reason = "spans several nodes: observed only";
    }
    return count;
}
