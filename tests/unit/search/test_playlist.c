/* playlist, trial, ranking, comparison and drift: the parts of the optimizer, one by one. */
#include "search/playlist.h"

#include "search/comparison.h"
#include "search/drift.h"
#include "search/guard.h"
#include "search/ranking.h"
#include "search/trial.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static att_setting_t with_channels(uint16_t channels)
{
    return (att_setting_t){.algorithm = 1, .protocol = 2, .transport = -1, .channels = channels};
}

static att_play_kind_t sample(att_playlist_t *list, uint64_t call, double us)
{
    return att_playlist_sample(list, &(att_sample_t){call, us, 1, us / 2});
}

static att_playlist_t two_entries(void)
{
    att_playlist_t list = {.discard = 1};
    att_plan_t plan = {0};
    att_playlist_add(&list, with_channels(1), 3, ATT_PLAY_TRIAL, 0);
    att_playlist_add(&list, with_channels(2), 3, ATT_PLAY_TRIAL, 0);
    att_playlist_propose(&list, &plan);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.entries[1].calls, 3);
    assert_int_equal(plan.entries[1].setting.channels, 2);
    att_playlist_commit(&list, 100);
    return list;
}

static void samples_find_their_entry(void **state)
{
    (void)state;
    att_playlist_t list = two_entries();
    assert_int_equal(sample(&list, 99, 1), ATT_PLAY_INCUMBENT);
    for (uint64_t call = 105; call >= 100; call--) { /* in any order */
        assert_false(att_playlist_done(&list));
        assert_int_equal(sample(&list, call, (double)call), ATT_PLAY_ENTRY);
    }
    assert_true(att_playlist_done(&list));
    assert_int_equal(list.plays[0].count, 2); /* the first call after each switch is dropped */
    assert_float_equal(list.plays[0].samples_us[0], 102, 0);
    assert_float_equal(list.plays[0].collective_us,
                       (list.plays[0].samples_us[0] + list.plays[0].samples_us[1]) / 2, 0);
    assert_float_equal(list.plays[1].samples_us[1], 104, 0);
    assert_int_equal(sample(&list, 106, 1), ATT_PLAY_NONE); /* just after the switch back */
    assert_int_equal(sample(&list, 107, 1), ATT_PLAY_INCUMBENT);
    att_playlist_clear(&list);
    assert_int_equal(sample(&list, 103, 1), ATT_PLAY_NONE); /* late */
    assert_int_equal(sample(&list, 106, 1), ATT_PLAY_NONE);
    assert_int_equal(sample(&list, 108, 1), ATT_PLAY_INCUMBENT);
}

static void the_watermark_ends_what_is_lost(void **state)
{
    (void)state;
    att_playlist_t list = two_entries();
    sample(&list, 101, 5);
    att_playlist_advance(&list, 105);
    assert_false(att_playlist_done(&list));
    att_playlist_advance(&list, 106);
    assert_true(att_playlist_done(&list));
    assert_int_equal(list.plays[0].count, 1);
    assert_int_equal(list.plays[1].count, 0);
}

static void an_abandoned_list_ends_with_the_next_call(void **state)
{
    (void)state;
    att_playlist_t list = two_entries();
    list.abandoned = true;
    assert_int_equal(sample(&list, 102, 5), ATT_PLAY_NONE);
    assert_int_equal(list.state, ATT_PLAYLIST_COMMITTED);
    assert_int_equal(sample(&list, 109, 5), ATT_PLAY_INCUMBENT);
    assert_int_equal(list.state, ATT_PLAYLIST_EMPTY);
}

static void a_list_has_15_entries(void **state)
{
    (void)state;
    att_playlist_t list = {0};
    for (int i = 0; i < ATT_PLAN_ENTRIES; i++)
        assert_true(att_playlist_add(&list, with_channels(1), 1, ATT_PLAY_TRIAL, 0));
    assert_false(att_playlist_add(&list, with_channels(1), 1, ATT_PLAY_TRIAL, 0));
}

