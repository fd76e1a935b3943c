#include "surfaces.h"

#include "sim/row.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"

static struct att_strategy_host *host;
static struct att_surface *surface;
static struct att_sim_task *task;

static att_sim_contest_config_t config_of(uint32_t workers, uint32_t seeds)
{
    att_sim_contest_config_t config = {.task = task,
                                       .label = "the surface",
                                       .host = host,
                                       .strategy_count = 2,
                                       .strategies = {ATT_SIM_REFERENCE, "random:trials=20"},
                                       .seeds = seeds,
                                       .first_seed = 1,
                                       .workers = workers,
                                       .limit_s = 60};
    config.run = quiet_run(NULL, 0);
    config.run.noise = 0.05;
    return config;
}

static void run(const att_sim_contest_config_t *config, att_sim_contest_t *contest)
{
    att_error_t error = {""};
    if (att_sim_contest_run(config, contest, &error) != ATT_OK)
        fail_msg("the contest failed: %s", error.text);
}

static void outcome_does_not_depend_on_the_workers(void **state)
{
    (void)state;
    att_sim_contest_t one, three;
    att_sim_contest_config_t config = config_of(1, 6);
    run(&config, &one);
    config.workers = 3;
    run(&config, &three);
    for (uint32_t i = 0; i < 12; i++)
        one.outcomes[i].ask_ns = three.outcomes[i].ask_ns = 0;
    assert_int_equal(one.descent_stop, three.descent_stop);
    assert_memory_equal(one.outcomes, three.outcomes, 12 * sizeof one.outcomes[0]);
    att_sim_contest_free(&one);
    att_sim_contest_free(&three);
}

static void budget_is_three_descent_stops(void **state)
{
    (void)state;
    att_sim_contest_t contest;
    att_sim_contest_config_t config = config_of(2, 5);
    run(&config, &contest);
    assert_true(contest.descent_stop > 13);
    assert_int_equal(contest.budget, 3 * contest.descent_stop);
    assert_true(contest.stop_checkpoint < contest.checkpoint_count);
    assert_int_equal(contest.checkpoints[contest.stop_checkpoint], contest.descent_stop);
    assert_int_equal(contest.checkpoints[contest.checkpoint_count - 1], contest.budget);
    for (uint32_t i = 1; i < contest.checkpoint_count; i++)
        assert_true(contest.checkpoints[i] > contest.checkpoints[i - 1]);
    /* Half of the descents, by calls, have stopped there, and stay where they are. */
    att_sim_row_t row = {0};
    att_sim_row_fill(&contest, 0, task, 0, &row);
    assert_near(row.calls_at_stop, (double)contest.descent_stop, 0);
    assert_true(row.gap_final >= -1e-9 && row.gap_worst >= row.gap_p99 &&
                row.gap_p99 >= row.gap_p90 && row.gap_p90 >= row.gap_median);
    att_sim_contest_free(&contest);

    static const uint64_t budgets[] = {1, 2, 40, 127, 128, 129, 5000, 100000};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        config = config_of(2, 1);
        config.strategy_count = 1;
        config.budget = budgets[i];
        run(&config, &contest);
        assert_int_equal(contest.budget, budgets[i]);
        assert_int_equal(contest.checkpoints[contest.checkpoint_count - 1], budgets[i]);
        assert_true(contest.checkpoint_count <= ATT_SIM_CHECKPOINTS);
        assert_true((contest.stop_checkpoint < contest.checkpoint_count) ==
                    (contest.descent_stop <= budgets[i]));
        att_sim_contest_free(&contest);
    }
}

/* Hand-made outcomes: what the numbers of a row mean. */
static void rows_and_duels_by_hand(void **state)
{
    (void)state;
    enum { SEEDS = 4 };
    static const double gaps[2][SEEDS] = {{0.0, 0.21, 0.0, 0.0}, {0.1, 0.1, 0.1, 0.1}};
    att_sim_outcome_t outcomes[2 * SEEDS];
    memset(outcomes, 0, sizeof outcomes);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < SEEDS; i++) {
            att_sim_outcome_t *o = &outcomes[s * SEEDS + i];
            *o = (att_sim_outcome_t){.gap = gaps[s][i],
                                     .calls = 100,
                                     .slower = 25,
                                     .lost = 10.0 * (i + 1),
                                     .setting = ATT_SETTING_KEEP,
                                     .collective_us = 500,
                                     .step_us = 500};
            if (gaps[s][i] < 0.02)
                o->reached[2] = 20;
        }
    att_sim_contest_t contest = {.budget = 100,
                                 .seeds = SEEDS,
                                 .strategy_count = 2,
                                 .checkpoint_count = 1,
                                 .checkpoints = {100},
                                 .stop_checkpoint = 1,
                                 .outcomes = outcomes};
    att_sim_row_t row = {0};
    att_sim_row_fill(&contest, 0, task, 0, &row);
    assert_near(row.gap_final, pow(1.21, 0.25) - 1, 1e-12);
    assert_near(row.gap_worst, 0.21, 0);
    assert_near(row.calls_to[2], 20, 0);
    assert_near(row.calls_to_mean[2], (3 * 20 + 100) / 4.0, 1e-12); /* never: the budget */
    assert_near(row.share_to[2], 0.75, 0);
    assert_near(row.regret, 25, 1e-12);
    assert_near(row.regret_share, 0.25, 1e-12);
    assert_near(row.slower_share, 0.25, 1e-12);
    assert_true(isnan(row.gap_at_descent_stop)); /* the budget ended before */
    assert_true(isnan(row.step_speedup));        /* there is no compute */
    att_sim_row_t other = {0};
    att_sim_row_fill(&contest, 1, task, 0, &other);
    assert_true(isinf(other.calls_to[2]));

    att_sim_duel_t duel = {.a = "a", .b = "b"};
    assert_int_equal(att_sim_duel(&contest, 0, 1, ATT_SIM_GAP_FINAL, &duel), 0);
    assert_int_equal(duel.test.wins, 3);
    assert_int_equal(duel.test.losses, 1);
    assert_near(duel.median_a, 0, 0);
    assert_near(duel.median_b, 0.1, 0);
    assert_int_equal(att_sim_duel(&contest, 0, 1, ATT_SIM_REGRET, &duel), 0);
    assert_near(duel.test.p, 1, 0);
}

static double falling(int channels)
{
    return 1000 + 1600.0 / channels;
}

static int begin(void **state)
{
    (void)state;
    att_sim_task_config_t config = {.collective = -1};
    host = plugin_host();
    surface = surface_of_channels(falling, 32, 4);
    return att_sim_task_create(surface, &config, &task, NULL);
}

static int end(void **state)
{
    (void)state;
    att_sim_task_destroy(task);
    att_surface_close(surface);
    att_strategy_host_destroy(host);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outcome_does_not_depend_on_the_workers),
                                       cmocka_unit_test(budget_is_three_descent_stops),
                                       cmocka_unit_test(rows_and_duels_by_hand)};
    return cmocka_run_group_tests(tests, begin, end);
}
