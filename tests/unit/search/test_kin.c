/* The optimizer of a task whose kind has been searched already. */
#include "optimizer_fixture.h"

#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const att_setting_t eight = {.algorithm = ATT_ALGORITHM_RING,
                                    .protocol = ATT_PROTOCOL_SIMPLE,
                                    .transport = -1,
                                    .channels = 8};

static uint32_t lines_in(att_phase_t phase)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lines.count; i++)
        count += lines.at[i].phase == phase;
    return count;
}

static job_t awaiting_job(void)
{
    att_optimizer_config_t config = config_of("script:play=8/0+4/0+11/0");
    job_t job = job_of(&config);
    att_optimizer_await(job.optimizer, true);
    job_run(&job, 200);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_BASELINE);
    assert_int_equal(job.trial_calls, 0); /* it awaits its kin */
    assert_false(att_optimizer_wants_timing(job.optimizer));
    return job;
}

static void a_winner_is_taken_over_by_the_guard_alone(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    att_optimizer_follow(job.optimizer, eight, 1000);
    assert_int_equal(job_run(&job, 1000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status = status_of(&job);
    assert_true(att_setting_equal(status.best, eight));
    assert_int_equal(status.trials, 0);
    assert_int_equal(status.followed, 1);
    assert_reason(&job, "wins by 2");
    assert_reason(&job, "found by a task of the same kind");
    assert_int_equal(lines_in(ATT_PHASE_SEARCH), 0);
    assert_int_equal(lines_in(ATT_PHASE_GUARD), 2);
    end(&job);
}

static void nccls_choice_is_taken_over_without_a_trial(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    att_optimizer_follow(job.optimizer, ATT_SETTING_KEEP, 1000);
    assert_int_equal(job_run(&job, 1000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status = status_of(&job);
    assert_int_equal(status.kept_default, 1);
    assert_int_equal(status.followed, 1);
    assert_int_equal(job.trial_calls, 0);
    end(&job);
}

/* It is a search of its own that must decide: `why` tells it apart. */
static void assert_searched(job_t *job)
{
    assert_int_equal(job_run(job, 2000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status = status_of(job);
    assert_int_equal(status.followed, 0);
    assert_int_equal(status.trials, 3);
    assert_int_equal(status.best.channels, 11);
    end(job);
}

static double eight_is_slow(void *context, att_setting_t setting)
{
    (void)context;
    return setting.channels == 8 ? 1100 : from_table(NULL, setting);
}

static void a_winner_that_does_not_win_here_leads_to_a_search(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    job.duration = eight_is_slow;
    att_optimizer_follow(job.optimizer, eight, 1000);
    assert_searched(&job);
}

static void a_winner_that_harms_here_leads_to_a_search(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    job.stepped = true;
    job.compute_us = 4000;
    job.harm = 0.1;
    att_optimizer_follow(job.optimizer, eight, 1000);
    while (status_of(&job).phase <= ATT_PHASE_BASELINE || status_of(&job).phase == ATT_PHASE_GUARD)
        job_call(&job);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_SEARCH);
    assert_false(status_of(&job).harms);
    assert_float_equal(status_of(&job).step_gain, 0, 0);
    end(&job);
}

static void another_baseline_leads_to_a_search(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    att_optimizer_follow(job.optimizer, eight, 1200);
    assert_searched(&job);
    job = awaiting_job();
    att_optimizer_follow(job.optimizer, ATT_SETTING_KEEP, 800);
    assert_searched(&job);
}

static void an_illegal_winner_leads_to_a_search(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    att_setting_t beyond = eight;
    beyond.channels = 1000;
    att_optimizer_follow(job.optimizer, beyond, 1000);
    assert_searched(&job);
    job = awaiting_job();
    att_setting_t bad = eight;
    att_optimizer_quarantine(job.optimizer, bad);
    att_optimizer_follow(job.optimizer, bad, 1000);
    assert_int_equal(job_run(&job, 2000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).best.channels, 11);
    end(&job);
}

/* Shares of a step say nothing of one another, and a search would see less than the guard did. */
static void where_the_step_is_to_be_short_a_winner_is_tried_and_nothing_is_searched(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    job.load = 4; /* NCCL's choice takes 4,000 us here */
    att_optimizer_follow(job.optimizer, eight, 0);
    assert_int_equal(job_run(&job, 1000), ATT_PHASE_SETTLED);
    assert_true(att_setting_equal(status_of(&job).best, eight));
    assert_int_equal(status_of(&job).followed, 1);
    end(&job);
    job = awaiting_job();
    job.duration = eight_is_slow;
    att_optimizer_follow(job.optimizer, eight, 0);
    assert_int_equal(job_run(&job, 1000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).kept_default, 1);
    assert_int_equal(status_of(&job).trials, 0);
    end(&job);
}

/* What NCCL's choice took when it began to wait is no baseline after a long wait. */
static void the_baseline_is_of_the_time_after_the_wait(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    job.load = 2;
    att_optimizer_await(job.optimizer, false);
    while (status_of(&job).phase < ATT_PHASE_SETTLED)
        job_call(&job);
    for (uint32_t i = 0; i < lines.count; i++)
        if (lines.at[i].phase == ATT_PHASE_SEARCH)
            assert_float_equal(lines.at[i].result.baseline_median_us, 2000, 150);
    end(&job);
    job = awaiting_job();
    job.load = 2;
    att_optimizer_follow(job.optimizer, eight, 2000);
    assert_int_equal(job_run(&job, 1000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).followed, 1);
    end(&job);
}

static void one_that_comes_to_no_end_is_given_up(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    att_optimizer_await(job.optimizer, false);
    assert_searched(&job);
}

/* Aborted plans and lost samples on the way change nothing of it. */
static void aborts_and_losses_do_not_matter(void **state)
{
    (void)state;
    job_t job = awaiting_job();
    job.abort_every = 2;
    job.lost = 0.1;
    att_optimizer_follow(job.optimizer, eight, 1000);
    assert_int_equal(job_run(&job, 3000), ATT_PHASE_SETTLED);
    assert_true(job.aborts > 0);
    assert_true(att_setting_equal(status_of(&job).best, eight));
    assert_int_equal(status_of(&job).trials, 0);
    end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_winner_is_taken_over_by_the_guard_alone),
        cmocka_unit_test(nccls_choice_is_taken_over_without_a_trial),
        cmocka_unit_test(a_winner_that_does_not_win_here_leads_to_a_search),
        cmocka_unit_test(a_winner_that_harms_here_leads_to_a_search),
        cmocka_unit_test(another_baseline_leads_to_a_search),
        cmocka_unit_test(an_illegal_winner_leads_to_a_search),
        cmocka_unit_test(where_the_step_is_to_be_short_a_winner_is_tried_and_nothing_is_searched),
        cmocka_unit_test(the_baseline_is_of_the_time_after_the_wait),
        cmocka_unit_test(one_that_comes_to_no_end_is_given_up),
        cmocka_unit_test(aborts_and_losses_do_not_matter),
    };
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
