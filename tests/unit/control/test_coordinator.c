/* The coordinator alone: votes in any order, refusals, time-outs, a home word that says no. */
#include "control/coordinator.h"
#include "base/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

typedef struct fake {
    att_coordinator_t coordinator;
    att_segment_task_t task;
    uint32_t asked;
    int vote_at_once;
    att_vote_t vote;
    int finished;
    att_home_state_t outcome;
    att_vote_t why;
    int told, records_late;
    int steps[ATT_STEP_COUNT];
} fake_t;

static void vote(att_coordinator_t *c, uint32_t participant, uint32_t txn, att_vote_t vote)
{
    att_ballot_t ballot = {.txn = txn, .vote = vote};
    att_coordinator_vote(c, participant, &ballot);
}

static int open_home(void *context, uint32_t txn)
{
    return att_home_open(&((fake_t *)context)->task, txn);
}

static att_home_state_t decide(void *context, uint32_t txn, att_home_state_t state)
{
    return att_home_decide(&((fake_t *)context)->task, txn, state);
}

static void prepare(void *context, uint32_t participant, const att_schedule_t *schedule)
{
    fake_t *f = context;
    f->asked++;
    if (f->vote_at_once)
        vote(&f->coordinator, participant, schedule->txn, f->vote);
}

static void done(void *context, const att_schedule_t *schedule, att_home_state_t state,
                 const att_ballot_t *ballot)
{
    fake_t *f = context;
    (void)schedule;
    f->finished++;
    f->outcome = state;
    f->why = (att_vote_t)ballot->vote;
}

static void outcome(void *context, uint32_t participant, uint32_t txn, att_home_state_t state)
{
    fake_t *f = context;
    (void)state;
    f->told++;
    if (!f->records_late)
        att_coordinator_recorded(&f->coordinator, participant, txn);
}

static void step(void *context, int reached, const att_schedule_t *schedule)
{
    (void)schedule;
    ((fake_t *)context)->steps[reached]++;
}

static const att_coordinator_ops_t ops = {open_home, decide, prepare, done, outcome, step};

static uint32_t begin(fake_t *f, uint32_t participants)
{
    static const att_schedule_entry_t entries[2] = {{10, {.algorithm = 1, .protocol = 2}},
                                                    {20, {.algorithm = -1, .protocol = -1}}};
    if (f->coordinator.ops == NULL)
        att_coordinator_init(&f->coordinator, &ops, f, participants, 4);
    return att_coordinator_begin(&f->coordinator, entries, 2, 1000, 500);
}

static void local_vote_commits_at_once(void **state)
{
    (void)state;
    fake_t f = {.vote_at_once = 1};
    assert_int_equal(begin(&f, 1), 5);
    assert_int_equal(f.outcome, ATT_HOME_COMMITTED);
    assert_int_equal(f.finished, 1);
    assert_int_equal(f.steps[ATT_STEP_OPENED], 1);
    assert_int_equal(f.steps[ATT_STEP_COMMITTED], 1);
    assert_int_equal(begin(&f, 1), 6);
    assert_int_equal(f.finished, 2);
}

static void all_must_agree(void **state)
{
    (void)state;
    fake_t f = {0};
    uint32_t txn = begin(&f, 3);
    assert_int_equal(f.asked, 3);
    assert_int_equal(begin(&f, 3), 0); /* one at a time */
    vote(&f.coordinator, 2, txn, ATT_VOTE_YES);
    vote(&f.coordinator, 2, txn, ATT_VOTE_YES);        /* repeated */
    vote(&f.coordinator, 7, txn, ATT_VOTE_YES);        /* a stranger */
    vote(&f.coordinator, 0, txn - 1, ATT_VOTE_PASSED); /* of another one */
    vote(&f.coordinator, 0, txn, ATT_VOTE_YES);
    assert_int_equal(f.finished, 0);
    vote(&f.coordinator, 1, txn, ATT_VOTE_YES);
    assert_int_equal(f.finished, 1);
    assert_int_equal(f.outcome, ATT_HOME_COMMITTED);
}

