#include "control/voter.h"

#include "base/step.h"

#include <string.h>

#define OWN (1u << ATT_TREE_FAN)

void att_voter_init(att_voter_t *v, const att_voter_ops_t *ops, void *context,
                    att_segment_memory_t *memory, att_segment_task_t *task, const uint32_t *lanes,
                    uint32_t lane_count, uint32_t children)
{
    memset(v, 0, sizeof *v);
    v->ops = ops;
    v->context = context;
    v->memory = memory;
    v->task = task;
    v->lanes = lanes;
    v->lane_count = lane_count;
    v->children = children < ATT_TREE_FAN ? children : ATT_TREE_FAN;
    const att_segment_group_t *group = &memory->groups[task->group % ATT_GROUPS];
    v->group = (att_group_key_t){.hash = group->hash, .ranks = group->ranks};
    v->key = (att_task_key_t){
        .bytes = task->bytes, .collective = task->collective, .legal_pairs = task->legal_pairs};
}

uint32_t att_voter_recover(att_voter_t *v, bool home, uint32_t *open)
{
    uint64_t word = atomic_load(&v->task->home);
    *open = 0;
    if (home) {
        v->txn = att_vote_recover(v->memory, v->task, v->lanes, v->lane_count);
        return v->txn;
    }
    att_vote_mark(v->memory, v->task, v->lanes, v->lane_count);
    uint32_t prepared = (uint32_t)atomic_load(&v->task->prepared);
    v->txn = ATT_HOME_TXN(word) > prepared ? ATT_HOME_TXN(word) : prepared;
    if (ATT_HOME_STATE(word) == ATT_HOME_OPEN)
        *open = ATT_HOME_TXN(word);
    return v->txn;
}

void att_voter_note(att_voter_t *v, uint64_t call, uint64_t seq, uint32_t rank)
{
    att_seen_t *seen = &v->seen[(call + 1) % ATT_VOTER_SEEN];
    *seen = (att_seen_t){.call = call + 1, .seq = seq, .rank = rank};
    if (call + 1 > v->latest.call)
        v->latest = *seen;
}

static void step(att_voter_t *v, int reached, const att_schedule_t *schedule)
{
    if (v->ops->step != NULL)
        v->ops->step(v->context, reached, schedule);
}

static uint32_t everybody(const att_voter_t *v)
{
    return ((1u << v->children) - 1) | OWN;
}

/* Put a vote into the one that goes up. */
static void count(att_voter_t *v, const att_ballot_t *ballot)
{
    att_ballot_t *sum = &v->ballot;
    if (sum->vote == ATT_VOTE_YES && ballot->vote != ATT_VOTE_YES) {
        sum->vote = ballot->vote;
        sum->no_rank = ballot->no_rank;
    }
    if (sum->vote == ATT_VOTE_YES && ballot->digest != sum->digest) {
        sum->vote = ATT_VOTE_DIFFERS;
        sum->no_rank = ballot->seq_rank;
    }
    if (ballot->horizon > sum->horizon)
        sum->horizon = ballot->horizon;
    /* The same call, another number: these ranks do not issue the same calls. Else the earlier call
     * goes up: more of the others have seen it. */
    if (ballot->seq_call == 0)
        return;
    const att_seen_t *mine = &v->seen[ballot->seq_call % ATT_VOTER_SEEN];
    if (mine->call == ballot->seq_call && mine->seq != ballot->seq) {
        sum->vote = ATT_VOTE_DIFFERS;
        sum->no_rank = ballot->seq_rank;
    } else if (sum->seq_call == 0 || ballot->seq_call < sum->seq_call) {
        sum->seq_call = ballot->seq_call;
        sum->seq = ballot->seq;
        sum->seq_rank = ballot->seq_rank;
    }
}

/* A no goes up at once, a yes when all are in. */
static void look(att_voter_t *v, const att_schedule_t *schedule)
{
    if (v->voted || (v->voting != 0 && v->ballot.vote == ATT_VOTE_YES))
        return;
    v->voted = 1;
    step(v, ATT_STEP_ANSWERED, schedule);
    v->ops->vote(v->context, &v->ballot);
}

static uint32_t first_rank(const att_voter_t *v)
{
    return v->lane_count > 0
               ? v->memory->members[v->memory->lanes[v->lanes[0]].member % ATT_MEMBERS].rank
               : ATT_NONE;
}

