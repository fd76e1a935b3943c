#include "control/span.h"

#include "base/step.h"
#include "control/registry.h"
#include "control/span_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN       (1u << ATT_TREE_FAN)
#define HELPER_NS 3000000000ull /* until rank 0's process must serve home words */

/* --- small things ----------------------------------------------------------------------------- */

static bool leads(const att_spanned_t *g)
{
    return g->place.agents > 0 && g->place.leader == g->span->self;
}

uint32_t att_spanned_child(const att_spanned_t *g, uint32_t agent)
{
    for (uint32_t c = 0; c < g->place.child_count && c < ATT_TREE_FAN; c++)
        if (g->place.children[c] == agent)
            return c;
    return ATT_TREE_FAN;
}

void att_spanned_send(att_spanned_t *g, uint32_t to, att_message_t *m)
{
    m->group = g->key;
    g->span->ops->send(g->span->context, to, m);
}

static void send_down(att_spanned_t *g, att_message_t *m)
{
    for (uint32_t c = 0; c < g->place.child_count; c++)
        att_spanned_send(g, g->place.children[c], m);
}

static void step_of_group(const att_spanned_t *g, att_step_t reached)
{
    att_step_reached(reached, g->index, 0, 0);
}

/* --- the turn --------------------------------------------------------------------------------- */

static void send_turn(void *context, uint32_t to, uint32_t type)
{
    att_message_t m = {.type = type};
    att_spanned_send(context, to, &m);
}

static void step_turn(void *context, int reached)
{
    step_of_group(context, (att_step_t)reached);
}

static const att_lease_ops_t lease_ops = {send_turn, step_turn};

static att_lease_view_t view_of(att_spanned_t *g)
{
    return (att_lease_view_t){.ops = &lease_ops,
                              .context = g,
                              .place = &g->place,
                              .turn = &g->span->shared->turn,
                              .group = g->index,
                              .self = g->span->self,
                              .keeper = ATT_KEEPER};
}

/* --- how tasks reach the others --------------------------------------------------------------- */

static att_branch_t *branch_of_task(att_spanned_t *g, const att_segment_task_t *task)
{
    att_task_key_t key = {task->bytes, task->collective, task->legal_pairs};
    return att_branch_find(g, &key);
}

static int reach_reported(void *context, const att_segment_task_t *task, att_reported_t *reported)
{
    att_branch_t *b = branch_of_task(context, task);
    return b != NULL && att_branch_reported(b, reported);
}

static void reach_prepare(void *context, const att_segment_task_t *task, uint32_t child,
                          const att_schedule_t *schedule)
{
    att_spanned_t *g = context;
    att_message_t m = {.type = ATT_MESSAGE_PREPARE,
                       .task = {task->bytes, task->collective, task->legal_pairs}};
    m.body.prepare.home_task = (uint32_t)(task - g->span->memory->tasks);
    m.body.prepare.schedule = *schedule;
    att_spanned_send(g, g->place.children[child], &m);
}

static void reach_outcome(void *context, const att_segment_task_t *task, uint32_t child,
                          uint32_t txn, att_home_state_t state)
{
    att_spanned_t *g = context;
    att_message_t m = {.type = ATT_MESSAGE_OUTCOME,
                       .task = {task->bytes, task->collective, task->legal_pairs}};
    m.body.outcome.txn = txn;
    m.body.outcome.state = state;
    att_spanned_send(g, g->place.children[child], &m);
}

static int reach_may(void *context, uint64_t now_ns)
{
    att_spanned_t *g = context;
    att_lease_view_t view = view_of(g);
    return !g->ended && att_lease_may(&g->lease, &view, now_ns);
}

static void reach_list(void *context, int change)
{
    att_spanned_t *g = context;
    att_lease_list(&g->lease, change, g->span->now_ns);
}

/* --- life ------------------------------------------------------------------------------------- */

int att_span_create(att_task_shared_t *shared, uint32_t self, uint32_t agents,
                    const att_span_ops_t *ops, void *context, struct att_span **out)
{
    struct att_span *span = calloc(1, sizeof *span);
    if (span == NULL)
        return -ATT_ENOMEM;
    span->shared = shared;
    span->node = shared->node;
    span->memory = att_node_memory(shared->node);
    span->self = self;
    span->agents = agents;
    span->ops = ops;
    span->context = context;
    *out = span;
    return ATT_OK;
}

