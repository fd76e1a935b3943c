#include "control/peers.h"

#include "base/log.h"
#include "base/step.h"
#include "control/messenger.h"
#include "control/notes.h"
#include "control/registry.h"
#include "control/rows.h"
#include "control/turn.h"

#include <stdlib.h>
#include <string.h>

typedef struct other {
    att_coverage_t coverage;
    uint64_t records;
    int gone;
} other_t;

/* What agent 0 has of a task. */
typedef struct sent_row {
    att_task_report_t row; /* without its reason and the age of its last sample */
    char reason[ATT_REASON_BYTES];
} sent_row_t;

struct att_peers {
    struct att_messenger *messenger;
    uint32_t self, count;
    struct att_registry *registry;
    struct att_turn_keeper *keeper; /* on agent ATT_KEEPER */
    struct att_span *span;
    att_peers_refuse_fn refuse;
    void *context;
    uint32_t sent;
    uint64_t unsent_records;
    const att_notes_t *notes;
    struct att_rows *rows; /* on agent 0 */
    /* Elsewhere: the caller's, for agent 0. What it does not take until the next report comes first
     * then. */
    const att_task_report_t *told;
    uint32_t told_count, left, next;
    sent_row_t *sent_rows; /* by their places among `told` */
    uint32_t sent_row_count;
    uint64_t now_ns; /* of the last step */
    other_t *others;
    uint32_t other_count;
};

#define UNSENT_MOST 256 /* messages to one agent: 1 MiB */
#define ROWS_MOST   128 /* of them rows: lists, trials, parts and coverage find room beside them */

static bool is_full(void *context, uint32_t to)
{
    const struct att_peers *p = context;
    return att_messenger_unsent(p->messenger, to) >= UNSENT_MOST;
}

/* An agent that was stopped must not fill the memory of those that send to it. Switches cannot: the
 * next one begins when the last one is recorded, and when agent 0 can be told of it
 * (att_peers_notes_full). */
static bool can_be_spared(const att_message_t *m)
{
    return m->type == ATT_MESSAGE_PARTS || m->type == ATT_MESSAGE_REPORT ||
           m->type == ATT_MESSAGE_TRIAL || (m->type == ATT_MESSAGE_COVERAGE && !m->body.node.last);
}

static void send_message(void *context, uint32_t to, const att_message_t *m)
{
    struct att_peers *p = context;
    static att_log_site_t site, trial;
    uint32_t bytes = att_message_bytes(m);
    if (can_be_spared(m) && is_full(p, to)) {
        p->unsent_records += att_message_records(m);
        if (m->type == ATT_MESSAGE_TRIAL)
            att_log_limited(&trial, ATT_LOG_WARN,
                            "agent %u takes no more: a trial is missing in trials.jsonl", to);
        return;
    }
    p->sent++;
    if (bytes == 0 || att_messenger_send(p->messenger, to, m, bytes) != ATT_OK)
        att_log_limited(&site, ATT_LOG_ERROR, "a message to agent %u could not be sent", to);
}

static void registry_step(void *context, int reached, const att_group_key_t *group)
{
    (void)context;
    att_step_reached((att_step_t)reached, (uint32_t)group->hash, 0, 0);
}

static void grant(void *context, uint32_t leader, const att_group_key_t *group)
{
    att_message_t m = {.type = ATT_MESSAGE_GRANT, .group = *group};
    registry_step(context, ATT_STEP_GRANTED, group);
    send_message(context, leader, &m);
}

static void refuse(void *context, uint32_t group, const char *why)
{
    struct att_peers *p = context;
    p->refuse(p->context, group, why);
}

static const att_registry_ops_t registry_ops = {send_message, registry_step};
static const att_turn_ops_t turn_ops = {grant};
static const att_span_ops_t span_ops = {send_message, refuse, is_full};