static const att_yardstick_t yard = {
    .incumbent_us = 100, .incumbent_count = 16, .best = 0.8, .spread = 0.02, .max_slowdown = 3};

static void trials_go_on_or_end(void **state)
{
    (void)state;
    att_open_trial_t trial;
    att_outcome_t outcome;
    att_trial_open(&trial, with_channels(1), 5);
    assert_int_equal(att_trial_calls(&trial, 1), 3);
    assert_int_equal(att_trial_ran(&trial, (double[]){81, 85}, 2, &yard, &outcome), ATT_TRIAL_MORE);
    assert_int_equal(att_trial_calls(&trial, 1), 4);
    assert_int_equal(att_trial_ran(&trial, (double[]){81, 82, 83}, 3, &yard, &outcome),
                     ATT_TRIAL_TELL);
    assert_int_equal(outcome, ATT_OUTCOME_OK);
    att_result_t result;
    att_trial_result(&trial, outcome, 100, 16, &result);
    assert_float_equal(result.median_us, 82, 0);
    assert_int_equal(result.sample_count, 5);

    att_trial_open(&trial, with_channels(1), 5); /* 8 % beyond the best: clearly worse */
    assert_int_equal(att_trial_ran(&trial, (double[]){88, 120}, 2, &yard, &outcome),
                     ATT_TRIAL_TELL);
    assert_int_equal(outcome, ATT_OUTCOME_OK);

    att_trial_open(&trial, with_channels(1), 5);
    assert_int_equal(att_trial_ran(&trial, (double[]){290, 320}, 2, &yard, &outcome),
                     ATT_TRIAL_TELL);
    assert_int_equal(outcome, ATT_OUTCOME_SLOW);
}

static void lost_samples_are_asked_for_once(void **state)
{
    (void)state;
    att_open_trial_t trial;
    att_outcome_t outcome;
    att_trial_open(&trial, with_channels(1), 5);
    assert_int_equal(att_trial_ran(&trial, (double[]){81}, 1, &yard, &outcome), ATT_TRIAL_MORE);
    assert_int_equal(att_trial_calls(&trial, 1), 2);
    assert_int_equal(att_trial_ran(&trial, NULL, 0, &yard, &outcome), ATT_TRIAL_TELL);
    assert_int_equal(outcome, ATT_OUTCOME_LOSSY);
    att_result_t result;
    att_trial_result(&trial, outcome, 100, 16, &result);
    assert_int_equal(result.sample_count, 0);

    att_trial_open(&trial, with_channels(1), 5);
    att_trial_ran(&trial, (double[]){81, 82}, 2, &yard, &outcome);
    assert_int_equal(att_trial_ran(&trial, (double[]){80}, 1, &yard, &outcome), ATT_TRIAL_MORE);
    assert_int_equal(att_trial_ran(&trial, NULL, 0, &yard, &outcome), ATT_TRIAL_TELL);
    assert_int_equal(outcome, ATT_OUTCOME_OK); /* 3 of 5 */
}

static void the_ranking_keeps_the_fastest_once(void **state)
{
    (void)state;
    att_ranking_t ranking = {0};
    for (uint16_t i = 20; i > 0; i--)
        att_ranking_add(&ranking, with_channels(i), i);
    att_ranking_add(&ranking, with_channels(1), 6); /* again: (1 + 6) / 2 */
    assert_int_equal(ranking.count, ATT_RANKING_OF_PAIR);
    assert_int_equal(ranking.entries[0].setting.channels, 2);
    assert_int_equal(ranking.entries[2].setting.channels, 1);
    assert_float_equal(ranking.entries[2].score, 3.5, 0);
    /* Other pairs have their share, up to the room. */
    for (int8_t algorithm = 2; algorithm < 6; algorithm++)
        for (uint16_t i = 20; i > 0; i--) {
            att_setting_t other = with_channels(i);
            other.algorithm = algorithm;
            att_ranking_add(&ranking, other, i + 0.5);
        }
    assert_int_equal(ranking.count, ATT_RANKING_ROOM);
    for (uint32_t i = 1; i < ranking.count; i++)
        assert_true(ranking.entries[i - 1].score <= ranking.entries[i].score);
}