static void free_group(att_spanned_t *g)
{
    att_way_stop(&g->way);
    att_branch_free_all(g);
    att_early_clear(&g->early);
    free(g);
}

void att_span_destroy(struct att_span *span)
{
    if (span == NULL)
        return;
    for (uint32_t i = 0; i < ATT_GROUPS; i++)
        if (span->groups[i] != NULL)
            free_group(span->groups[i]);
    free(span);
}

static att_spanned_t *make_group(struct att_span *span, uint32_t index)
{
    att_spanned_t *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->span = span;
    g->index = index;
    g->key = (att_group_key_t){.hash = span->memory->groups[index].hash,
                               .ranks = span->memory->groups[index].ranks};
    g->way.resolver.fd = -1;
    g->reach = (att_task_reach_t){.place = &g->place,
                                  .context = g,
                                  .reported = reach_reported,
                                  .prepare = reach_prepare,
                                  .outcome = reach_outcome,
                                  .may = reach_may,
                                  .list = reach_list};
    span->groups[index] = g;
    return g;
}

static att_spanned_t *find_group(struct att_span *span, const att_group_key_t *key)
{
    for (uint32_t i = 0; i < att_node_group_count(span->node); i++)
        if (span->groups[i] != NULL && span->groups[i]->key.hash == key->hash &&
            span->groups[i]->key.ranks == key->ranks)
            return span->groups[i];
    return NULL;
}

static void stop_tuning(att_spanned_t *g, const char *why)
{
    if (g->ended)
        return;
    g->ended = 1;
    g->span->changed = 1;
    att_lease_view_t view = view_of(g);
    if (g->place.agents > 0)
        att_lease_end(&g->lease, &view);
    att_way_stop(&g->way);
    if (g->span->testing == g)
        g->span->testing = NULL;
    for (att_branch_t *b = g->branches; b != NULL; b = b->next) {
        att_branch_end(b);
        if (b->leader != NULL)
            att_task_refuse(b->leader, ATT_TASK_ENDED, why);
    }
}

void att_span_end(struct att_span *span, uint32_t group, const char *why)
{
    att_spanned_t *g = span->groups[group];
    if (g == NULL || g->ended)
        return;
    att_message_t m = {.type = ATT_MESSAGE_END};
    snprintf(m.body.reason, sizeof m.body.reason, "%s", why);
    send_down(g, &m);
    stop_tuning(g, why);
    span->ops->refuse(span->context, group, why);
}

/* --- registration ----------------------------------------------------------------------------- */

static void register_members(struct att_span *span, uint32_t index)
{
    const att_index_list_t *members = att_node_members(span->node, index);
    const att_segment_group_t *shared = &span->memory->groups[index];
    att_spanned_t *g = span->groups[index];
    uint32_t known = g != NULL ? g->registered : 0;
    /* Groups inside the node need no registry. */
    if (members->count == known || members->count >= shared->ranks)
        return;
    if (g == NULL && (g = make_group(span, index)) == NULL)
        return;
    att_message_t m = {.type = ATT_MESSAGE_REGISTER, .group = g->key};
    m.body.ranks.nodes = shared->nodes;
    while (g->registered < members->count && m.count < ATT_RANKS_A_SLICE)
        m.body.ranks.rank[m.count++] = span->memory->members[members->items[g->registered++]].rank;
    att_spanned_send(g, att_registry_owner(&g->key, span->agents), &m);
    step_of_group(g, ATT_STEP_REGISTERED);
}

/* A rank here left: the group is over. */
static void retire(att_spanned_t *g)
{
    struct att_span *span = g->span;
    const att_index_list_t *members = att_node_members(span->node, g->index);
    if (g->retired)
        return;
    for (uint32_t i = 0; i < g->registered && i < members->count; i++)
        if (atomic_load(&span->memory->members[members->items[i]].state) != ATT_ENTRY_LIVE) {
            g->retired = 1;
            break;
        }
    if (!g->retired)
        return;
    att_message_t m = {.type = ATT_MESSAGE_RETIRE};
    att_spanned_send(g, att_registry_owner(&g->key, span->agents), &m);
    stop_tuning(g, "its communicator is gone");
}

