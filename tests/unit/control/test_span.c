/* Groups over several nodes, with the code of the real agents: odd layouts, many groups at once,
 * groups that end, ranks that disagree. */
#include "control/pulse.h"
#include "world.h"

#include "base/clock.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* How ranks lie on nodes: counts a node, or round-robin (all zero). */
typedef struct layout {
    const char *name;
    uint32_t nodes, ranks;
    uint32_t here[WORLD_NODES];
    int no_device; /* the last rank's device is unknown */
} layout_t;

static const layout_t layouts[] = {
    {"7+8", 2, 15, {7, 8}, 0},
    {"1+8", 2, 9, {1, 8}, 0},
    {"8+0", 2, 8, {8, 0}, 0},
    {"0+8", 2, 8, {0, 8}, 0},
    {"127 ranks, round-robin on 16", 16, 127, {0}, 0},
    {"128 ranks on 3", 3, 128, {40, 1, 87}, 0},
    {"129 ranks on 16, tree of two levels",
     16,
     129,
     {9, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8},
     0},
    {"12 ranks, round-robin on 4", 4, 12, {0}, 0},
    {"a rank without a device", 2, 6, {3, 3}, 1},
};

static void place(const layout_t *layout, uint32_t *node_of)
{
    uint32_t node = 0, left = layout->here[0], sum = 0;
    for (uint32_t i = 0; i < layout->nodes; i++)
        sum += layout->here[i];
    for (uint32_t r = 0; r < layout->ranks; r++) {
        if (sum == 0) {
            node_of[r] = r % layout->nodes;
            continue;
        }
        while (left == 0)
            left = layout->here[++node];
        left--;
        node_of[r] = node;
    }
}

static void try_layout(const layout_t *layout)
{
    world_t *w = world_create(layout->nodes);
    uint32_t node_of[WORLD_RANKS], count[WORLD_NODES] = {0}, agents = 0;
    place(layout, node_of);
    for (uint32_t r = 0; r < layout->ranks; r++)
        agents += count[node_of[r]]++ == 0;
    world_group(w, 0xabcdef0123 + layout->ranks, layout->ranks, node_of);
    if (layout->no_device) {
        world_rank_t *last = &w->ranks[layout->ranks - 1];
        memset(last->node->memory->members[last->member].device_id, 0, 16);
        last->node->memory->members[last->member].device_units = 0;
    }
    world_call_task(w, 1 << 20);
    world_meet(w);
    world_run(w, 700, 2);
    if (agents == 1)
        assert_int_equal(w->sent, 0); /* groups inside a node never touch MPI */
    for (uint32_t n = 0; n < layout->nodes; n++) {
        const world_node_t *node = &w->nodes[n];
        assert_int_equal(node->refused, 0);
        /* One leader: the agent of rank 0. */
        assert_int_equal(node->task != NULL, n == node_of[0]);
        if (agents > 1 && count[n] > 0) {
            assert_int_equal(att_span_agents(node->span, 0), agents);
            assert_int_equal(att_span_ranks_here(node->span, 0), count[n]);
        }
    }
    att_task_report_t report;
    att_task_report(w->nodes[node_of[0]].task, &report);
    if (w->mismatches != 0 || w->trials == 0 || report.switches < 3 || report.aborts > 20)
        fail_msg("%s: %u mismatches, %u trial calls, %u switches, %u aborts, state %s: %s",
                 layout->name, w->mismatches, w->trials, (unsigned)report.switches,
                 (unsigned)report.aborts, att_task_state_name(report.state), report.reason);
    assert_int_equal(report.ranks, layout->ranks);
    /* Five channels are best; without a device never more than NCCL's own eight. */
    if (report.status.phase == ATT_PHASE_SETTLED)
        assert_true(report.status.incumbent.channels <= 8);
    for (uint64_t c = 0; layout->no_device && c < 700; c++)
        assert_true(w->decided[c] <= 9);
    world_destroy(w);
}

static void odd_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        try_layout(&layouts[i]);
}

