/*
 * The fence under load: ranks (threads) call one task as fast as they can while an agent (thread)
 * proposes schedules, gives up at random steps and is replaced. Two ranks must never get different
 * settings for one call, and after a schedule every rank is back on its incumbent.
 */
#include "base/clock.h"
#include "base/fence.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define RANKS 4
#define CALLS 60000

static att_segment_memory_t *memory;
static uint32_t lanes[RANKS];
static uint32_t seen[RANKS][CALLS]; /* channels + 1 of each call, 0 = not yet */
static _Atomic int running;

static void fresh_segment(void)
{
    free(memory);
    memory = aligned_alloc(64, (sizeof *memory + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, sizeof *memory);
    memory->header.wait_ns = 2000000;
    uint32_t process = att_segment_add_process(memory, "test");
    uint32_t group = att_segment_group(memory, 42, RANKS, 1);
    float cost[ATT_PAIR_COUNT] = {0};
    uint32_t task = att_segment_task(memory, group, ATT_COLLECTIVE_ALL_REDUCE, 1024, 7, cost);
    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t member = att_segment_add_member(memory, group, r, process);
        att_segment_publish_member(memory, member);
        lanes[r] = att_segment_add_lane(memory, task, member);
    }
    memset(seen, 0, sizeof seen);
}

static void *rank_main(void *argument)
{
    uint32_t rank = (uint32_t)(uintptr_t)argument;
    att_lane_t lane;
    unsigned seed = rank + 1;
    att_lane_init(&lane, memory, lanes[rank], 0);
    for (uint32_t i = 0; i < CALLS; i++) {
        att_decision_t d = att_lane_next(&lane);
        assert_int_equal(d.call, i);
        seen[rank][i] = d.setting.channels + 1u;
        if (rand_r(&seed) % 64 == 0)
            att_clock_sleep_ns(1000 * (uint64_t)(rand_r(&seed) % 20));
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* One attempt; `quit` is the step after which the agent dies (0 = it does not). */
static int propose(uint32_t txn, unsigned *seed, int quit, int *committed)
{
    att_segment_task_t *task = &memory->tasks[0];
    if (!att_vote_ready(memory, lanes, RANKS, task) || att_home_open(task, txn) != ATT_OK)
        return 0;
    if (quit == 1)
        return -1;
    att_schedule_t schedule = {.txn = txn, .count = 3};
    uint64_t fence = att_vote_horizon(memory, lanes, RANKS) + (uint64_t)(rand_r(seed) % 40);
    for (uint32_t e = 0; e < 3; e++) {
        schedule.entries[e].first_call = fence + 5u * e;
        schedule.entries[e].setting = ATT_SETTING_KEEP;
        schedule.entries[e].setting.channels = (uint16_t)(txn * 3 + e);
    }
    att_vote_t vote = att_vote_prepare(memory, task, lanes, RANKS, &schedule);
    if (quit == 2)
        return -1;
    att_home_state_t state =
        att_home_decide(task, txn, vote == ATT_VOTE_YES ? ATT_HOME_COMMITTED : ATT_HOME_ABORTED);
    *committed += state == ATT_HOME_COMMITTED;
    return quit == 3 ? -1 : 1;
}

static void *agent_main(void *argument)
{
    int *committed = argument;
    unsigned seed = 7;
    uint32_t txn = 1;
    while (atomic_load(&running) > 0) {
        int quit = rand_r(&seed) % 8 == 0 ? 1 + rand_r(&seed) % 3 : 0;
        int result = propose(txn, &seed, quit, committed);
        if (result < 0) {
            if (rand_r(&seed) % 4 == 0)
                att_clock_sleep_ns(3000000); /* longer than W: ranks abort by themselves */
            txn = att_vote_recover(memory, &memory->tasks[0], lanes, RANKS) + 1;
        } else if (result > 0) {
            txn++;
        } else {
            att_clock_sleep_ns(2000);
        }
    }
    return NULL;
}

static void one_round(int *committed)
{
    fresh_segment();
    pthread_t ranks[RANKS], agent;
    atomic_store(&running, RANKS);
    pthread_create(&agent, NULL, agent_main, committed);
    for (uintptr_t r = 0; r < RANKS; r++)
        pthread_create(&ranks[r], NULL, rank_main, (void *)r);
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r], NULL);
    pthread_join(agent, NULL);
    for (uint32_t i = 0; i < CALLS; i++)
        for (int r = 1; r < RANKS; r++)
            assert_int_equal(seen[r][i], seen[0][i]);
}

/* How much the agent gets done in a round depends on the scheduler: as many rounds as it takes. */
static void ranks_never_differ(void **state)
{
    (void)state;
    int committed = 0;
    for (int round = 0; round < 40 && committed <= 5; round++)
        one_round(&committed);
    assert_true(committed > 5);
}