/* --- the way home ----------------------------------------------------------------------------- */

static void look_at_reach(att_spanned_t *g)
{
    if (g->reach_missing != 0 || g->reached)
        return;
    g->reached = 1;
    g->span->changed = 1;
    if (!leads(g)) {
        att_message_t m = {.type = ATT_MESSAGE_REACHED};
        m.body.reached.agents = g->reach_agents;
        m.body.reached.failed = g->reach_failed;
        att_spanned_send(g, g->place.parent, &m);
        return;
    }
    if (g->reach_failed == ATT_NONE)
        return;
    char why[ATT_REASON_BYTES];
    snprintf(why, sizeof why,
             "agent %u cannot reach the home words in rank 0's process (%.45s and others, port %u)",
             g->reach_failed, g->path.address[0], g->path.port);
    att_span_end(g->span, g->index, why);
}

static void got_path(att_spanned_t *g, const att_home_path_t *path)
{
    g->has_path = 1;
    g->path = *path;
    g->reach_missing = ((1u << g->place.child_count) - 1) | OWN;
    g->reach_failed = ATT_NONE;
    att_message_t m = {.type = ATT_MESSAGE_PATH};
    m.body.path = *path;
    send_down(g, &m);
    if (leads(g)) { /* the words are in its own segment */
        g->reach_missing &= ~OWN;
        g->reach_agents++;
        look_at_reach(g);
        return;
    }
    att_way_begin(&g->way, &g->key, path);
}

/* The leader's node has rank 0: its process serves the home words. */
static void find_path(att_spanned_t *g, uint64_t now_ns)
{
    struct att_span *span = g->span;
    const att_index_list_t *members = att_node_members(span->node, g->index);
    att_home_path_t path = {0};
    for (uint32_t i = 0; i < members->count; i++) {
        const att_segment_member_t *m = &span->memory->members[members->items[i]];
        if (m->rank == 0 && m->process < ATT_PROCESSES && atomic_load(&m->state) == ATT_ENTRY_LIVE)
            att_way_of_process(&span->memory->processes[m->process], &path);
    }
    if (path.port != 0)
        got_path(g, &path);
    else if (now_ns - g->placed_ns > HELPER_NS)
        att_span_end(span, g->index,
                     "rank 0's process serves no home words to other nodes (NCCL says that the "
                     "group is on one node, or it could get no socket)");
}

/* A home that many groups share is tested once. */
static int copy_way(att_spanned_t *g)
{
    struct att_span *span = g->span;
    att_segment_group_t *mine = &span->memory->groups[g->index];
    for (uint32_t i = 0; i < att_node_group_count(span->node); i++) {
        const att_segment_group_t *other = &span->memory->groups[i];
        if (other == mine || atomic_load(&other->path) == 0 || other->home_port != g->path.port ||
            memcmp(other->home_key, g->path.key, sizeof other->home_key) != 0)
            continue;
        att_way_stop(&g->way);
        mine->home_port = other->home_port;
        memcpy(mine->home_key, other->home_key, sizeof mine->home_key);
        memcpy(mine->home_address, other->home_address, sizeof mine->home_address);
        atomic_store_explicit(&mine->path, 1, memory_order_release);
        return 1;
    }
    return 0;
}

static void test_way(att_spanned_t *g, uint64_t now_ns)
{
    struct att_span *span = g->span;
    if (!g->way.testing || (span->testing != NULL && span->testing != g))
        return;
    int status = 1;
    if (atomic_load(&span->memory->groups[g->index].path) != 0 || !copy_way(g)) {
        span->testing = g;
        status = att_way_step(&g->way, &span->memory->groups[g->index], now_ns);
        if (status == 0)
            return;
        span->testing = NULL;
    }
    if (status == 1) {
        g->reach_agents++;
        step_of_group(g, ATT_STEP_REACHED);
    } else {
        g->reach_failed = span->self;
    }
    g->reach_missing &= ~OWN;
    look_at_reach(g);
}