/* 300 groups on overlapping sets of 6 nodes want the turn at once, for several lists each. */
static void many_groups_take_turns(void **state)
{
    (void)state;
    enum { NODES = 6, GROUPS = 300, LISTS = 2 };
    world_t *w = world_create(NODES);
    static uint32_t members[GROUPS][NODES];
    static uint8_t holds[GROUPS], begun[GROUPS];
    unsigned seed = 5;
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t ranks = 2 + (uint32_t)rand_r(&seed) % (NODES - 1), first = (uint32_t)rand_r(&seed);
        for (uint32_t r = 0; r < ranks; r++)
            members[g][r] = (first + r) % NODES;
        world_group(w, 0x1000 + g * 7919u, ranks, members[g]);
    }
    memset(holds, 0, sizeof holds);
    memset(begun, 0, sizeof begun);
    uint32_t left = GROUPS * LISTS;
    for (uint32_t round = 0; round < 200000 && left > 0; round++) {
        world_round(w);
        for (uint32_t n = 0; n < NODES; n++) {
            world_node_t *node = &w->nodes[n];
            for (uint32_t i = 0; i < att_node_group_count(node->node); i++) {
                const att_segment_group_t *group = &node->memory->groups[i];
                uint32_t g = (uint32_t)((group->hash - 0x1000) / 7919u);
                const att_task_reach_t *reach = att_span_reach(node->span, i);
                if (reach == NULL)
                    continue;
                if (holds[g]) {
                    if (rand_r(&seed) % 4 == 0) {
                        holds[g] = 0;
                        reach->list(reach->context, -1);
                    }
                } else if (begun[g] < LISTS && reach->may(reach->context, att_clock_ns())) {
                    reach->list(reach->context, 1);
                    holds[g] = 1;
                    begun[g]++;
                    left--;
                }
            }
        }
        /* Groups with lists in force share no node. */
        uint32_t owner[NODES];
        memset(owner, 255, sizeof owner);
        for (uint32_t g = 0; g < GROUPS; g++) {
            if (!holds[g])
                continue;
            uint32_t ranks = 0;
            for (uint32_t i = 0; i < att_node_group_count(w->nodes[members[g][0]].node); i++) {
                const att_segment_group_t *group = &w->nodes[members[g][0]].memory->groups[i];
                if (group->hash == 0x1000 + g * 7919u)
                    ranks = group->ranks;
            }
            for (uint32_t r = 0; r < ranks; r++) {
                assert_int_equal(owner[members[g][r]], UINT32_MAX);
                owner[members[g][r]] = g;
            }
        }
    }
    if (left > 0)
        fail_msg("left %u", left);
    world_destroy(w);
}

/* What only a damaged or hostile agent sends: nothing is allocated by its numbers, and the true
 * place is still taken afterwards. */
static void a_place_that_cannot_be_is_not_taken(void **state)
{
    (void)state;
    static const uint32_t node_of[6] = {0, 0, 1, 1, 2, 2};
    static const att_place_t good = {.agents = 3,
                                     .leader = 0,
                                     .parent = 0,
                                     .ranks_here = 2,
                                     .ranks_below = 2,
                                     .agents_below = 1};
    world_t *w = world_create(3);
    struct att_span *span = w->nodes[1].span;
    uint32_t owner = 77 % 3;
    world_group(w, 77, 6, node_of);
    world_call_task(w, 4096);
    for (int i = 0; i < 12; i++) {
        att_message_t m = {.type = ATT_MESSAGE_PLACE, .group = {.hash = 77, .ranks = 6}};
        att_place_t *place = &m.body.place;
        *place = good;
        uint32_t *const numbers[] = {&place->agents,     &place->leader,      &place->parent,
                                     &place->ranks_here, &place->ranks_below, &place->agents_below};
        if (i < 6)
            *numbers[i] = 0x7f000000;
        else if (i == 6)
            place->ranks_here = 0;
        else if (i == 7)
            place->ranks_below = 1;
        else if (i == 8)
            place->agents = 1;
        else if (i == 9)
            place->child_count = ATT_TREE_FAN + 1;
        else if (i == 10)
            place->child_count = 1, place->children[0] = 3;
        att_node_scan(w->nodes[1].node);
        att_span_step(span, att_clock_ns());
        att_span_message(span, i == 11 ? (owner + 1) % 3 : owner, &m);
        if (att_span_agents(span, 0) != 0)
            fail_msg("nonsense %d was taken as a place", i);
    }
    world_meet(w);
    world_run(w, 200, 1);
    assert_int_equal(att_span_agents(span, 0), 3);
    assert_int_equal(w->mismatches, 0);
    world_destroy(w);
}

