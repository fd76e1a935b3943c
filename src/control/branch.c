/* The tasks of a group over several nodes on one node. */
#include "base/step.h"
#include "control/span_inside.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define OWN       ATT_TREE_FAN
#define FLUSH_NS  200000u    /* parts wait no longer than this */
#define REPORT_NS 200000000u /* between looks at whether facts have changed */

static bool leads(const att_branch_t *b)
{
    return b->group->place.leader == b->group->span->self;
}

static att_message_t make(const att_branch_t *b, att_message_type_t type)
{
    return (att_message_t){.type = type, .group = b->group->key, .task = b->key};
}

static void send_up(att_branch_t *b, att_message_t *m)
{
    att_spanned_send(b->group, b->group->place.parent, m);
}

/* --- the voter's ops -------------------------------------------------------------------------- */

static void send_prepare(att_branch_t *b, uint32_t child, uint32_t home_task,
                         const att_schedule_t *schedule)
{
    att_message_t m = make(b, ATT_MESSAGE_PREPARE);
    m.body.prepare.home_task = home_task;
    m.body.prepare.schedule = *schedule;
    att_spanned_send(b->group, b->group->place.children[child], &m);
}

static void send_outcome(att_branch_t *b, uint32_t child, uint32_t txn, att_home_state_t state)
{
    att_message_t m = make(b, ATT_MESSAGE_OUTCOME);
    m.body.outcome.txn = txn;
    m.body.outcome.state = state;
    att_spanned_send(b->group, b->group->place.children[child], &m);
}

static void prepare_child(void *context, uint32_t child, const att_schedule_t *schedule)
{
    att_branch_t *b = context;
    send_prepare(b, child, b->group->span->memory->tasks[b->index].home_task, schedule);
}

static void tell_child(void *context, uint32_t child, uint32_t txn, att_home_state_t state)
{
    send_outcome(context, child, txn, state);
}

static void vote(void *context, const att_ballot_t *ballot)
{
    att_branch_t *b = context;
    att_message_t m = make(b, ATT_MESSAGE_VOTE);
    m.body.ballot = *ballot;
    send_up(b, &m);
}

static void recorded(void *context, uint32_t txn)
{
    att_branch_t *b = context;
    att_message_t m = make(b, ATT_MESSAGE_RECORDED);
    m.body.outcome.txn = txn;
    send_up(b, &m);
}

/* The node's own devices have the last word: a communicator may have come since the facts. */
static att_vote_t permits(void *context, const att_schedule_t *schedule)
{
    att_branch_t *b = context;
    const struct att_span *span = b->group->span;
    uint32_t most = 0, used = 0;
    for (uint32_t i = 0; i < schedule->count; i++)
        if (schedule->entries[i].setting.channels > most)
            most = schedule->entries[i].setting.channels;
    for (uint32_t i = 0; i < b->lane_count; i++) {
        const att_segment_member_t *m =
            &span->memory->members[span->memory->lanes[b->lanes[i]].member % ATT_MEMBERS];
        uint32_t seen = atomic_load(&m->channels);
        if (seen > used)
            used = seen;
    }
    return most <= used || most <= att_facts_ceiling(span->node, span->shared->config,
                                                     b->group->index, used)
               ? ATT_VOTE_YES
               : ATT_VOTE_CHANNELS;
}

static void step(void *context, int reached, const att_schedule_t *schedule)
{
    const att_branch_t *b = context;
    att_step_reached((att_step_t)reached, b->index, schedule->txn, schedule->entries[0].first_call);
}

static const att_voter_ops_t voter_ops = {prepare_child, tell_child, vote, recorded, permits, step};

/* --- life ------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(att_task_key_t));
}

att_branch_t *att_branch_find(att_spanned_t *group, const att_task_key_t *key)
{
    att_branch_t **found = tfind(key, &group->branch_tree, by_key);
    if (found != NULL)
        return *found;
    /* No segment holds more tasks, whatever another agent says. */
    att_branch_t *b = group->branch_count < ATT_TASKS ? calloc(1, sizeof *b) : NULL;
    if (b == NULL)
        return NULL;
    b->key = *key;
    if (tsearch(b, &group->branch_tree, by_key) == NULL) {
        free(b);
        return NULL;
    }
    b->group = group;
    b->index = ATT_NONE;
    b->outbox = make(b, ATT_MESSAGE_PARTS);
    b->next = group->branches;
    group->branches = b;
    group->branch_count++;
    return b;
}

void att_branch_end(att_branch_t *b)
{
    if (b->below != NULL)
        b->fates = att_aggregate_end(b->below);
    b->below = NULL;
    b->group->span->unused += att_message_records(&b->outbox);
    b->outbox.count = 0;
}

static void keep(void *branch)
{
    (void)branch;
}

void att_branch_free_all(att_spanned_t *group)
{
    tdestroy(group->branch_tree, keep);
    while (group->branches != NULL) {
        att_branch_t *b = group->branches;
        group->branches = b->next;
        att_aggregate_destroy(b->below);
        free(b->lanes);
        free(b);
    }
}

void att_branch_task(att_branch_t *b, uint32_t index)
{
    b->index = index;
}

/* Every rank of this node has its lane: from now on it can vote. */
static void get_ready(att_branch_t *b)
{
    struct att_span *span = b->group->span;
    uint32_t here = b->group->place.ranks_here;
    if (b->ready || b->index == ATT_NONE || here == 0)
        return;
    if (b->lanes == NULL)
        b->lanes = calloc(here, sizeof *b->lanes);
    if (b->lanes == NULL)
        return;
    b->lane_count = att_facts_lanes(span->node, b->index, b->lanes, here);
    if (b->lane_count < here)
        return;
    if (!leads(b)) {
        if (att_aggregate_create(b->group->place.ranks_below, &b->below) != ATT_OK)
            return;
        att_segment_task_t *task = &span->memory->tasks[b->index];
        atomic_store(&task->copied, 1);
        att_voter_init(&b->voter, &voter_ops, b, span->memory, task, b->lanes, b->lane_count,
                       b->group->place.child_count);
        att_voter_recover(&b->voter, false, &b->open);
    }
    b->ready = 1;
}

