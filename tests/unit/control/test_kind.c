/* Tasks of one kind: who searches, who awaits whom, and for how long. */
#include "control/kind.h"

#include "base/config.h"
#include "control/task_inside.h"
#include "search/space.h"
#include "search/strategy_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND 1000000000ull

static att_segment_memory_t *memory;
static struct att_strategy_host *host;
static struct att_space_owned *space;
static att_config_t config;
static att_task_shared_t shared;
static uint32_t lane;

static const att_setting_t eight = {.algorithm = ATT_ALGORITHM_RING,
                                    .protocol = ATT_PROTOCOL_SIMPLE,
                                    .transport = ATT_TRANSPORT_KEEP,
                                    .channels = 8};

static int set_up(void **state)
{
    (void)state;
    att_space_facts_t facts = {.collective = ATT_COLLECTIVE_ALL_REDUCE,
                               .bytes = 80u << 20,
                               .ranks = 8,
                               .nodes = 1,
                               .legal_pairs = ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE),
                               .connected_pairs = ~0u,
                               .channels_ceiling = 64,
                               .native = eight};
    memory = calloc(1, sizeof *memory);
    shared.config = &config;
    return memory == NULL || att_space_build(&facts, &space, NULL) != ATT_OK ||
           att_strategy_host_create("", ATT_HOST_INPROCESS, 10, &host, NULL) != ATT_OK ||
           att_node_create(memory, &shared.node) != ATT_OK;
}

static int nobody(void **state)
{
    (void)state;
    shared.tasks = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    att_node_destroy(shared.node);
    att_strategy_host_destroy(host);
    att_space_destroy(space);
    free(memory);
    return 0;
}

/* Its strategy is asked for nothing unless it has a baseline. */
static struct att_task *task_with(const att_optimizer_config_t *search, bool step)
{
    struct att_task *t = aligned_alloc(_Alignof(struct att_task), sizeof *t);
    assert_non_null(t);
    memset(t, 0, sizeof *t);
    t->shared = &shared;
    t->task = &memory->tasks[0];
    t->group = &memory->groups[0];
    t->lanes = &lane;
    t->lane_count = 8;
    att_source_init(&t->source, ATT_REDUCTION_COMMON, step);
    assert_int_equal(
        att_optimizer_create(att_space_view(space), search, host, NULL, NULL, &t->optimizer, NULL),
        ATT_OK);
    att_kind_join(t);
    return t;
}

static struct att_task *task(bool step)
{
    return task_with(
        &(att_optimizer_config_t){.strategy = "random:trials=20", .samples = 5, .discard = 1},
        step);
}

static void begin(struct att_task *t)
{
    t->state = ATT_TASK_TUNING;
    att_kind_begin(t, 0);
}

static struct att_task *settled(att_setting_t setting, bool step)
{
    struct att_task *t = task_with(
        &(att_optimizer_config_t){.samples = 5, .discard = 1, .apply = 1, .applied = setting},
        step);
    begin(t);
    return t;
}

static void end(struct att_task *t)
{
    att_kind_leave(t);
    att_optimizer_destroy(t->optimizer);
    free(t);
}

/* Calls with NCCL's choice; returns whether stamps are of use still. */
static int call(struct att_task *t, int calls)
{
    for (int i = 0; i < calls; i++, t->calls_seen++)
        if (att_optimizer_wants_timing(t->optimizer))
            att_optimizer_sample(t->optimizer, &(att_sample_t){t->calls_seen, 1000, 1, 0});
    return att_optimizer_wants_timing(t->optimizer);
}

static att_phase_t phase_of(const struct att_task *t)
{
    att_optimizer_status_t status;
    att_optimizer_status(t->optimizer, &status);
    return status.phase;
}

static void the_first_one_searches_and_the_others_await_it(void **state)
{
    (void)state;
    struct att_task *a = task(false), *b = task(false), *c = task(false);
    begin(a);
    begin(b);
    begin(c);
    assert_false(att_kind_waits(a, 1));
    assert_true(att_kind_waits(b, 1));
    assert_true(att_kind_waits(c, 1));
    a->withdrawn = 1;
    assert_false(att_kind_waits(b, 2)); /* the next one searches */
    assert_true(att_kind_waits(c, 2));
    assert_ptr_equal(c->awaited, b);
    end(a);
    end(b);
    end(c);
}

/* That a step shows no gain may be its noise. */
static void of_a_step_only_a_winner_is_taken_over(void **state)
{
    (void)state;
    struct att_task *keeps = settled(ATT_SETTING_KEEP, true), *b = task(true), *c = task(true);
    begin(b);
    begin(c);
    assert_false(att_kind_waits(b, 1));
    assert_ptr_equal(c->awaited, b);
    end(b);
    end(c);
    struct att_task *wins = settled(eight, true), *d = task(true);
    begin(d);
    assert_ptr_equal(d->awaited, wins);
    assert_false(att_kind_waits(d, 1));
    call(d, 40);
    assert_int_equal(phase_of(d), ATT_PHASE_GUARD);
    end(keeps);
    end(wins);
    end(d);
}