/* What came before the place is in the sums, whether or not the place ever comes. */
static void early_records_are_counted(void **state)
{
    (void)state;
    static const uint32_t node_of[2] = {0, 1};
    world_t *w = world_create(2);
    world_group(w, 77, 2, node_of);
    struct att_span *span = w->nodes[1].span;
    att_node_scan(w->nodes[1].node);
    att_span_step(span, 1);
    att_message_t m = {.type = ATT_MESSAGE_PARTS, .group = {.hash = 77, .ranks = 2}, .count = 1};
    m.body.part[0].ranks = 3;
    att_span_message(span, 0, &m);
    att_coverage_t coverage = {0};
    att_span_coverage(span, &coverage);
    assert_int_equal(coverage.waiting, 3);
    assert_int_equal(coverage.unused, 0);
    world_destroy(w);
}

static void an_end_reaches_everybody(void **state)
{
    (void)state;
    static const uint32_t node_of[6] = {0, 0, 1, 1, 2, 2};
    world_t *w = world_create(3);
    world_group(w, 77, 6, node_of);
    world_call_task(w, 4096);
    world_meet(w);
    world_run(w, 200, 1);
    assert_non_null(w->nodes[0].task);
    uint32_t owner = 77 % 3;
    assert_int_equal(att_registry_groups(w->nodes[owner].registry), 1);
    att_segment_retire_member(w->nodes[1].memory, w->ranks[2].member);
    for (int i = 0; i < 10; i++)
        world_round(w);
    att_task_report_t report;
    att_task_report(w->nodes[0].task, &report);
    assert_int_equal(report.state, ATT_TASK_ENDED);
    assert_null(att_span_reach(w->nodes[0].span, 0));
    for (int n = 0; n < 3; n++)
        assert_int_equal(w->nodes[n].refused, 0); /* an ordinary end */
    for (uint32_t r = 0; r < 6; r++)
        att_segment_retire_member(w->ranks[r].node->memory, w->ranks[r].member);
    for (int i = 0; i < 10; i++)
        world_round(w);
    assert_int_equal(att_registry_groups(w->nodes[owner].registry), 0);
    uint32_t granted, waiting;
    att_turn_counts(w->nodes[0].keeper, &granted, &waiting);
    assert_int_equal(granted + waiting, 0);
    world_destroy(w);
}

/* What a group that has ended leaves at the agents: nothing that grows with its calls. Windows of
 * calls are 176 KiB each; an agent that sees groups come and go all day must not keep them. */
static void an_ended_group_keeps_no_window(void **state)
{
    (void)state;
    enum { NODES = 3, WINDOW_BYTES = ATT_AGGREGATE_WINDOW * sizeof(att_part_t) };
    static const uint32_t node_of[6] = {0, 0, 1, 1, 2, 2};
    world_t *w = world_create(NODES);
    world_group(w, 77, 6, node_of);
    world_call_task(w, 4096);
    world_meet(w);
    world_run(w, 200, 1);
    struct mallinfo2 before = mallinfo2();
    att_segment_retire_member(w->nodes[1].memory, w->ranks[2].member);
    for (int i = 0; i < 10; i++)
        world_round(w);
    struct mallinfo2 after = mallinfo2();
    size_t in_use = before.uordblks + before.hblkhd;
    if (in_use == 0)
        print_message("this C library tells nothing of its memory (a sanitizer's)\n");
    else
        assert_true(after.uordblks + after.hblkhd + NODES * WINDOW_BYTES <= in_use);
    /* What waited there is counted. */
    for (uint32_t n = 0; n < NODES; n++) {
        att_coverage_t coverage = {0};
        att_span_coverage(w->nodes[n].span, &coverage);
        assert_int_equal(coverage.waiting, 0);
    }
    /* The ranks that are left go on; what was being voted on they decide by themselves. */
    for (uint32_t n = 0; n < NODES; n++)
        w->nodes[n].memory->header.wait_ns = 20000000;
    world_run(w, 20, 1);
    world_destroy(w);
}

/* The same rank twice: two communicators carry the hash. */
static void a_twin_ends_tuning(void **state)
{
    (void)state;
    static const uint32_t first[4] = {0, 0, 1, 1}, twin[4] = {2, 2, 2, 1};
    world_t *w = world_create(3);
    world_group(w, 99, 4, first);
    world_call_task(w, 4096);
    world_meet(w);
    world_run(w, 100, 1);
    world_group(w, 99, 4, twin);
    for (int i = 0; i < 10; i++)
        world_round(w);
    assert_non_null(strstr(w->nodes[0].why, "two communicators carry its hash"));
    assert_null(att_span_reach(w->nodes[0].span, 0));
    world_destroy(w);
}