/* --- messages --------------------------------------------------------------------------------- */

/* A place that can be: every number within what this agent knows of the group. */
static bool is_place(const att_spanned_t *g, const att_place_t *place)
{
    uint32_t agents = g->span->agents;
    for (uint32_t c = 0; c < place->child_count && c < ATT_TREE_FAN; c++)
        if (place->children[c] >= agents)
            return false;
    return place->agents >= 2 && place->agents <= agents && place->leader < agents &&
           (place->parent < agents || place->leader == g->span->self) &&
           place->child_count <= ATT_TREE_FAN && place->ranks_here >= 1 &&
           place->ranks_here <= g->registered && place->ranks_below >= place->ranks_here &&
           place->ranks_below <= g->key.ranks && place->agents_below <= place->agents;
}

static void on_place(att_spanned_t *g, uint32_t from, const att_message_t *m)
{
    const att_place_t *place = &m->body.place;
    if (g->place.agents > 0 || from != att_registry_owner(&g->key, g->span->agents) ||
        !is_place(g, place))
        return;
    g->place = *place;
    g->placed_ns = g->span->now_ns;
    g->span->changed = 1;
    step_of_group(g, ATT_STEP_JOINED);
    att_early_message_t *e;
    while ((e = att_early_take(&g->early)) != NULL) {
        att_span_message(g->span, e->from, &e->message);
        free(e);
    }
}

static void on_group(att_spanned_t *g, uint32_t from, const att_message_t *m)
{
    uint32_t child = att_spanned_child(g, from);
    att_lease_view_t view = view_of(g);
    switch (m->type) {
    case ATT_MESSAGE_PATH:
        if (from == g->place.parent && !g->has_path && !g->ended)
            got_path(g, &m->body.path);
        break;
    case ATT_MESSAGE_REACHED:
        if (child == ATT_TREE_FAN || (g->reach_missing & 1u << child) == 0)
            break;
        g->reach_missing &= ~(1u << child);
        g->reach_agents += m->body.reached.agents;
        if (g->reach_failed == ATT_NONE)
            g->reach_failed = m->body.reached.failed;
        look_at_reach(g);
        break;
    case ATT_MESSAGE_TIMING:
        if (from != g->place.parent)
            break;
        g->wanted = m->body.on != 0;
        att_message_t on = *m;
        send_down(g, &on);
        break;
    case ATT_MESSAGE_END: {
        if (from != g->place.parent)
            break;
        att_message_t end = *m;
        send_down(g, &end);
        g->wanted = 0;
        stop_tuning(g, m->body.reason);
        break;
    }
    case ATT_MESSAGE_GRANT:
    case ATT_MESSAGE_TAKE:
    case ATT_MESSAGE_TAKEN:
    case ATT_MESSAGE_GIVE:
        att_lease_message(&g->lease, &view, m->type, child);
        break;
    default: {
        att_branch_t *b = att_branch_find(g, &m->task);
        if (b != NULL)
            att_branch_message(b, from, m);
        else
            g->span->unused += att_message_records(m);
        break;
    }
    }
}

void att_span_message(struct att_span *span, uint32_t from, const att_message_t *m)
{
    att_spanned_t *g = find_group(span, &m->group);
    if (g == NULL) {
        span->unused += att_message_records(m);
        return;
    }
    if (m->type == ATT_MESSAGE_PLACE) {
        on_place(g, from, m);
    } else if (m->type == ATT_MESSAGE_ENDED) {
        char why[ATT_REASON_BYTES];
        snprintf(why, sizeof why, "%.*s", (int)sizeof m->body.reason - 1, m->body.reason);
        g->wanted = 0;
        /* An ordinary end needs no line. */
        if (!g->ended && strcmp(why, "its communicator is gone") != 0)
            span->ops->refuse(span->context, g->index, why);
        stop_tuning(g, why);
    } else if (g->place.agents == 0) {
        if (!att_early_keep(&g->early, from, m))
            span->unused += att_message_records(m);
    } else {
        on_group(g, from, m);
    }
}