static double noisy(double us, uint64_t *random)
{
    double sum = 0; /* of twelve draws: near normal, variance 1 */
    for (int i = 0; i < 12; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*random >> 33) / 2147483648.0;
    }
    return us * (1 + 0.07 * (sum - 6));
}

static att_verdict_t compare(const double *gains, uint32_t count, double worth, att_comparison_t *c)
{
    *c = (att_comparison_t){0};
    for (uint32_t i = 0; i < count; i++)
        att_comparison_add(c, 100 * exp(gains[i]), 100);
    return att_comparison_look(c, worth);
}

static void comparisons(void **state)
{
    (void)state;
    att_comparison_t c;
    assert_int_equal(compare((double[]){.2, .21, .19, .2, .22, .18, .2}, 7, 0, &c),
                     ATT_VERDICT_WIN);
    assert_float_equal(c.median, expm1(.2), 1e-9);
    assert_float_equal(c.lower, expm1(.18), 1e-9);
    /* one of seven lost: not yet */
    assert_int_equal(compare((double[]){.2, .21, .19, -.01, .22, .18, .2}, 7, 0, &c),
                     ATT_VERDICT_OPEN);
    assert_int_equal(compare((double[]){.2, .21, .19, -.01, .22, .18, .2}, 7, .3, &c),
                     ATT_VERDICT_NONE); /* nor worth more pairs */
    assert_int_equal(compare((double[]){.2, .21, .19, .2, .22, .18, .2}, 7, .3, &c),
                     ATT_VERDICT_WIN);
    assert_int_equal(compare((double[]){-.1, .1, -.1, .1, -.1, .1, 0}, 7, .005, &c),
                     ATT_VERDICT_OPEN); /* what is unknown may be a gain */
    /* all won, but by less than it takes */
    assert_int_equal(compare((double[]){.001, .002, .003, .001, .002, .003, .001}, 7, 0, &c),
                     ATT_VERDICT_NONE);
    assert_int_equal(compare((double[]){-.2, -.1, -.1, -.2, -.1, -.1, -.3}, 7, 0, &c),
                     ATT_VERDICT_NONE);
    assert_true(c.upper < 0);
    c = (att_comparison_t){.lists = ATT_COMPARISON_LISTS - 1};
    assert_int_equal(att_comparison_look(&c, 1), ATT_VERDICT_BLIND);
}

/* A guard after 800 calls, to its end: NCCL's choice takes 100 us of a step of 1000 us, the winner
 * own_us of one of step_us (0: steps are not known); both are measured at 7 % noise. The first
 * block holds a pause. */
static att_verdict_t run_guard(att_guard_t *guard, double own_us, double step_us, double pause_us,
                               uint64_t *random)
{
    att_verdict_t verdict;
    att_guard_begin(guard, with_channels(4), 800);
    do {
        att_playlist_t list = {.discard = 1};
        att_guard_list(guard, &list);
        for (uint32_t i = 0; i < list.count; i++) {
            att_play_t *play = &list.plays[i];
            bool winner = play->index == 1;
            play->count = ATT_GUARD_BLOCK;
            play->steps = step_us > 0 ? ATT_GUARD_BLOCK : 0;
            for (uint32_t n = 0; n < ATT_GUARD_BLOCK; n++) {
                play->samples_us[n] = noisy(winner ? own_us : 100, random);
                play->steps_us += step_us > 0 ? noisy(winner ? step_us : 1000, random) : 0;
            }
            if (i == 0 && guard->comparison.lists == 0)
                play->steps_us += pause_us;
        }
        verdict = att_guard_ran(guard, &list);
    } while (verdict == ATT_VERDICT_OPEN);
    return verdict;
}