int att_peers_create(struct att_messenger *messenger, att_task_shared_t *shared,
                     att_peers_refuse_fn refuse_group, void *context, struct att_peers **out)
{
    struct att_peers *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ATT_ENOMEM;
    p->messenger = messenger;
    p->notes = shared->notes;
    p->self = att_messenger_self(messenger);
    p->count = att_messenger_count(messenger);
    p->refuse = refuse_group;
    p->context = context;
    /* Only agent 0 hears of them: elsewhere it would grow with the agents for nothing. */
    p->other_count = p->self == 0 ? p->count : 1;
    p->others = calloc(p->other_count, sizeof *p->others);
    int status = p->others != NULL ? ATT_OK : -ATT_ENOMEM;
    if (status == ATT_OK && p->self == 0)
        status = att_rows_create(p->count, &p->rows);
    if (status == ATT_OK)
        status = att_registry_create(&registry_ops, p, p->count, &p->registry);
    if (status == ATT_OK && p->self == ATT_KEEPER)
        status = att_turn_keeper_create(&turn_ops, p, p->count, &p->keeper);
    if (status == ATT_OK)
        status = att_span_create(shared, p->self, p->count, &span_ops, p, &p->span);
    if (status != ATT_OK) {
        att_peers_destroy(p);
        return status;
    }
    *out = p;
    return ATT_OK;
}

void att_peers_destroy(struct att_peers *p)
{
    if (p == NULL)
        return;
    att_span_destroy(p->span);
    att_registry_destroy(p->registry);
    att_turn_keeper_destroy(p->keeper);
    att_rows_destroy(p->rows);
    free(p->others);
    free(p->sent_rows);
    free(p);
}

struct att_span *att_peers_span(struct att_peers *p)
{
    return p->span;
}

/* --- reports ---------------------------------------------------------------------------------- */

static void on_report(struct att_peers *p, uint32_t from, const att_message_t *m)
{
    static att_log_site_t site;
    if (p->rows == NULL)
        return;
    int status = att_rows_put(p->rows, from, &m->body.report.row, m->body.report.reason, p->now_ns);
    if (status != ATT_OK)
        att_log_limited(&site, ATT_LOG_ERROR, "a task of agent %u is missing in the reports: %s",
                        from,
                        status == -ATT_EFULL ? "there are too many" : att_status_name(status));
}

void att_peers_fates(const struct att_peers *p, att_coverage_t *coverage)
{
    att_span_coverage(p->span, coverage);
    coverage->unsent += p->unsent_records;
}

/* What agent 0 has in the row's place; NULL without memory: the row goes each time. */
static sent_row_t *sent_row(struct att_peers *p, uint32_t index)
{
    return index < p->sent_row_count ? &p->sent_rows[index] : NULL;
}

static void tell_rows(struct att_peers *p)
{
    for (; p->left > 0; p->left--, p->next++) {
        uint32_t index = p->next % p->told_count;
        const att_task_report_t *row = &p->told[index];
        sent_row_t now = {0}, *sent = sent_row(p, index);
        memcpy(&now.row, row, sizeof *row); /* with its padding: it is compared */
        now.row.reason = NULL;
        now.row.now_age_s = 0; /* agent 0 adds what has passed */
        strncpy(now.reason, row->reason != NULL ? row->reason : "", sizeof now.reason - 1);
        if (sent != NULL && memcmp(sent, &now, sizeof now) == 0)
            continue;
        if (att_messenger_unsent(p->messenger, 0) >= ROWS_MOST)
            return;
        if (sent != NULL)
            *sent = now;
        att_message_t m = {.type = ATT_MESSAGE_REPORT};
        m.body.report.row = now.row;
        m.body.report.row.now_age_s = row->now_age_s;
        memcpy(m.body.report.reason, now.reason, sizeof now.reason);
        send_message(p, 0, &m);
    }
}

