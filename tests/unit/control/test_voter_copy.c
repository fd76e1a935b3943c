/*
 * A node that refused a transaction keeps the outcome of the one before: a rank of it may not have
 * taken that over yet, and the home has moved on.
 */
#include "control/voter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct heard {
    uint32_t votes, vote, recorded;
} heard_t;

static void vote(void *context, const att_ballot_t *ballot)
{
    heard_t *heard = context;
    heard->votes++;
    heard->vote = ballot->vote;
}

static void recorded(void *context, uint32_t txn)
{
    ((heard_t *)context)->recorded = txn;
}

static const att_voter_ops_t ops = {.vote = vote, .recorded = recorded};

static att_schedule_t list(uint32_t txn, uint64_t fence)
{
    att_schedule_t schedule = {.txn = txn, .count = 1};
    schedule.entries[0] = (att_schedule_entry_t){fence, ATT_SETTING_KEEP};
    schedule.entries[0].setting.channels = (uint16_t)txn;
    return schedule;
}

static void refused_outcome_does_not_replace_the_one_before(void **state)
{
    (void)state;
    att_segment_memory_t *memory = aligned_alloc(64, (sizeof *memory + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, sizeof *memory);
    uint32_t process = att_segment_add_process(memory, "test");
    uint32_t group = att_segment_group(memory, 42, 2, 2);
    float cost[ATT_PAIR_COUNT] = {0};
    uint32_t index = att_segment_task(memory, group, ATT_COLLECTIVE_ALL_REDUCE, 1024, 7, cost);
    uint32_t member = att_segment_add_member(memory, group, 1, process);
    att_segment_publish_member(memory, member);
    uint32_t lane_index = att_segment_add_lane(memory, index, member);
    att_segment_task_t *task = &memory->tasks[index];
    atomic_store(&task->copied, 1);
    att_lane_t lane;
    att_lane_init(&lane, memory, lane_index, process);
    heard_t heard = {0};
    att_voter_t voter;
    att_voter_init(&voter, &ops, &heard, memory, task, &lane_index, 1, 0);

    att_schedule_t first = list(1, 0), second = list(2, 5);
    att_voter_prepare(&voter, &first);
    assert_int_equal(heard.vote, ATT_VOTE_YES);
    att_voter_outcome(&voter, 1, ATT_HOME_COMMITTED);
    assert_int_equal(heard.recorded, 1);
    /* The rank has not called since: this node is not ready for the next. */
    att_voter_prepare(&voter, &second);
    assert_int_equal(heard.vote, ATT_VOTE_BUSY);
    att_voter_outcome(&voter, 2, ATT_HOME_ABORTED);
    assert_int_equal(heard.recorded, 2);
    assert_int_equal(att_home_state(task, 1), ATT_HOME_COMMITTED);
    assert_int_equal(att_lane_next(&lane).setting.channels, 1);
    assert_true(att_vote_ready(memory, &lane_index, 1, task));
    /* And then it takes part again. */
    att_schedule_t third = list(3, 9);
    att_voter_prepare(&voter, &third);
    assert_int_equal(heard.vote, ATT_VOTE_YES);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_outcome_does_not_replace_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