/* A large gain is seen at once, and that there is none costs no more than the search. */
static void a_guard_ends(void **state)
{
    (void)state;
    const double gains[] = {0, 0.25};
    for (int k = 0; k < 2; k++) {
        double calls = 0;
        int wins = 0;
        uint64_t random = 4;
        for (int run = 0; run < 40; run++) {
            att_guard_t guard;
            wins += run_guard(&guard, 100 / (1 + gains[k]), 0, 0, &random) == ATT_VERDICT_WIN;
            calls += (guard.sides[0].calls + guard.sides[1].calls) / 40.0;
        }
        assert_in_range(wins, k == 0 ? 0 : 40, k == 0 ? 4 : 40);
        assert_true(calls <= (k == 0 ? 800 : 100));
    }
}

/* Guards whose winner makes the collective 25 % faster and changes the step by `gain`. */
#define STEP_RUNS 200
typedef struct step_runs {
    int wins, harms;
    double calls;
} step_runs_t;

static step_runs_t beside_a_step(double gain, double pause_us)
{
    step_runs_t runs = {0};
    uint64_t random = 7;
    for (int run = 0; run < STEP_RUNS; run++) {
        att_guard_t guard;
        att_verdict_t verdict = run_guard(&guard, 80, 1000 / (1 + gain), pause_us, &random);
        runs.wins += verdict == ATT_VERDICT_WIN;
        runs.harms += verdict == ATT_VERDICT_HARM;
        runs.calls += (guard.sides[0].calls + guard.sides[1].calls) / (double)STEP_RUNS;
    }
    assert_int_equal(runs.wins + runs.harms, STEP_RUNS);
    printf("step %+3.0f %%: kept in %d of %d, %.0f calls\n", 100 * gain, runs.wins, STEP_RUNS,
           runs.calls);
    return runs;
}

static void who_makes_the_step_longer_does_not_win(void **state)
{
    (void)state;
    for (int percent = -8; percent <= 4; percent++) {
        step_runs_t runs = beside_a_step(percent / 100.0, 0);
        if (percent <= -5)
            assert_true(runs.harms >= STEP_RUNS * 0.98);
        if (percent >= 0) /* no more false alarms than the level allows */
            assert_true(runs.wins >= STEP_RUNS * 0.94);
        if (percent >= 3) /* what gains in both costs hardly more than the collective alone */
            assert_true(runs.calls <= 200);
        assert_true(runs.calls <= 1000);
    }
}

/* A checkpoint of 10 s makes the collective no smaller a part of the step. */
static void a_pause_makes_nobody_careless(void **state)
{
    (void)state;
    step_runs_t without = beside_a_step(-0.03, 0), with = beside_a_step(-0.03, 1e7);
    assert_true(with.harms >= without.harms * 0.95);
}

/* One pair of each list comes back whole, the steps tell nothing, and calls cost nothing: the lists
 * end it all the same. */
static void a_guard_of_steps_ends_with_its_lists(void **state)
{
    (void)state;
    att_guard_t guard;
    att_verdict_t verdict;
    uint32_t lists = 0;
    att_guard_begin(&guard, with_channels(4), UINT32_MAX);
    do {
        att_playlist_t list = {.discard = 1};
        att_guard_list(&guard, &list);
        for (uint32_t i = 0; i < 2; i++) {
            att_play_t *play = &list.plays[i];
            play->count = play->steps = 1;
            play->samples_us[0] = play->index == 1 ? 80 : 100;
            play->steps_us = play->index == 0 ? 200 : lists % 2 ? 100 : 400;
        }
        verdict = att_guard_ran(&guard, &list);
        lists++;
    } while (verdict == ATT_VERDICT_OPEN && lists < 2 * ATT_COMPARISON_LISTS);
    assert_int_not_equal(verdict, ATT_VERDICT_OPEN);
    assert_in_range(lists, 28, ATT_COMPARISON_LISTS);
}

