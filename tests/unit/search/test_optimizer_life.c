/* The optimizer over a longer life: budget, drift, failing strategies, applied settings. */
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

static double load_favours(void *context, att_setting_t setting)
{
    /* Under load the best channels move from 8 to 2. */
    const double *load = context;
    double n = setting.channels == 0 ? 24 : setting.channels;
    return 1000 * (*load > 1 ? 1.5 + 0.05 * fabs(n - 2) : 1 + 0.02 * fabs(n - 8));
}

/* No trial pays for another. */
static double nothing_is_faster(void *context, att_setting_t setting)
{
    (void)context;
    return setting.channels == 0 ? 1000 : 1200 + 10 * fabs(setting.channels - 8.0);
}

static void cost_stays_within_the_budget(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=20");
    config.max_cost = 0.01;
    job_t job = job_of(&config);
    job.duration = nothing_is_faster;
    double worst = 0;
    uint64_t calls = 0;
    att_optimizer_status_t status;
    do {
        job_call(&job);
        status = status_of(&job);
        if (status.phase >= ATT_PHASE_SEARCH && status.lost_us / job.run_us > worst)
            worst = status.lost_us / job.run_us;
    } while (status.phase < ATT_PHASE_SETTLED && ++calls < 100000);
    assert_int_equal(status.phase, ATT_PHASE_SETTLED);
    assert_true(status.lost_us > 0);
    assert_true(worst <
                0.03); /* a list cannot be cut short: one may overshoot while run_us is small */
    assert_true(status.lost_us / job.run_us <= 0.0105);
    /* While it waits for its budget it needs no stamps, which cost the job as well. */
    assert_true(job.unstamped * 2 > job.call - job.trial_calls);
    uint64_t bounded = job.call;
    end(&job);
    config.max_cost = 0;
    job = job_of(&config);
    job.duration = nothing_is_faster;
    assert_int_equal(job_run(&job, 100000), ATT_PHASE_SETTLED);
    assert_true(job.call * 3 < bounded);
    end(&job);
}

static double all_alike(void *context, att_setting_t setting)
{
    (void)context;
    (void)setting;
    return 1000;
}

/* Where settings do not differ a search costs nothing, however noisy its samples are. */
static void noise_is_no_cost(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=60");
    config.samples = 1;
    job_t job = job_of(&config);
    job.duration = all_alike;
    job.noise = 0.06;
    assert_int_equal(job_run(&job, 100000), ATT_PHASE_SETTLED);
    assert_true(job.trial_calls > 60);
    assert_true(status_of(&job).lost_us < 0.01 * 1000 * (double)job.trial_calls);
    end(&job);
}

/* Nobody looks at the job while the budget is used up: what it took before is no baseline then. */
static void after_a_rest_the_baseline_is_new(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=40/0+41/0+8/0+42/0");
    config.max_cost = 0.01;
    job_t job = job_of(&config);
    double load = 1;
    job.duration = load_favours;
    job.context = &load;
    for (int i = 0; i < 1000 && job.unstamped == 0; i++)
        job_call(&job);
    assert_true(job.unstamped > 0);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_SEARCH);
    assert_float_equal(lines.at[lines.count - 1].result.baseline_median_us, 1320, 40);
    uint32_t before = lines.count;
    job.load = 3;
    assert_int_equal(job_run(&job, 200000), ATT_PHASE_SETTLED);
    uint32_t seen = 0;
    for (uint32_t i = before; i < lines.count; i++)
        if (lines.at[i].phase == ATT_PHASE_SEARCH) {
            assert_float_equal(lines.at[i].result.baseline_median_us, 3 * 1320, 3 * 40);
            seen++;
        }
    assert_true(seen > 0);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    end(&job);
}