static void passed_fence_aborts(void **state)
{
    (void)state;
    fresh_segment();
    att_segment_task_t *task = &memory->tasks[0];
    att_lane_t lane[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        att_lane_init(&lane[r], memory, lanes[r], 0);
    for (int i = 0; i < 10; i++)
        att_lane_next(&lane[2]);
    att_schedule_t schedule = {.txn = 1, .count = 1};
    schedule.entries[0] = (att_schedule_entry_t){9, ATT_SETTING_KEEP};
    schedule.entries[0].setting.channels = 3;
    assert_int_equal(att_home_open(task, 1), ATT_OK);
    assert_int_equal(att_home_open(task, 2), -ATT_EBUSY);
    assert_int_equal(att_vote_prepare(memory, task, lanes, RANKS, &schedule), ATT_VOTE_PASSED);
    assert_int_equal(att_home_decide(task, 1, ATT_HOME_ABORTED), ATT_HOME_ABORTED);
    for (uint32_t r = 0; r < RANKS; r++)
        for (int i = 0; i < 12; i++)
            assert_int_equal(att_lane_next(&lane[r]).setting.channels, 0);
    assert_true(att_vote_ready(memory, lanes, RANKS, task));
}

static void late_commit_loses(void **state)
{
    (void)state;
    fresh_segment();
    att_segment_task_t *task = &memory->tasks[0];
    att_lane_t lane;
    att_lane_init(&lane, memory, lanes[0], 0);
    att_schedule_t schedule = {.txn = 1, .count = 1};
    schedule.entries[0].setting = ATT_SETTING_KEEP;
    schedule.entries[0].setting.channels = 3;
    assert_int_equal(att_home_open(task, 1), ATT_OK);
    assert_int_equal(att_vote_prepare(memory, task, lanes, RANKS, &schedule), ATT_VOTE_YES);
    /* The agent pauses here: the rank waits W, aborts, and goes on with its incumbent. */
    assert_int_equal(att_lane_next(&lane).setting.channels, 0);
    assert_int_equal(atomic_load(&memory->processes[0].waited), 1);
    assert_int_equal(att_home_decide(task, 1, ATT_HOME_COMMITTED), ATT_HOME_ABORTED);
    att_lane_init(&lane, memory, lanes[1], 0);
    assert_int_equal(att_lane_next(&lane).setting.channels, 0);
}

static void list_plays_out_alone(void **state)
{
    (void)state;
    fresh_segment();
    att_segment_task_t *task = &memory->tasks[0];
    att_schedule_t schedule = {.txn = 1, .count = 3};
    const uint64_t first[] = {2, 4, 5};
    for (uint32_t e = 0; e < 3; e++) {
        schedule.entries[e] = (att_schedule_entry_t){first[e], ATT_SETTING_KEEP};
        schedule.entries[e].setting.channels = (uint16_t)(e + 1);
    }
    assert_int_equal(att_home_open(task, 1), ATT_OK);
    assert_int_equal(att_vote_prepare(memory, task, lanes, RANKS, &schedule), ATT_VOTE_YES);
    assert_int_equal(att_home_decide(task, 1, ATT_HOME_COMMITTED), ATT_HOME_COMMITTED);
    const uint16_t expected[] = {0, 0, 1, 1, 2, 3, 3, 3};
    for (uint32_t r = 0; r < RANKS; r++) {
        att_lane_t lane;
        att_lane_init(&lane, memory, lanes[r], 0);
        for (int i = 0; i < 8; i++) {
            att_decision_t d = att_lane_next(&lane);
            assert_int_equal(d.setting.channels, expected[i]);
            assert_int_equal(d.trial, i >= 2 && i < 5);
            assert_int_equal(d.txn, i >= 2);
        }
    }
    assert_true(att_vote_ready(memory, lanes, RANKS, task));
}

/* Two ranks of a node wait beyond W for a home elsewhere: one asks at a time, and when it dies
 * meanwhile the other one asks soon. */
static void a_dead_asker_costs_its_neighbours_little(void **state)
{
    (void)state;
    enum { MS = 1000000 };
    fresh_segment();
    att_segment_task_t *task = &memory->tasks[0];
    memory->header.in_doubt_ns = 60000ull * MS;
    atomic_store(&task->copied, 1);
    att_schedule_t schedule = {.txn = 1, .count = 2};
    schedule.entries[1].first_call = 5;
    assert_int_equal(att_home_open(task, 1), ATT_OK);
    assert_int_equal(att_vote_prepare(memory, task, lanes, RANKS, &schedule), ATT_VOTE_YES);
    att_lane_t lane[2];
    att_wait_t wait[2];
    uint64_t now = 1000ull * MS;
    for (uint32_t r = 0; r < 2; r++) {
        att_lane_init(&lane[r], memory, lanes[r], 0);
        assert_int_equal(att_lane_enter(&lane[r], 0, now, &wait[r]), ATT_WAIT_AGAIN);
    }
    now += memory->header.wait_ns;
    assert_int_equal(att_wait_step(&lane[0], &wait[0], now), ATT_WAIT_ASK);
    assert_int_equal(att_wait_step(&lane[1], &wait[1], now), ATT_WAIT_AGAIN);
    /* It is alive and still asks. */
    for (int i = 0; i < 20; i++) {
        now += 100 * MS;
        att_seat_keep(task, &wait[0].seat, now);
        assert_int_equal(att_wait_step(&lane[1], &wait[1], now), ATT_WAIT_AGAIN);
    }
    /* It is not. */
    assert_int_equal(att_wait_step(&lane[1], &wait[1], now + 399 * MS), ATT_WAIT_AGAIN);
    now += 401 * MS;
    assert_int_equal(att_wait_step(&lane[1], &wait[1], now), ATT_WAIT_ASK);
    /* It was only stopped: it takes nothing from who asks now. */
    uint64_t seat = atomic_load(&task->seat);
    att_seat_keep(task, &wait[0].seat, now + MS);
    att_wait_answer(&lane[0], &wait[0], ATT_HOME_NONE, now + MS);
    assert_int_equal(atomic_load(&task->seat), seat);
    att_wait_answer(&lane[1], &wait[1], ATT_HOME_ABORTED, now + MS);
    assert_int_equal(atomic_load(&task->seat), 0);
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(att_wait_step(&lane[r], &wait[r], now + 2 * MS), ATT_WAIT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_plays_out_alone),
        cmocka_unit_test(passed_fence_aborts),
        cmocka_unit_test(late_commit_loses),
        cmocka_unit_test(a_dead_asker_costs_its_neighbours_little),
        cmocka_unit_test(ranks_never_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