/* Rank 3 on the other node counts NCCL's calls differently: tuning ends and the ranks are named. */
static void disagreement_is_named(void **state)
{
    (void)state;
    static const uint32_t node_of[4] = {0, 0, 1, 1};
    world_t *w = world_create(2);
    world_group(w, 55, 4, node_of);
    world_call_task(w, 4096);
    world_meet(w);
    world_run(w, 150, 1);
    att_task_report_t report;
    att_task_report(w->nodes[0].task, &report);
    assert_int_equal(report.state, ATT_TASK_TUNING);
    w->ranks[3].seq_shift = 1;
    world_run(w, 30, 1);
    for (int i = 0; i < 100; i++) { /* parts may wait for a moment to be sent */
        world_round(w);
        att_clock_sleep_ns(100000);
    }
    att_task_report(w->nodes[0].task, &report);
    assert_int_equal(report.state, ATT_TASK_REFUSED);
    assert_non_null(strstr(report.reason, "disagree"));
    assert_non_null(strstr(report.reason, "3"));
    assert_int_equal(w->mismatches, 0);
    world_destroy(w);
}

static att_home_state_t home_of(world_node_t *node)
{
    return ATT_HOME_STATE(atomic_load(&node->memory->tasks[0].home));
}

static void step_until_open(world_t *w, uint32_t node)
{
    for (int i = 0; i < 20000 && home_of(&w->nodes[node]) != ATT_HOME_OPEN; i++)
        if (node == 0)
            world_run(w, 1, 1);
        else
            world_round(w);
    assert_int_equal(home_of(&w->nodes[node]), ATT_HOME_OPEN);
}