/* Each one's trials are in the steps of all. */
static void where_steps_are_shared_one_comes_after_the_other(void **state)
{
    (void)state;
    memory->tasks[1].bytes = 1u << 20; /* of another kind */
    memory->tasks[2].group = 7;
    struct att_task *a = task(true), *kin = task(true), *other = task(true), *far = task(true);
    other->task = &memory->tasks[1];
    far->task = &memory->tasks[2];
    memory->tasks[2].bytes = 4u << 20;
    begin(a);
    begin(other);
    begin(kin);
    begin(far);
    assert_ptr_equal(other->awaited, a);
    assert_ptr_equal(kin->awaited, a);
    assert_null(far->awaited); /* another group has another turn */
    struct att_task *wins = settled(eight, true);
    a->withdrawn = 1;
    assert_false(att_kind_waits(other, 1)); /* not alike: it searches */
    call(other, 40);
    assert_int_equal(phase_of(other), ATT_PHASE_SEARCH);
    assert_true(att_kind_waits(kin, 1));
    assert_ptr_equal(kin->awaited, other);
    other->withdrawn = 1;
    assert_false(att_kind_waits(kin, 2)); /* now it takes over what its kin has found */
    call(kin, 40);
    assert_int_equal(phase_of(kin), ATT_PHASE_GUARD);
    end(a);
    end(kin);
    end(other);
    end(far);
    end(wins);
    memory->tasks[1].bytes = memory->tasks[2].bytes = 0;
    memory->tasks[2].group = 0;
}

/* Not one sample of NCCL's choice: that nothing is faster was not seen. */
static void an_end_without_a_measurement_tells_nothing(void **state)
{
    (void)state;
    struct att_task *blind = settled(ATT_SETTING_KEEP, false), *t = task(false);
    begin(t);
    assert_false(att_kind_waits(t, 1));
    call(t, 40);
    assert_int_equal(phase_of(t), ATT_PHASE_SEARCH);
    end(blind);
    end(t);
}

static void one_that_leaves_holds_nobody_up(void **state)
{
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        struct att_task *x = task(false), *y = task(false);
        struct att_task *leaves = newer ? y : x, *waits = newer ? x : y;
        begin(leaves);
        begin(waits);
        assert_ptr_equal(waits->awaited, leaves);
        end(leaves);
        assert_null(waits->awaited);
        assert_false(att_kind_waits(waits, 1));
        call(waits, 40);
        assert_int_equal(phase_of(waits), ATT_PHASE_SEARCH);
        end(waits);
    }
}

/* One whose budget is used up has no stamps and makes no progress, but the job calls it. */
static void one_that_rests_is_awaited(void **state)
{
    (void)state;
    struct att_task *a = task_with(
        &(att_optimizer_config_t){
            .strategy = "random:trials=20", .samples = 5, .discard = 1, .max_cost = 0.01},
        false);
    struct att_task *b = task(false);
    begin(a);
    begin(b);
    call(a, 40);
    assert_int_equal(phase_of(a), ATT_PHASE_SEARCH);
    uint64_t now_ns = 0;
    att_plan_t plan;
    assert_int_equal(att_optimizer_plan(a->optimizer, 0, &plan), 0);
    assert_false(att_optimizer_wants_timing(a->optimizer));
    for (; now_ns < 60 * SECOND; now_ns += SECOND / 10) {
        call(b, 1);
        att_pulse_note(&a->pulse, ++a->calls_seen, now_ns);
        assert_false(att_kind_waits(a, now_ns));
        assert_true(att_kind_waits(b, now_ns));
    }
    while (att_optimizer_plan(a->optimizer, 1e9, &plan) == 0)
        ;
    assert_true(att_optimizer_wants_timing(a->optimizer));
    assert_false(att_kind_waits(a, now_ns)); /* its list is not in force yet */
    assert_true(att_kind_waits(b, now_ns));
    att_optimizer_aborted(a->optimizer, plan.id);
    assert_int_equal(att_optimizer_plan(a->optimizer, 0, &plan), 0);
    for (uint64_t until_ns = now_ns + 30 * SECOND; now_ns < until_ns; now_ns += SECOND / 10) {
        call(b, 1); /* and a is not called any more */
        assert_false(att_kind_waits(a, now_ns));
        att_kind_waits(b, now_ns);
    }
    assert_false(att_kind_waits(b, now_ns));
    end(a);
    end(b);
}

static void with_search_each_nobody_waits(void **state)
{
    (void)state;
    config.search_each = 1;
    struct att_task *a = task(false), *b = task(false);
    begin(a);
    begin(b);
    assert_false(att_kind_waits(a, 1));
    assert_false(att_kind_waits(b, 1));
    config.search_each = 0;
    end(a);
    end(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_one_searches_and_the_others_await_it, nobody),
        cmocka_unit_test_setup(of_a_step_only_a_winner_is_taken_over, nobody),
        cmocka_unit_test_setup(where_steps_are_shared_one_comes_after_the_other, nobody),
        cmocka_unit_test_setup(an_end_without_a_measurement_tells_nothing, nobody),
        cmocka_unit_test_setup(one_that_leaves_holds_nobody_up, nobody),
        cmocka_unit_test_setup(one_that_rests_is_awaited, nobody),
        cmocka_unit_test_setup(with_search_each_nobody_waits, nobody),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