static att_vote_t prepare_here(att_voter_t *v, const att_schedule_t *schedule)
{
    for (uint32_t i = 0; i < v->lane_count; i++) {
        const att_segment_lane_t *lane = &v->memory->lanes[v->lanes[i]];
        if (atomic_load(&v->memory->members[lane->member % ATT_MEMBERS].state) != ATT_ENTRY_LIVE)
            return ATT_VOTE_GONE;
    }
    att_vote_t vote =
        v->ops->permits != NULL ? v->ops->permits(v->context, schedule) : ATT_VOTE_YES;
    if (vote != ATT_VOTE_YES)
        return vote;
    if (!att_vote_ready(v->memory, v->lanes, v->lane_count, v->task))
        return ATT_VOTE_BUSY;
    /* The copy is opened before any rank can be held by the transaction. At home the leader did. */
    if (atomic_load(&v->task->copied) != 0 && att_home_open(v->task, schedule->txn) != ATT_OK)
        return ATT_VOTE_BUSY;
    return att_vote_prepare(v->memory, v->task, v->lanes, v->lane_count, schedule);
}

void att_voter_prepare(att_voter_t *v, const att_schedule_t *schedule)
{
    if (schedule->txn <= v->txn || schedule->count == 0 || schedule->count > ATT_SCHEDULE)
        return;
    v->txn = schedule->txn;
    v->voting = everybody(v);
    v->telling = 0;
    v->voted = 0;
    v->ballot = (att_ballot_t){.txn = schedule->txn,
                               .digest = att_schedule_digest(&v->group, &v->key, schedule),
                               .seq_call = v->latest.call,
                               .seq = v->latest.seq,
                               .seq_rank = v->latest.call != 0 ? v->latest.rank : first_rank(v),
                               .no_rank = ATT_NONE};
    step(v, ATT_STEP_RECEIVED, schedule);
    for (uint32_t c = 0; c < v->children; c++)
        v->ops->prepare(v->context, c, schedule);
    att_vote_t vote = prepare_here(v, schedule);
    step(v, ATT_STEP_PREPARED, schedule);
    if (v->txn != schedule->txn) /* the step or a child's answer led on */
        return;
    v->voting &= ~OWN;
    uint64_t horizon = att_vote_horizon(v->memory, v->lanes, v->lane_count);
    if (horizon > v->ballot.horizon)
        v->ballot.horizon = horizon;
    if (vote != ATT_VOTE_YES && v->ballot.vote == ATT_VOTE_YES) {
        v->ballot.vote = vote;
        v->ballot.no_rank = first_rank(v);
    }
    look(v, schedule);
}

void att_voter_child_vote(att_voter_t *v, uint32_t child, const att_ballot_t *ballot)
{
    if (ballot->txn != v->txn || child >= v->children || (v->voting & 1u << child) == 0)
        return;
    v->voting &= ~(1u << child);
    count(v, ballot);
    look(v, &v->task->schedule);
}

/* Everybody at and below this node has the outcome. */
static void settle(att_voter_t *v, uint32_t bit)
{
    if ((v->telling & bit) == 0)
        return;
    v->telling &= ~bit;
    if (v->telling == 0)
        v->ops->recorded(v->context, v->txn);
}

/* A copy that was never opened for txn holds no lane by it, and a rank may still need what it says
 * of the one before. */
static void record(att_voter_t *v, uint32_t txn, att_home_state_t state)
{
    if (ATT_HOME_TXN(atomic_load(&v->task->home)) == txn)
        att_home_decide(v->task, txn, state);
}

void att_voter_outcome(att_voter_t *v, uint32_t txn, att_home_state_t state)
{
    if (state != ATT_HOME_COMMITTED && state != ATT_HOME_ABORTED)
        return;
    if (txn < v->txn) { /* overtaken by a later PREPARE, but true */
        record(v, txn, state);
        return;
    }
    v->txn = txn; /* a PREPARE that comes later than its outcome is refused */
    v->voting = 0;
    v->voted = 1;
    v->telling = everybody(v);
    for (uint32_t c = 0; c < v->children; c++)
        v->ops->outcome(v->context, c, txn, state);
    record(v, txn, state);
    step(v, ATT_STEP_RECORDED, &v->task->schedule);
    settle(v, OWN);
}

void att_voter_child_recorded(att_voter_t *v, uint32_t child, uint32_t txn)
{
    if (txn == v->txn && child < v->children)
        settle(v, 1u << child);
}
