/* The optimizer, driven by a synthetic job with noise, loss and a sidecar that aborts. */
#include "optimizer_fixture.h"

#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void a_winner_is_kept(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0o+4/0o+16/0o");
    job_t job = job_of(&config);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_BASELINE);
    assert_true(att_optimizer_wants_timing(job.optimizer));
    assert_int_equal(job_run(&job, 2000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status = status_of(&job);
    assert_int_equal(status.incumbent.channels, 8);
    assert_int_equal(job.in_force.channels, 8);
    assert_false(status.kept_default);
    assert_reason(&job, "wins by 2");
    assert_in_range((uint64_t)status.baseline_us, 970, 1030);
    assert_in_range((uint64_t)status.tuned_us, 770, 830);
    assert_true(status.gain_lower > 0 && status.gain_lower < status.gain_median);
    assert_int_equal(status.trials, 3);
    assert_int_equal(status.calls, job.trial_calls);
    /* The log: baseline, three trials, both sides of the guard; of the others none is near. */
    assert_int_equal(line_of(ATT_PHASE_BASELINE, 0)->result.sample_count, 8);
    assert_int_equal(line_of(ATT_PHASE_SEARCH, 8)->result.sample_count, 5);
    assert_in_range((uint64_t)line_of(ATT_PHASE_SEARCH, 8)->result.baseline_median_us, 970, 1030);
    assert_int_equal(line_of(ATT_PHASE_SEARCH, 4)->result.sample_count, 2);
    assert_int_equal(line_of(ATT_PHASE_GUARD, 8)->result.sample_count,
                     line_of(ATT_PHASE_GUARD, 0)->result.sample_count);
    for (int i = 0; i < 100; i++)
        job_call(&job);
    assert_false(att_optimizer_wants_timing(job.optimizer));
    end(&job);
}

/* 8 channels are 25 % faster alone; what is computed meanwhile counts too. */
static void a_winner_that_makes_the_step_longer_is_not_kept(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0o");
    job_t job = job_of(&config);
    job.stepped = true;
    job.compute_us = 4000;
    job.harm = 0.1; /* 200 us gained, 400 lost */
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status = status_of(&job);
    assert_true(status.kept_default && status.harms);
    assert_true(att_setting_is_keep(status.incumbent));
    assert_reason(&job, "ch=8 is 2");
    assert_reason(&job, " faster alone, its step ");
    assert_true(status.collective_gain > 0.2 && status.step_gain < -0.02);
    assert_float_equal(status.tuned_us, status.baseline_us, 0);
    end(&job);

    job = job_of(&config);
    job.stepped = true;
    job.compute_us = 4000;
    job.harm = 0.01; /* 200 us gained, 40 lost */
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    status = status_of(&job);
    assert_false(status.kept_default || status.harms);
    assert_true(status.collective_gain > 0.2 && status.step_gain > 0.01);
    end(&job);
}

/* The same where the harm of sixteen calls comes after the last of them. */
static void harm_that_comes_once_a_pattern_is_seen(void **state)
{
    (void)state;
    const uint32_t buckets[] = {2, 3, 4, 5, 8, 13, 16};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        att_optimizer_config_t config = config_of("script:play=8/0o");
        job_t job = job_of(&config);
        job.stepped = true;
        job.buckets = buckets[i];
        job.compute_us = 4000;
        job.harm = 0.1;
        assert_int_equal(job_run(&job, 10000), ATT_PHASE_SETTLED);
        att_optimizer_status_t status = status_of(&job);
        assert_true(status.kept_default && status.harms);
        end(&job);
        job = job_of(&config);
        job.stepped = true;
        job.buckets = buckets[i];
        job.compute_us = 4000;
        assert_int_equal(job_run(&job, 10000), ATT_PHASE_SETTLED);
        assert_false(status_of(&job).kept_default);
        end(&job);
    }
}

/* A search that follows, and what ends it without a guard, know nothing of the guard before. */
static void what_a_guard_saw_does_not_outlive_its_search(void **state)
{
    (void)state;
    for (int harmful = 0; harmful < 2; harmful++) {
        att_optimizer_config_t config = config_of("script:play=8/0o");
        job_t job = job_of(&config);
        job.stepped = true;
        job.compute_us = 4000;
        job.harm = harmful ? 0.1 : 0.01;
        assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
        assert_int_equal(status_of(&job).harms, harmful);
        assert_true(status_of(&job).collective_gain > 0.2);
        att_optimizer_restart(job.optimizer, "the test says so");
        for (int withdrawn = 0; withdrawn < 2; withdrawn++) {
            att_optimizer_status_t status = status_of(&job);
            assert_false(status.harms);
            assert_float_equal(status.collective_gain, 0, 0);
            assert_float_equal(status.step_gain, 0, 0);
            assert_float_equal(status.gain_median, 0, 0);
            assert_float_equal(status.gain_lower, 0, 0);
            if (withdrawn)
                break;
            assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
            att_optimizer_withdraw(job.optimizer, "its channels are too many");
        }
        end(&job);
    }
}