/* Calls until the search is over; what those with another setting than `base_us` takes cost. */
static double true_loss(job_t *job, double base_us)
{
    double lost = 0;
    for (int i = 0; i < 100000 && status_of(job).phase < ATT_PHASE_SETTLED; i++) {
        job_call(job);
        double load = job->load > 0 ? job->load : 1;
        lost += job->duration(job->context, job->in_force) * load - base_us;
    }
    return lost;
}

/* Nobody looked during the rest: a job that became faster then has won nothing by its trials. */
static void after_a_rest_nothing_is_won_over_the_old_baseline(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=20");
    config.max_cost = 0.01;
    job_t job = job_of(&config);
    job.duration = nothing_is_faster;
    job.load = 3;
    for (int i = 0; i < 1000 && job.unstamped == 0; i++)
        job_call(&job);
    assert_true(job.unstamped > 0);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_SEARCH);
    double before_us = status_of(&job).lost_us;
    job.load = 1;
    job.lost = 1; /* stamps may come on as late as with the list */
    while (!job.playing)
        job_call(&job);
    job.lost = 0;
    double lost_us = true_loss(&job, 1000);
    assert_true(lost_us > 0);
    assert_true(status_of(&job).lost_us - before_us > 0.8 * lost_us);
    end(&job);
}

static double faster_below_twenty(void *context, att_setting_t setting)
{
    (void)context;
    return setting.channels == 0 ? 1000 : setting.channels < 20 ? 400 : 1600;
}

/* Many fast trials are no leave for as many slow ones. */
static void a_long_credit_is_cut(void **state)
{
    (void)state;
    char spec[512] = "script:play=2/0";
    for (int n = 3; n < 60; n++)
        snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "+%d/0", n);
    att_optimizer_config_t config = config_of(spec);
    job_t job = job_of(&config);
    job.duration = faster_below_twenty;
    double slow_us = 0;
    while (status_of(&job).phase < ATT_PHASE_FINAL) {
        job_call(&job);
        slow_us += job.in_force.channels >= 20 ? 600 : 0;
    }
    assert_true(slow_us >= 40 * 3 * 600);
    assert_true(status_of(&job).lost_us < slow_us);
    assert_true(status_of(&job).lost_us > slow_us - 1.2 * 16 * 1000);
    end(&job);
}

static double wins_at_first(void *context, att_setting_t setting)
{
    const bool *later = context;
    if (!*later)
        return setting.channels == 0 ? 1000 : setting.channels == 8 ? 500 : 600;
    return setting.channels == 8 ? 1000 : 1300;
}

/* What an earlier search won was of another baseline: it pays for no trial of this one. */
static void a_search_pays_for_itself(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+7/0+9/0+10/0+11/0+12/0+13/0+16/0");
    job_t job = job_of(&config);
    bool later = false;
    job.duration = wins_at_first;
    job.context = &later;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    for (int i = 0; i < 200; i++)
        job_call(&job);
    later = true;
    while (status_of(&job).phase == ATT_PHASE_SETTLED)
        job_call(&job);
    double before_us = status_of(&job).lost_us, lost_us = true_loss(&job, 1000);
    assert_true(lost_us > 8 * 3 * 300);
    assert_true(status_of(&job).lost_us - before_us > 0.8 * lost_us);
    end(&job);
}

static double eight_is_not_known(void *context, att_setting_t setting)
{
    (void)context;
    return setting.channels == 0 ? 1000 : setting.channels == 8 ? NAN : 1500;
}

/* Calls without a duration took none from the job. */
static void what_is_not_known_pays_for_nothing(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+9/0+10/0+11/0");
    job_t job = job_of(&config);
    job.duration = eight_is_not_known;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_true(status_of(&job).lost_us > 0.8 * 3 * 3 * 500);
    end(&job);
}

