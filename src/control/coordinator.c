#include "control/coordinator.h"

#include "base/step.h"

#include <string.h>

void att_coordinator_init(att_coordinator_t *c, const att_coordinator_ops_t *ops, void *context,
                          uint32_t participants, uint32_t last_txn)
{
    memset(c, 0, sizeof *c);
    c->ops = ops;
    c->context = context;
    c->participants = participants;
    c->txn = last_txn;
}

static uint64_t everybody(const att_coordinator_t *c)
{
    return c->participants == 64 ? UINT64_MAX : (1ull << c->participants) - 1;
}

static void finish(att_coordinator_t *c, att_home_state_t wanted)
{
    c->deciding = 1;
    uint32_t txn = c->schedule.txn;
    att_home_state_t state = c->ops->decide(c->context, txn, wanted);
    c->ops->step(c->context, state == ATT_HOME_COMMITTED ? ATT_STEP_COMMITTED : ATT_STEP_ABORTED,
                 &c->schedule);
    c->voting = 0;
    c->deciding = 0;
    c->telling = everybody(c);
    c->ops->done(c->context, &c->schedule, state, &c->ballot);
    for (uint32_t p = 0; p < c->participants && c->txn == txn; p++)
        c->ops->outcome(c->context, p, txn, state);
    if (c->txn == txn)
        c->ops->step(c->context, ATT_STEP_TOLD, &c->schedule);
}

static void look(att_coordinator_t *c)
{
    if (!c->voting || c->deciding)
        return;
    if (c->ballot.vote == ATT_VOTE_YES && c->waiting != 0)
        return;
    c->ops->step(c->context, ATT_STEP_VOTED, &c->schedule);
    finish(c, c->ballot.vote == ATT_VOTE_YES ? ATT_HOME_COMMITTED : ATT_HOME_ABORTED);
}

uint32_t att_coordinator_begin(att_coordinator_t *c, const att_schedule_entry_t *entries,
                               uint32_t count, uint64_t now_ns, uint64_t timeout_ns)
{
    if (att_coordinator_busy(c) || count == 0 || count > ATT_SCHEDULE || c->participants == 0 ||
        c->participants > ATT_PARTICIPANTS)
        return 0;
    c->txn++;
    c->schedule.txn = c->txn;
    c->schedule.count = count;
    memcpy(c->schedule.entries, entries, count * sizeof *entries);
    c->ballot = (att_ballot_t){.txn = c->txn, .no_rank = ATT_NONE};
    c->waiting = everybody(c);
    c->deadline_ns = now_ns + timeout_ns;
    if (c->ops->open(c->context, c->txn) != ATT_OK)
        return 0;
    c->voting = 1;
    c->ops->step(c->context, ATT_STEP_OPENED, &c->schedule);
    uint32_t txn = c->txn;
    for (uint32_t p = 0; p < c->participants && c->voting && c->txn == txn; p++)
        c->ops->prepare(c->context, p, &c->schedule);
    return txn;
}

void att_coordinator_vote(att_coordinator_t *c, uint32_t participant, const att_ballot_t *ballot)
{
    if (!c->voting || ballot->txn != c->schedule.txn || participant >= c->participants ||
        (c->waiting & (1ull << participant)) == 0)
        return;
    c->waiting &= ~(1ull << participant);
    if (ballot->horizon > c->ballot.horizon)
        c->ballot.horizon = ballot->horizon;
    if (ballot->vote != ATT_VOTE_YES && c->ballot.vote == ATT_VOTE_YES) {
        c->ballot.vote = ballot->vote;
        c->ballot.no_rank = ballot->no_rank;
    }
    c->ballot.seq_call = ballot->seq_call;
    c->ballot.seq = ballot->seq;
    c->ballot.seq_rank = ballot->seq_rank;
    look(c);
}

void att_coordinator_tell(att_coordinator_t *c, uint32_t txn)
{
    if (att_coordinator_busy(c) || txn != c->txn)
        return;
    c->schedule.txn = txn;
    c->telling = everybody(c);
}

void att_coordinator_recorded(att_coordinator_t *c, uint32_t participant, uint32_t txn)
{
    if (c->telling == 0 || txn != c->schedule.txn || participant >= c->participants)
        return;
    c->telling &= ~(1ull << participant);
    if (c->telling == 0)
        c->ops->step(c->context, ATT_STEP_CLEARED, &c->schedule);
}

void att_coordinator_tick(att_coordinator_t *c, uint64_t now_ns)
{
    if (c->voting && now_ns >= c->deadline_ns) {
        c->ballot.vote = ATT_VOTE_SILENT;
        look(c);
    }
}