/* --- step ------------------------------------------------------------------------------------- */

/* Tasks of the segment that belong to groups over several nodes. */
static void look_for_tasks(struct att_span *span)
{
    for (uint32_t i = 0; i < att_node_task_count(span->node); i++) {
        const att_segment_task_t *task = &span->memory->tasks[i];
        /* Before its group: it may just be filled. */
        if (span->branch_of[i] != NULL || atomic_load(&task->state) != ATT_ENTRY_LIVE ||
            task->group >= ATT_GROUPS || span->groups[task->group % ATT_GROUPS] == NULL)
            continue;
        span->branch_of[i] = branch_of_task(span->groups[task->group % ATT_GROUPS], task);
        if (span->branch_of[i] != NULL)
            att_branch_task(span->branch_of[i], i);
    }
}

static int step_group(att_spanned_t *g, uint64_t now_ns)
{
    retire(g);
    if (g->place.agents == 0 || g->ended)
        return 0;
    if (leads(g) && !g->has_path)
        find_path(g, now_ns);
    test_way(g, now_ns);
    att_lease_view_t view = view_of(g);
    att_lease_step(&g->lease, &view, now_ns);
    for (att_branch_t *b = g->branches; b != NULL; b = b->next)
        att_branch_step(b, now_ns);
    return !g->reached || g->lease.state == ATT_LEASE_ASKED || g->lease.state == ATT_LEASE_TAKING;
}

int att_span_step(struct att_span *span, uint64_t now_ns)
{
    int busy = 0;
    span->now_ns = now_ns;
    for (uint32_t i = 0; i < att_node_group_count(span->node); i++) {
        if (atomic_load(&span->memory->groups[i].state) == ATT_ENTRY_LIVE)
            register_members(span, i);
        if (span->groups[i] != NULL)
            busy |= step_group(span->groups[i], now_ns);
    }
    look_for_tasks(span);
    uint32_t next = att_node_turn_next(&span->shared->turn, now_ns);
    if (next != ATT_NONE && span->groups[next] != NULL) {
        att_lease_view_t view = view_of(span->groups[next]);
        att_lease_yielded(&span->groups[next]->lease, &view);
    }
    return busy;
}

/* --- what the agent asks ---------------------------------------------------------------------- */

int att_span_changed(struct att_span *span)
{
    int changed = span->changed;
    span->changed = 0;
    return changed;
}

uint32_t att_span_agents(const struct att_span *span, uint32_t group)
{
    return span->groups[group] != NULL ? span->groups[group]->place.agents : 0;
}

uint32_t att_span_ranks_here(const struct att_span *span, uint32_t group)
{
    return span->groups[group] != NULL ? span->groups[group]->place.ranks_here : 0;
}

const att_task_reach_t *att_span_reach(struct att_span *span, uint32_t group)
{
    att_spanned_t *g = span->groups[group];
    return g != NULL && leads(g) && g->reached && !g->ended ? &g->reach : NULL;
}

void att_span_lead(struct att_span *span, uint32_t index, struct att_task *task)
{
    if (span->branch_of[index] == NULL)
        look_for_tasks(span); /* the group was reached before its first call */
    if (span->branch_of[index] != NULL)
        span->branch_of[index]->leader = task;
}

void att_span_want(struct att_span *span, uint32_t group, int on)
{
    att_spanned_t *g = span->groups[group];
    if (g == NULL || !leads(g) || g->wanted == on || g->ended)
        return;
    for (uint32_t c = 0; c < g->place.child_count && span->ops->is_full != NULL; c++)
        if (span->ops->is_full(span->context, g->place.children[c]))
            return; /* the agent comes again */
    g->wanted = on;
    att_message_t m = {.type = ATT_MESSAGE_TIMING};
    m.body.on = (uint32_t)on;
    send_down(g, &m);
}

int att_span_wants_timing(const struct att_span *span)
{
    for (uint32_t i = 0; i < att_node_group_count(span->node); i++)
        if (span->groups[i] != NULL && span->groups[i]->wanted && !leads(span->groups[i]))
            return 1;
    return 0;
}