/* --- facts ------------------------------------------------------------------------------------ */

int att_branch_reported(att_branch_t *b, att_reported_t *reported)
{
    uint32_t all = (1u << b->group->place.child_count) - 1;
    get_ready(b);
    if (!b->ready || (b->reported_mask & all) != all)
        return 0;
    struct att_span *span = b->group->span;
    att_facts_report(span->node, span->shared->config, b->index, b->lanes, b->lane_count,
                     &b->reported[OWN]);
    *reported = b->reported[OWN];
    for (uint32_t c = 0; c < b->group->place.child_count; c++)
        att_facts_merge(reported, &b->reported[c]);
    return 1;
}

/* Ids are told once: they change with every switch, and only a new leader wants them. */
static void tell_facts(att_branch_t *b, uint64_t now_ns)
{
    att_reported_t now;
    if (leads(b) || (b->told.ranks != 0 && now_ns - b->told_ns < REPORT_NS) ||
        !att_branch_reported(b, &now))
        return;
    if (b->told.ranks != 0) {
        now.prepared = b->told.prepared;
        now.open = b->told.open;
    }
    b->told_ns = now_ns;
    if (memcmp(&now, &b->told, sizeof now) == 0)
        return;
    b->told = now;
    att_message_t m = make(b, ATT_MESSAGE_FACTS);
    m.body.facts = now;
    send_up(b, &m);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void flush(att_branch_t *b, uint64_t now_ns)
{
    b->flushed_ns = now_ns;
    if (b->outbox.count > 0)
        send_up(b, &b->outbox);
    b->outbox.count = 0;
}

static void pass_on(att_branch_t *b, const att_part_t *part)
{
    att_part_t whole;
    if (b->below == NULL) {
        b->group->span->unused += part->ranks;
        return;
    }
    if (att_aggregate_add(b->below, part, &whole) == 0)
        return;
    if (whole.untimed == ATT_UNTIMED_NO && !whole.differs)
        att_voter_note(&b->voter, whole.call, whole.nccl_seq, whole.rank);
    b->outbox.body.part[b->outbox.count++] = whole;
    if (b->outbox.count == ATT_PARTS_A_SLICE)
        flush(b, b->group->span->now_ns);
}

void att_branch_record(att_branch_t *b, const att_record_t *record)
{
    const struct att_span *span = b->group->span;
    att_part_t part = att_part_of_record(record);
    part.rank = span->memory->members[record->member].rank;
    part.disturbed =
        span->shared->turn.group != ATT_NONE && span->shared->turn.group != b->group->index;
    pass_on(b, &part);
}

static void on_parts(att_branch_t *b, uint32_t child, const att_message_t *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (b->leader != NULL)
            att_task_part(b->leader, child, &m->body.part[i]);
        else
            pass_on(b, &m->body.part[i]);
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static att_voter_t *voter_of(att_branch_t *b)
{
    if (!leads(b))
        return b->ready ? &b->voter : NULL;
    att_switch_t *sw = b->leader != NULL ? att_task_switch(b->leader) : NULL;
    return sw != NULL ? &sw->voter : NULL;
}

static void on_prepare(att_branch_t *b, const att_message_t *m)
{
    if (leads(b) || !b->ready || b->group->ended)
        return;
    b->group->span->memory->tasks[b->index].home_task = m->body.prepare.home_task;
    att_voter_prepare(&b->voter, &m->body.prepare.schedule);
}

void att_branch_message(att_branch_t *b, uint32_t from, const att_message_t *m)
{
    uint32_t child = att_spanned_child(b->group, from);
    bool from_above = from == b->group->place.parent;
    att_voter_t *voter = voter_of(b);
    if (m->type == ATT_MESSAGE_PREPARE && from_above) {
        on_prepare(b, m);
    } else if (m->type == ATT_MESSAGE_OUTCOME && from_above && voter != NULL) {
        att_voter_outcome(voter, m->body.outcome.txn, (att_home_state_t)m->body.outcome.state);
    } else if (child == ATT_TREE_FAN) {
        b->group->span->unused += att_message_records(m);
    } else if (m->type == ATT_MESSAGE_FACTS) {
        b->reported[child] = m->body.facts;
        b->reported_mask |= 1u << child;
        b->told_ns = 0; /* pass it on at once */
    } else if (m->type == ATT_MESSAGE_PARTS) {
        on_parts(b, child, m);
    } else if (m->type == ATT_MESSAGE_VOTE && voter != NULL) {
        att_voter_child_vote(voter, child, &m->body.ballot);
    } else if (m->type == ATT_MESSAGE_RECORDED && voter != NULL) {
        att_voter_child_recorded(voter, child, m->body.outcome.txn);
    }
}

void att_branch_coverage(const att_branch_t *b, att_coverage_t *coverage)
{
    coverage->waiting += att_message_records(&b->outbox);
    att_aggregate_fates_t fates = b->below != NULL ? att_aggregate_fates(b->below) : b->fates;
    coverage->incomplete += fates.lost + fates.late;
    coverage->waiting += fates.waiting;
}

void att_branch_step(att_branch_t *b, uint64_t now_ns)
{
    if (!b->ready)
        get_ready(b);
    tell_facts(b, now_ns);
    if (b->outbox.count > 0 && now_ns - b->flushed_ns > FLUSH_NS)
        flush(b, now_ns);
}