static void one_no_aborts(void **state)
{
    (void)state;
    fake_t f = {0};
    uint32_t txn = begin(&f, 3);
    vote(&f.coordinator, 1, txn, ATT_VOTE_PASSED);
    assert_int_equal(f.outcome, ATT_HOME_ABORTED);
    assert_int_equal(f.why, ATT_VOTE_PASSED);
    vote(&f.coordinator, 0, txn, ATT_VOTE_YES);
    vote(&f.coordinator, 2, txn, ATT_VOTE_YES);
    assert_int_equal(f.finished, 1);
}

static void silence_aborts(void **state)
{
    (void)state;
    fake_t f = {0};
    uint32_t txn = begin(&f, 2);
    att_coordinator_tick(&f.coordinator, 1499);
    assert_int_equal(f.finished, 0);
    att_coordinator_tick(&f.coordinator, 1500);
    assert_int_equal(f.outcome, ATT_HOME_ABORTED);
    assert_int_equal(f.why, ATT_VOTE_SILENT);
    vote(&f.coordinator, 0, txn, ATT_VOTE_YES);
    assert_int_equal(f.finished, 1);
}

/* A rank that waited its time aborted the word: a late yes must not commit. */
static void home_word_has_the_last_say(void **state)
{
    (void)state;
    fake_t f = {0};
    uint32_t txn = begin(&f, 1);
    assert_int_equal(att_home_decide(&f.task, txn, ATT_HOME_ABORTED), ATT_HOME_ABORTED);
    vote(&f.coordinator, 0, txn, ATT_VOTE_YES);
    assert_int_equal(f.outcome, ATT_HOME_ABORTED);
    assert_int_equal(f.steps[ATT_STEP_COMMITTED], 0);
    assert_int_equal(f.steps[ATT_STEP_ABORTED], 1);
}

/* The home keeps an outcome until every node has it. */
static void next_waits_for_every_record(void **state)
{
    (void)state;
    fake_t f = {.vote_at_once = 1, .records_late = 1};
    uint32_t txn = begin(&f, 3);
    assert_int_equal(f.outcome, ATT_HOME_COMMITTED);
    assert_int_equal(f.told, 3);
    att_coordinator_recorded(&f.coordinator, 0, txn);
    att_coordinator_recorded(&f.coordinator, 0, txn);
    att_coordinator_recorded(&f.coordinator, 1, txn - 1);
    att_coordinator_recorded(&f.coordinator, 2, txn);
    assert_true(att_coordinator_busy(&f.coordinator));
    assert_int_equal(begin(&f, 3), 0);
    att_coordinator_recorded(&f.coordinator, 1, txn);
    assert_false(att_coordinator_busy(&f.coordinator));
    assert_int_equal(f.steps[ATT_STEP_CLEARED], 1);
    assert_int_equal(begin(&f, 3), txn + 1);
}

static void every_step_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < ATT_STEP_COUNT; i++)
        assert_string_not_equal(att_step_name((att_step_t)i), "unknown");
}

/* A new coordinator finds an outcome that was not told everywhere: nothing begins before it is. */
static void an_earlier_outcome_is_told_first(void **state)
{
    (void)state;
    fake_t f = {.vote_at_once = 1};
    att_coordinator_init(&f.coordinator, &ops, &f, 2, 7);
    att_coordinator_tell(&f.coordinator, 6); /* not the latest */
    assert_false(att_coordinator_busy(&f.coordinator));
    att_coordinator_tell(&f.coordinator, 7);
    att_coordinator_recorded(&f.coordinator, 0, 7);
    assert_int_equal(begin(&f, 2), 0);
    att_coordinator_recorded(&f.coordinator, 1, 7);
    assert_int_equal(begin(&f, 2), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_vote_commits_at_once),
        cmocka_unit_test(all_must_agree),
        cmocka_unit_test(one_no_aborts),
        cmocka_unit_test(silence_aborts),
        cmocka_unit_test(home_word_has_the_last_say),
        cmocka_unit_test(next_waits_for_every_record),
        cmocka_unit_test(every_step_has_a_name),
        cmocka_unit_test(an_earlier_outcome_is_told_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