static void drift_searches_again_and_backs_off(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=2/0+8/0,batch=1");
    job_t job = job_of(&config);
    double load = 1;
    job.duration = load_favours;
    job.context = &load;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    for (int i = 0; i < 200; i++)
        job_call(&job);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_SETTLED);
    load = 2;
    uint64_t changed = job.call;
    while (status_of(&job).phase == ATT_PHASE_SETTLED)
        job_call(&job);
    assert_in_range(job.call - changed, 11, 20);
    assert_reason(&job, "searching again: calls take 1");
    assert_int_equal(status_of(&job).incumbent.channels, 8); /* stays until something wins */
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 2);
    uint64_t settled = job.call;
    for (int i = 0; i < 20; i++)
        job_call(&job);
    load = 1;
    while (status_of(&job).phase == ATT_PHASE_SETTLED)
        job_call(&job);
    assert_true(job.call - settled >= 64); /* held back */
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    end(&job);
}

static void the_old_winner_takes_part_again(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=6");
    job_t job = job_of(&config);
    double load = 1;
    job.duration = load_favours;
    job.context = &load;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    att_setting_t winner = status_of(&job).incumbent;
    assert_false(att_setting_is_keep(winner));
    for (int i = 0; i < 20; i++)
        job_call(&job);
    load = 2;
    while (status_of(&job).phase == ATT_PHASE_SETTLED)
        job_call(&job);
    uint32_t from = lines.count;
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    int searched = 0, compared = 0;
    for (uint32_t i = from; i < lines.count; i++)
        if (att_setting_equal(lines.at[i].setting, winner)) {
            searched += lines.at[i].phase == ATT_PHASE_SEARCH;
            compared +=
                lines.at[i].phase == ATT_PHASE_FINAL || lines.at[i].phase == ATT_PHASE_GUARD;
        }
    assert_int_equal(searched, 0); /* another seed asks other questions */
    assert_true(compared > 0);
    end(&job);
}

static void drift_may_lead_back_to_the_default(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0");
    job_t job = job_of(&config);
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    for (int i = 0; i < 30; i++)
        job_call(&job);
    table[8] = 1400;
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    while (status_of(&job).phase == ATT_PHASE_SETTLED)
        job_call(&job);
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    table[8] = 800;
    assert_true(att_setting_is_keep(status_of(&job).incumbent));
    assert_true(att_setting_is_keep(job.in_force));
    assert_true(status_of(&job).kept_default);
    end(&job);
}

static void a_failing_strategy_keeps_the_default(void **state)
{
    (void)state;
    const char *specs[] = {"odd:how=error", "odd:how=error,place=create",
                           "odd:how=error,place=tell", "odd:how=outside", "nowhere"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        att_optimizer_config_t config = config_of(specs[i]);
        job_t job = job_of(&config);
        assert_int_equal(job_run(&job, 2000), ATT_PHASE_FAILED);
        for (int k = 0; k < 100; k++)
            job_call(&job);
        assert_true(att_setting_is_keep(job.in_force));
        assert_true(status_of(&job).kept_default);
        assert_false(att_optimizer_wants_timing(job.optimizer));
        assert_reason(&job, "strategy");
        end(&job);
    }
}

static void a_crashing_strategy_keeps_the_default(void **state)
{
    (void)state;
    struct att_strategy_host *in_process = host;
    assert_int_equal(att_strategy_host_create(ATTUNE_TEST_PLUGINS, ATT_HOST_CHILD, 60, &host, NULL),
                     0);
    att_optimizer_config_t config = config_of("odd:how=crash,place=tell");
    job_t job = job_of(&config);
    while (status_of(&job).phase < ATT_PHASE_SETTLED)
        job_call(&job);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_FAILED);
    assert_reason(&job, "the strategy crashed (signal 6");
    end(&job);
    config.strategy = "script:play=8/0";
    job = job_of(&config);
    while (status_of(&job).phase < ATT_PHASE_SETTLED)
        job_call(&job);
    assert_int_equal(status_of(&job).phase, ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).best.channels, 8);
    end(&job);
    att_strategy_host_destroy(host);
    host = in_process;
}