static void a_sequential_search_wastes_no_calls(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+4/0+16/0");
    job_t job = job_of(&config);
    job_run(&job, 2000);
    /* Full trial 3 + 4, two clearly worse ones 3 each, one guard list of 14 blocks of 5. */
    assert_int_equal(status_of(&job).calls, 7 + 3 + 3 + 70);
    end(&job);
}

/* A task that is called once an iteration must not pay a vote a trial. */
static void trials_are_committed_ahead_in_batches(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=30");
    job_t job = job_of(&config);
    job.delay = 4; /* calls that a vote takes */
    uint64_t searched_from = 0;
    uint32_t plans_before = 0;
    while (status_of(&job).phase <= ATT_PHASE_SEARCH) {
        if (status_of(&job).phase == ATT_PHASE_BASELINE) {
            searched_from = job.call;
            plans_before = job.plans;
        }
        job_call(&job);
        assert_true(job.call < 2000);
    }
    uint32_t plans = job.plans - plans_before;
    assert_int_equal(status_of(&job).trials, 30);
    /* 15 entries a list, of which one in five lists refreshes the incumbent. */
    assert_in_range(plans, 2, 4);
    /* Between the lists no more than the votes: nearly all calls of the search are trials. */
    uint64_t calls = job.call - searched_from;
    assert_true(calls - job.trial_calls <= (uint64_t)(plans + 1) * (job.delay + 4));
    end(&job);
}

static void a_strategy_says_how_many_samples(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint32_t samples;
    } wishes[] = {{"script:play=8/0+11/0,want=1", 1},
                  {"script:play=8/0+11/0,want=2", 2},
                  {"script:play=8/0+11/0,want=12", 12},
                  {"script:play=8/0+11/0,want=1000", ATT_STRATEGY_SAMPLES}};
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        att_optimizer_config_t config = config_of(wishes[i].spec);
        job_t job = job_of(&config);
        job_run(&job, 2000);
        assert_int_equal(line_of(ATT_PHASE_SEARCH, 8)->result.sample_count, wishes[i].samples);
        assert_int_equal(line_of(ATT_PHASE_SEARCH, 11)->result.sample_count, 5); /* --samples */
        end(&job);
    }
}

static void equal_settings_are_not_kept(void **state)
{
    (void)state;
    int kept = 0;
    for (int seed = 0; seed < 40; seed++) {
        att_optimizer_config_t config = config_of("script:play=1/0+2/0+3/0,batch=1");
        config.seed = (uint64_t)seed;
        job_t job = job_of(&config);
        assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
        att_optimizer_status_t status = status_of(&job);
        kept += status.kept_default;
        if (status.kept_default) {
            assert_true(att_setting_is_keep(status.incumbent));
            assert_true(status.tuned_us == status.baseline_us);
        }
        end(&job);
    }
    assert_in_range(kept, 38, 40); /* the guard errs in at most 5 % */
}

static void slower_settings_are_not_kept(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=4/0+16/0");
    job_t job = job_of(&config);
    assert_int_equal(job_run(&job, 2000), ATT_PHASE_SETTLED);
    assert_true(status_of(&job).kept_default);
    assert_reason(&job, "the fastest of 2 settings tried is ");
    end(&job);
}