static void make_room(struct att_peers *p, uint32_t count)
{
    if (count <= p->sent_row_count)
        return;
    sent_row_t *rows = realloc(p->sent_rows, count * sizeof *rows);
    if (rows == NULL)
        return;
    memset(rows + p->sent_row_count, 0, (count - p->sent_row_count) * sizeof *rows);
    p->sent_rows = rows;
    p->sent_row_count = count;
}

void att_peers_report(struct att_peers *p, const att_task_report_t *rows, uint32_t count)
{
    if (p->self == 0)
        return;
    p->told = rows;
    p->told_count = p->left = count;
    make_room(p, count);
    tell_rows(p);
}

int att_peers_told(const struct att_peers *p)
{
    return p->left == 0;
}

void att_peers_account(struct att_peers *p, const att_coverage_t *coverage, uint64_t records,
                       int last)
{
    if (p->self == 0)
        return;
    if (last && p->left > 0)
        att_log(ATT_LOG_WARN, "agent 0 takes no more: it does not know how %u of %u tasks ended",
                p->left, p->told_count);
    att_message_t m = {.type = ATT_MESSAGE_COVERAGE};
    m.body.node.coverage = *coverage;
    m.body.node.records = records;
    m.body.node.last = (uint32_t)last;
    send_message(p, 0, &m);
}

void att_peers_note(void *peers, const att_message_t *m)
{
    send_message(peers, 0, m);
}

bool att_peers_notes_full(void *peers)
{
    return is_full(peers, 0);
}

const struct att_rows *att_peers_rows(const struct att_peers *p)
{
    return p->rows;
}

void att_peers_coverage(const struct att_peers *p, att_coverage_t *sum, uint64_t *records)
{
    for (uint32_t i = 0; i < p->other_count; i++) {
        att_coverage_add(sum, &p->others[i].coverage);
        *records += p->others[i].records;
    }
}

int att_peers_all_gone(const struct att_peers *p)
{
    for (uint32_t i = 1; i < p->other_count; i++)
        if (!p->others[i].gone)
            return 0;
    return 1;
}

/* --- messages --------------------------------------------------------------------------------- */

static void on_message(void *context, uint32_t from, const void *bytes, uint32_t size)
{
    struct att_peers *p = context;
    att_message_t m;
    if (att_message_read(bytes, size, &m) != ATT_OK)
        return;
    switch (m.type) {
    case ATT_MESSAGE_REGISTER:
    case ATT_MESSAGE_RETIRE:
        att_registry_message(p->registry, from, &m);
        break;
    case ATT_MESSAGE_NODES:
    case ATT_MESSAGE_ASK:
    case ATT_MESSAGE_RETURN:
        if (p->keeper != NULL)
            att_turn_message(p->keeper, from, &m);
        break;
    case ATT_MESSAGE_REPORT:
        on_report(p, from, &m);
        break;
    case ATT_MESSAGE_COVERAGE:
        if (from >= p->other_count)
            break;
        p->others[from].coverage = m.body.node.coverage;
        p->others[from].records = m.body.node.records;
        p->others[from].gone = m.body.node.last != 0;
        break;
    case ATT_MESSAGE_LIST:
    case ATT_MESSAGE_OVER:
    case ATT_MESSAGE_TRIAL:
        att_notes_take(p->notes, from, &m);
        break;
    case ATT_MESSAGE_ENDED:
        if (p->keeper != NULL)
            att_turn_message(p->keeper, from, &m);
        att_span_message(p->span, from, &m);
        break;
    default:
        att_span_message(p->span, from, &m);
        break;
    }
}

uint32_t att_peers_step(struct att_peers *p, uint64_t now_ns, int *busy)
{
    *busy = 0;
    p->now_ns = now_ns;
    if (p->count < 2)
        return 0;
    *busy = att_span_step(p->span, now_ns);
    uint32_t received = att_messenger_poll(p->messenger, on_message, p);
    tell_rows(p);
    uint32_t sent = p->sent;
    p->sent = 0;
    return received + sent;
}