static void trials_can_be_bounded(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random:trials=1000000");
    config.max_trials = 17;
    job_t job = job_of(&config);
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).trials, 17);
    end(&job);
}

static void a_setting_can_be_applied(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("random");
    config.apply = 1;
    config.applied = (att_setting_t){.algorithm = 1, .protocol = 2, .transport = -1, .channels = 8};
    job_t job = job_of(&config);
    for (int i = 0; i < 60; i++)
        job_call(&job);
    att_optimizer_status_t status = status_of(&job);
    assert_int_equal(status.phase, ATT_PHASE_SETTLED);
    assert_int_equal(status.incumbent.channels, 8);
    assert_int_equal(job.in_force.channels, 8);
    assert_in_range((uint64_t)status.tuned_us, 770, 830);
    assert_int_equal(job.plans, 1);
    assert_false(att_optimizer_wants_timing(job.optimizer));
    end(&job);
    config.applied.channels = 65;
    att_error_t error;
    struct att_optimizer *optimizer;
    assert_int_equal(
        att_optimizer_create(att_space_view(space), &config, host, NULL, NULL, &optimizer, &error),
        -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "ch=65 is not legal"));
    config.applied = ATT_SETTING_KEEP;
    job = job_of(&config);
    for (int i = 0; i < 60; i++)
        job_call(&job);
    assert_true(status_of(&job).kept_default);
    assert_int_equal(job.plans, 0);
    assert_false(att_optimizer_wants_timing(job.optimizer));
    end(&job);
}

static double forbids_9(void *context, att_setting_t setting)
{
    lines_t *seen = context;
    seen->runs_of_quarantined += setting.channels == 9;
    return from_table(NULL, setting);
}

static void a_quarantined_setting_never_runs(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=9/0i+8/0o,batch=1");
    job_t job = job_of(&config);
    job.duration = forbids_9;
    job.context = &lines;
    lines.runs_of_quarantined = 0;
    att_optimizer_quarantine(
        job.optimizer,
        (att_setting_t){.algorithm = 1, .protocol = 2, .transport = -1, .channels = 9});
    assert_int_equal(job_run(&job, 5000), ATT_PHASE_SETTLED);
    assert_int_equal(status_of(&job).incumbent.channels, 8);
    assert_int_equal(lines.runs_of_quarantined, 0);
    end(&job);
}

static double bimodal(void *context, att_setting_t setting)
{
    job_t *job = context;
    return from_table(NULL, setting) * (job_draw(job) < 0.5 ? 1 : 2.5);
}

static void a_bimodal_job_ends(void **state)
{
    (void)state;
    int wrong = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        att_optimizer_config_t config = config_of("script:play=1/0+2/0+4/0+16/0,batch=1");
        config.seed = seed;
        job_t job = job_of(&config);
        job.duration = bimodal;
        job.context = &job;
        assert_int_equal(job_run(&job, 20000), ATT_PHASE_SETTLED);
        wrong +=
            status_of(&job).incumbent.channels == 4 || status_of(&job).incumbent.channels == 16;
        end(&job);
    }
    assert_int_equal(wrong, 0); /* nothing slower is ever kept */
}

static void the_baseline_is_refreshed_without_gaps(void **state)
{
    (void)state;
    /* A list follows the other immediately: no call runs on the incumbent between them. */
    att_optimizer_config_t config =
        config_of("script:play=1/0+2/0+3/0+5/0+6/0+1/4096+2/4096+3/4096+5/4096");
    job_t job = job_of(&config);
    job.delay = 1;
    job.noise = 0;
    uint32_t refreshed = 0;
    for (int i = 0; i < 2000 && status_of(&job).phase < ATT_PHASE_FINAL; i++) {
        uint32_t plans = job.plans;
        job_call(&job);
        if (job.plans != plans && status_of(&job).phase == ATT_PHASE_SEARCH)
            refreshed += att_setting_is_keep(job.plan.entries[0].setting);
    }
    assert_int_equal(status_of(&job).phase, ATT_PHASE_FINAL);
    assert_true(refreshed >= 2);
    end(&job);
}