static void a_slow_setting_is_cut(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=64/0s+8/0o");
    job_t job = job_of(&config);
    assert_int_equal(job_run(&job, 2000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    assert_int_equal(line_of(ATT_PHASE_SEARCH, 64)->calls, 3);
    end(&job);
    config.max_slowdown = 0; /* no limit */
    config.strategy = "script:play=64/0o+8/0o";
    job = job_of(&config);
    assert_int_equal(job_run(&job, 2000), ATT_PHASE_SETTLED);
    end(&job);
}

static void loss_is_made_up_for(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+4/0+16/0+7/0,batch=1");
    job_t job = job_of(&config);
    job.unusable = 0.2;
    job.lost = 0.1;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    end(&job);
}

static void total_loss_keeps_the_default(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0l+4/0l");
    job_t job = job_of(&config);
    while (status_of(&job).phase == ATT_PHASE_BASELINE)
        job_call(&job);
    job.unusable = 1;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_reason(&job, "none of 2 settings tried gave usable samples");
    assert_int_equal(line_of(ATT_PHASE_SEARCH, 8)->calls, 6); /* asked for once more */
    end(&job);
}

static void loss_in_the_guard_keeps_the_default(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0");
    job_t job = job_of(&config);
    while (status_of(&job).phase != ATT_PHASE_GUARD)
        job_call(&job);
    job.lost = 1;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_true(status_of(&job).kept_default);
    assert_reason(&job, "too few usable samples");
    end(&job);
}

static void the_final_picks_the_best_of_the_near_ones(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=9/0+10/0+11/0+12/0+13/0,batch=1");
    job_t job = job_of(&config);
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 11);
    /* Three blocks of five at least, everybody alike until somebody is out. */
    assert_true(line_of(ATT_PHASE_FINAL, 11)->result.sample_count >= 15);
    assert_true(line_of(ATT_PHASE_FINAL, 0)->result.sample_count >= 15);
    end(&job);
}

static void no_list_is_given_out_beyond_the_budget(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+11/0");
    config.max_cost = 0.5;
    job_t job = job_of(&config);
    while (status_of(&job).phase != ATT_PHASE_FINAL)
        job_call(&job);
    att_plan_t plan;
    assert_false(job.waiting);
    assert_int_equal(att_optimizer_plan(job.optimizer, 0, &plan), 0);
    assert_int_equal(att_optimizer_plan(job.optimizer, job.run_us, &plan), 1);
    assert_int_equal(plan.count, 12); /* three runners, four rounds */
    end(&job);
}

static void aborted_plans_are_given_again(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0o+4/0o+16/0o");
    job_t job = job_of(&config);
    job.abort_every = 2;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    assert_int_equal(status_of(&job).trials, 3);
    assert_true(job.aborts >= 3);
    assert_int_equal(status_of(&job).calls, job.trial_calls);
    end(&job);
}

static void an_expired_lease_is_a_timeout(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0t+9/0o");
    job_t job = job_of(&config);
    while (!job.playing)
        job_call(&job);
    job_call(&job); /* one call of the trial, then the job pauses */
    att_optimizer_expire(job.optimizer);
    att_optimizer_expire(job.optimizer); /* once is enough */
    att_plan_t plan;
    assert_int_equal(att_optimizer_plan(job.optimizer, job.run_us, &plan), 0);
    assert_int_equal(line_of(ATT_PHASE_SEARCH, 8)->result.outcome, ATT_OUTCOME_TIMEOUT);
    /* The job goes on: the rest of the list plays, then the search does. */
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 9);
    end(&job);
}

static void expiry_in_the_guard_ends_well(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0");
    job_t job = job_of(&config);
    while (status_of(&job).phase != ATT_PHASE_GUARD)
        job_call(&job);
    for (int i = 0; i < 20 && status_of(&job).phase == ATT_PHASE_GUARD; i++) {
        while (!job.playing)
            job_call(&job);
        att_optimizer_expire(job.optimizer);
        for (int k = 0; k < 60; k++)
            job_call(&job);
    }
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    end(&job);
}

static uint64_t digest(void)
{
    uint64_t hash = 1469598103934665603u;
    for (uint32_t i = 0; i < lines.count; i++) {
        uint64_t bits;
        memcpy(&bits, &lines.at[i].result.median_us, sizeof bits);
        uint64_t words[] = {lines.at[i].setting.channels, lines.at[i].setting.chunk_bytes,
                            (uint64_t)lines.at[i].setting.protocol, lines.at[i].first_call, bits};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            hash = (hash ^ words[k]) * 1099511628211u;
    }
    return hash;
}

static void the_same_seed_gives_the_same_search(void **state)
{
    (void)state;
    uint64_t digests[3];
    for (int i = 0; i < 3; i++) {
        att_optimizer_config_t config = config_of("coordinate_descent:budget=40");
        config.seed = i < 2 ? 5 : 6;
        job_t job = job_of(&config);
        assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
        digests[i] = digest();
        end(&job);
    }
    assert_true(digests[0] == digests[1]);
    assert_true(digests[0] != digests[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_winner_is_kept),
        cmocka_unit_test(a_winner_that_makes_the_step_longer_is_not_kept),
        cmocka_unit_test(harm_that_comes_once_a_pattern_is_seen),
        cmocka_unit_test(what_a_guard_saw_does_not_outlive_its_search),
        cmocka_unit_test(a_sequential_search_wastes_no_calls),
        cmocka_unit_test(trials_are_committed_ahead_in_batches),
        cmocka_unit_test(a_strategy_says_how_many_samples),
        cmocka_unit_test(equal_settings_are_not_kept),
        cmocka_unit_test(slower_settings_are_not_kept),
        cmocka_unit_test(a_slow_setting_is_cut),
        cmocka_unit_test(loss_is_made_up_for),
        cmocka_unit_test(total_loss_keeps_the_default),
        cmocka_unit_test(loss_in_the_guard_keeps_the_default),
        cmocka_unit_test(the_final_picks_the_best_of_the_near_ones),
        cmocka_unit_test(no_list_is_given_out_beyond_the_budget),
        cmocka_unit_test(aborted_plans_are_given_again),
        cmocka_unit_test(an_expired_lease_is_a_timeout),
        cmocka_unit_test(expiry_in_the_guard_ends_well),
        cmocka_unit_test(the_same_seed_gives_the_same_search),
    };
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