static void steps_belong_to_the_entries_of_the_list_in_force(void **state)
{
    (void)state;
    att_playlist_t list = two_entries();
    att_playlist_step(&list, 99, 10, 0);  /* before the list */
    att_playlist_step(&list, 100, 10, 0); /* discarded */
    att_playlist_step(&list, 101, 11, 0);
    att_playlist_step(&list, 102, 12, 0);
    att_playlist_step(&list, 106, 10, 0); /* after it */
    assert_int_equal(list.plays[0].steps, 2);
    assert_float_equal(list.plays[0].steps_us, 23, 0);
    assert_int_equal(list.plays[1].steps, 0);
    att_playlist_clear(&list);
    att_playlist_step(&list, 101, 11, 16);
    assert_int_equal(list.count, 0);
    /* In a pattern a block has a whole period, and the one before it is not used. */
    att_guard_t guard;
    att_plan_t plan;
    att_guard_begin(&guard, with_channels(4), 800);
    att_guard_list(&guard, &list);
    assert_int_equal(list.plays[0].calls, 32);
    att_playlist_propose(&list, &plan);
    att_playlist_step(&list, 199, 10, 3); /* too late for this list */
    att_playlist_commit(&list, 200);
    for (uint64_t call = 199; call < 300; call++)
        att_playlist_step(&list, call, 10, 3);
    assert_int_equal(list.plays[0].steps, 16);
    assert_int_equal(list.plays[1].steps, 16);
    assert_float_equal(list.plays[0].steps_us, 160, 0);
}

static void guard_blocks_alternate(void **state)
{
    (void)state;
    att_guard_t guard;
    att_playlist_t list = {.discard = 1};
    att_guard_begin(&guard, with_channels(4), 800);
    att_guard_list(&guard, &list);
    assert_int_equal(list.count, 14);
    const uint32_t sides[] = {0, 1, 1, 0, 0, 1, 1, 0};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(list.plays[i].index, sides[i]);
        assert_int_equal(att_setting_is_keep(list.plays[i].setting), sides[i] == 0);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        list.plays[i].count = 2;
        list.plays[i].samples_us[0] = list.plays[i].samples_us[1] = list.plays[i].index ? 50 : 100;
    }
    assert_int_equal(att_guard_ran(&guard, &list), ATT_VERDICT_WIN);
    assert_int_equal(guard.comparison.count, 7);
    assert_float_equal(guard.comparison.median, 1, 1e-9);
}

static int feed(att_drift_t *drift, double us, int count)
{
    for (int i = 1; i <= count; i++)
        if (att_drift_sample(drift, us))
            return i;
    return 0;
}

static void drift_needs_three_windows(void **state)
{
    (void)state;
    att_drift_t drift = {0};
    assert_int_equal(feed(&drift, 100, 100), 0);
    assert_int_equal(feed(&drift, 120, 100), 0); /* below the limit */
    assert_int_equal(feed(&drift, 130, 10), 0);
    assert_int_equal(feed(&drift, 100, 5), 0);
    assert_int_equal(feed(&drift, 130, 100), 15);
}

static void drift_sees_both_directions_and_holds_back(void **state)
{
    (void)state;
    att_drift_t drift = {0};
    feed(&drift, 100, 15);
    assert_int_equal(feed(&drift, 70, 100), 15);
    att_drift_settle(&drift);
    feed(&drift, 100, 15);
    assert_int_equal(feed(&drift, 200, 1000), 50); /* 65 seen: not before 64 */
    att_drift_settle(&drift);
    feed(&drift, 100, 15);
    assert_int_equal(feed(&drift, 200, 1000), 115); /* not before 128 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_find_their_entry),
        cmocka_unit_test(the_watermark_ends_what_is_lost),
        cmocka_unit_test(an_abandoned_list_ends_with_the_next_call),
        cmocka_unit_test(a_list_has_15_entries),
        cmocka_unit_test(trials_go_on_or_end),
        cmocka_unit_test(lost_samples_are_asked_for_once),
        cmocka_unit_test(the_ranking_keeps_the_fastest_once),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(guard_blocks_alternate),
        cmocka_unit_test(a_guard_ends),
        cmocka_unit_test(who_makes_the_step_longer_does_not_win),
        cmocka_unit_test(a_pause_makes_nobody_careless),
        cmocka_unit_test(a_guard_of_steps_ends_with_its_lists),
        cmocka_unit_test(steps_belong_to_the_entries_of_the_list_in_force),
        cmocka_unit_test(drift_needs_three_windows),
        cmocka_unit_test(drift_sees_both_directions_and_holds_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