static void what_must_not_stay_is_withdrawn(void **state)
{
    (void)state;
    att_optimizer_config_t config = config_of("script:play=8/0+4/0+16/0");
    job_t job = job_of(&config);
    job_run(&job, 2000);
    assert_int_equal(job.in_force.channels, 8);
    att_optimizer_withdraw(job.optimizer, "the device is shared now");
    for (int i = 0; i < 20; i++)
        job_call(&job);
    assert_true(att_setting_is_keep(job.in_force));
    att_optimizer_status_t status = status_of(&job);
    assert_true(att_setting_is_keep(status.incumbent));
    assert_true(status.kept_default);
    assert_int_equal(status.phase, ATT_PHASE_SETTLED);
    assert_reason(&job, "the device is shared now");
    /* It is not searched again, however the job changes. */
    job.duration = from_table;
    for (int i = 1; i <= 64; i++)
        table[i] *= 0.1;
    for (int i = 0; i < 400; i++)
        job_call(&job);
    for (int i = 1; i <= 64; i++)
        table[i] /= 0.1;
    assert_int_equal(status_of(&job).trials, status.trials);
    end(&job);
    /* In the middle of a search: its list plays out, then nothing runs any more. */
    job = job_of(&config);
    for (int i = 0; i < 2000 && status_of(&job).phase != ATT_PHASE_SEARCH; i++)
        job_call(&job);
    job_call(&job);
    job_call(&job);
    att_optimizer_withdraw(job.optimizer, "the device is shared now");
    for (int i = 0; i < 100; i++)
        job_call(&job);
    assert_true(att_setting_is_keep(job.in_force));
    uint32_t plans = job.plans;
    for (int i = 0; i < 100; i++)
        job_call(&job);
    assert_int_equal(job.plans, plans);
    end(&job);
}

static void bad_configurations_are_refused(void **state)
{
    (void)state;
    struct att_optimizer *optimizer;
    att_optimizer_config_t config = config_of("random");
    config.samples = 0;
    assert_int_equal(
        att_optimizer_create(att_space_view(space), &config, host, NULL, NULL, &optimizer, NULL),
        -ATT_EUSAGE);
    config.samples = 5;
    config.discard = -1;
    assert_int_equal(
        att_optimizer_create(att_space_view(space), &config, host, NULL, NULL, &optimizer, NULL),
        -ATT_EUSAGE);
    att_optimizer_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_stays_within_the_budget),
        cmocka_unit_test(noise_is_no_cost),
        cmocka_unit_test(after_a_rest_the_baseline_is_new),
        cmocka_unit_test(after_a_rest_nothing_is_won_over_the_old_baseline),
        cmocka_unit_test(a_long_credit_is_cut),
        cmocka_unit_test(a_search_pays_for_itself),
        cmocka_unit_test(what_is_not_known_pays_for_nothing),
        cmocka_unit_test(drift_searches_again_and_backs_off),
        cmocka_unit_test(the_old_winner_takes_part_again),
        cmocka_unit_test(drift_may_lead_back_to_the_default),
        cmocka_unit_test(a_failing_strategy_keeps_the_default),
        cmocka_unit_test(a_crashing_strategy_keeps_the_default),
        cmocka_unit_test(trials_can_be_bounded),
        cmocka_unit_test(a_setting_can_be_applied),
        cmocka_unit_test(a_quarantined_setting_never_runs),
        cmocka_unit_test(a_bimodal_job_ends),
        cmocka_unit_test(the_baseline_is_refreshed_without_gaps),
        cmocka_unit_test(what_must_not_stay_is_withdrawn),
        cmocka_unit_test(bad_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, optimizer_setup, optimizer_teardown);
}