/* Tuning ends while a list is voted on: the word is decided, so no rank waits until it gives up. */
static void what_is_voted_on_ends_with_its_task(void **state)
{
    (void)state;
    static const uint32_t node_of[] = {0, 0, 1, 1};
    world_t *w = world_create(2);
    world_group(w, 0x123, 4, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    step_until_open(w, 0);
    step_until_open(w, 1);
    att_task_refuse(w->nodes[0].task, ATT_TASK_REFUSED, "a test says so");
    world_round(w);
    assert_int_equal(home_of(&w->nodes[0]), ATT_HOME_ABORTED);
    assert_int_equal(home_of(&w->nodes[1]), ATT_HOME_ABORTED);
    world_run(w, 100, 1);
    assert_int_equal(w->mismatches, 0);
    world_destroy(w);
}

/* A communicator was destroyed, and the agent has not looked at the groups yet. */
static void a_group_that_is_gone_is_asked_once(void **state)
{
    (void)state;
    static const uint32_t node_of[] = {0, 0};
    world_t *w = world_create(1);
    world_group(w, 0x124, 2, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    att_task_report_t report;
    do {
        world_run(w, 1, 1);
        att_task_report(w->nodes[0].task, &report);
    } while (report.switches == 0);
    for (uint32_t r = 0; r < 2; r++)
        att_segment_retire_member(w->nodes[0].memory, w->ranks[r].member);
    uint64_t before = report.aborts;
    world_run(w, 100, 1);
    att_task_report(w->nodes[0].task, &report);
    assert_int_equal(report.aborts, before + 1);
    assert_int_equal(report.state, ATT_TASK_ENDED);
    world_destroy(w);
}

/* The job stops to call a task that has the turn for its baseline: others get it, until the job
 * calls it again. */
static void a_turn_without_calls_goes_on(void **state)
{
    (void)state;
    static const uint32_t node_of[] = {0, 0, 1, 1};
    uint32_t granted = 0, waiting;
    world_t *w = world_create(2);
    world_group(w, 0xdef, 4, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    for (int i = 0; i < 100 && granted == 0; i++) {
        world_run(w, 1, 1);
        att_turn_counts(w->nodes[0].keeper, &granted, &waiting);
    }
    assert_int_equal(granted, 1);
    assert_int_equal(w->trials, 0);
    uint64_t begin_ns = att_clock_ns();
    while (granted > 0 && att_clock_ns() - begin_ns < 60000000000u) {
        world_round(w);
        att_clock_sleep_ns(5000000);
        att_turn_counts(w->nodes[0].keeper, &granted, &waiting);
    }
    assert_int_equal(granted, 0);
    world_run(w, 200, 1);
    assert_true(w->trials > 0);
    assert_int_equal(w->mismatches, 0);
    world_destroy(w);
}

/* NCCL cannot time the leader's calls any more, in the middle of a search or before it: tuning ends
 * with the reason, and ranks go on with the same settings. */
static void without_stamps(uint32_t why, uint64_t calls, uint32_t from, const char *reason)
{
    static const uint32_t node_of[] = {0, 0, 1, 1};
    world_t *w = world_create(2);
    world_group(w, 0xabc, 4, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    world_run(w, calls, 4);
    for (uint32_t n = from; n < 2; n++)
        atomic_store(&w->nodes[n].memory->processes[w->nodes[n].process].unstamped, why);
    for (int i = 0; i < 100; i++) { /* facts are told now and then: no search ends before */
        world_round(w);
        att_clock_sleep_ns(5000000);
    }
    world_run(w, 400, 4);
    att_task_report_t report;
    att_task_report(w->nodes[0].task, &report);
    assert_int_equal(report.state, ATT_TASK_REFUSED);
    assert_non_null(strstr(report.reason, reason));
    assert_int_equal(w->mismatches, 0);
    uint32_t trials = w->trials;
    world_run(w, 500, 4);
    assert_int_equal(w->trials, trials);
    assert_false(att_task_wants_timing(w->nodes[0].task));
    world_destroy(w);
}

static void what_is_timed_no_more_is_left_alone(void **state)
{
    (void)state;
    without_stamps(ATT_UNSTAMPED_UNTOLD, 1, 0, "--no-graphs");
    without_stamps(ATT_UNSTAMPED_ROOM, 1, 1, "/dev/shm"); /* only the node that does not lead */
    without_stamps(ATT_UNSTAMPED_GRAPH, 150, 0, "CUDA graphs");
    without_stamps(ATT_UNSTAMPED_GATHERS, 150, 1, "NCCL_ALLGATHERV_ENABLE=0");
}

/* What a guard sees on its way is no news, and readers of tasks.json refuse gains that agree. */
static void only_who_has_settled_disagrees(void **state)
{
    (void)state;
    att_optimizer_status_t status = {
        .phase = ATT_PHASE_SETTLED, .collective_gain = -0.1, .step_gain = 0.1};
    assert_true(att_task_disagrees(&status));
    status.phase = ATT_PHASE_GUARD;
    assert_false(att_task_disagrees(&status));
    status.phase = ATT_PHASE_SETTLED;
    status.kept_default = 1;
    assert_false(att_task_disagrees(&status));
    status.kept_default = 0;
    status.step_gain = 0.01;
    assert_false(att_task_disagrees(&status));
}

/* A group of as many tasks as a segment holds: a message must not cost a walk over all of them. */
static void a_group_of_many_tasks(void **state)
{
    (void)state;
    enum { ROUNDS = 1500 };
    static const uint32_t node_of[2] = {0, 1};
    world_t *w = world_create(2);
    world_group(w, 0xabc, 2, node_of);
    world_call_task(w, 4096);
    world_meet(w);
    att_message_t m = {.type = ATT_MESSAGE_VOTE, .group = {.hash = 0xabc, .ranks = 2}};
    clock_t began = clock(); /* of the processor: others may have it meanwhile */
    for (uint32_t i = 0; i < ROUNDS * ATT_TASKS; i++) {
        m.task.bytes = i % ATT_TASKS;
        att_span_message(w->nodes[0].span, 1, &m);
    }
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_layouts),
        cmocka_unit_test(many_groups_take_turns),
        cmocka_unit_test(a_group_of_many_tasks),
        cmocka_unit_test(a_place_that_cannot_be_is_not_taken),
        cmocka_unit_test(early_records_are_counted),
        cmocka_unit_test(an_end_reaches_everybody),
        cmocka_unit_test(an_ended_group_keeps_no_window),
        cmocka_unit_test(a_twin_ends_tuning),
        cmocka_unit_test(disagreement_is_named),
        cmocka_unit_test(what_is_voted_on_ends_with_its_task),
        cmocka_unit_test(a_group_that_is_gone_is_asked_once),
        cmocka_unit_test(a_turn_without_calls_goes_on),
        cmocka_unit_test(what_is_timed_no_more_is_left_alone),
        cmocka_unit_test(only_who_has_settled_disagrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
