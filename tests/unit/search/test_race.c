/* race: who runs in the final, who is out when, and what it costs. */
#include "search/race.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SEARCH_CALLS 400

static double draw(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*random >> 33) + 0.5) / 2147483648.0;
}

static att_setting_t with_channels(uint16_t channels)
{
    return (att_setting_t){.algorithm = 1, .protocol = 2, .transport = -1, .channels = channels};
}

/* NCCL's choice and `count` candidates of two protocols with 39, 38, ... channels. */
static att_race_t race_of(uint32_t count, uint32_t search_calls)
{
    att_ranking_t ranking = {0};
    att_race_t race;
    for (uint16_t i = 1; i <= count; i++) {
        att_setting_t setting = with_channels((uint16_t)(40 - i));
        setting.protocol = (int8_t)(1 + (i - 1) / ATT_RANKING_OF_PAIR);
        att_ranking_add(&ranking, setting, 0.7 + 0.001 * i);
    }
    att_race_begin(&race, &ranking, NULL, 0, search_calls);
    assert_int_equal(race.count, 1 + count);
    return race;
}

/* Where samples come from. */
typedef double (*sample_fn)(const double *us, uint32_t runner, uint64_t *random);

static double quiet(const double *us, uint32_t runner, uint64_t *random)
{
    (void)random;
    return us[runner];
}

static double noisy(const double *us, uint32_t runner, uint64_t *random)
{
    double u = draw(random), v = draw(random);
    return us[runner] * exp(0.07 * sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

/* Around two values, 25 apart; a share of them at the lower one. */
static double two_valued(const double *us, uint32_t runner, uint64_t *random)
{
    const double share[] = {0.5, 0.3, 0.6, 0.3};
    double u = draw(random);
    return us[runner] + (u < share[runner] ? 0 : 25) + u;
}

static void run_list(att_race_t *race, sample_fn sample, const double *us, uint64_t *random)
{
    att_playlist_t list = {.discard = 1};
    att_race_list(race, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        att_play_t *play = &list.plays[i];
        for (uint32_t k = 0; sample != NULL && k < play->calls - 1; k++)
            play->samples_us[play->count++] = sample(us, play->index, random);
        att_race_ran(race, play);
    }
    att_race_judge(race);
}

static uint32_t run_race(att_race_t *race, sample_fn sample, const double *us, uint64_t seed)
{
    uint64_t random = seed * 977;
    while (!att_race_over(race))
        run_list(race, sample, us, &random);
    return att_race_winner(race);
}

static void who_is_near_runs_and_few_channels_win(void **state)
{
    (void)state;
    att_race_t race;
    att_ranking_t ranking = {0};
    att_ranking_add(&ranking, with_channels(39), 0.7);
    att_ranking_add(&ranking, with_channels(20), 0.7 * ATT_RACE_NEAR + 0.01);
    att_setting_t extra[] = {ATT_SETTING_KEEP, with_channels(38)};
    att_race_begin(&race, &ranking, extra, 2, SEARCH_CALLS);
    assert_int_equal(race.count, 3);
    assert_int_equal(race.runners[2].setting.channels, 38);

    race = race_of(4, SEARCH_CALLS);
    att_playlist_t list = {.discard = 1};
    att_race_list(&race, &list);
    assert_int_equal(list.count, 15);
    assert_int_not_equal(list.plays[0].index, list.plays[5].index);
    assert_int_not_equal(list.plays[0].setting.channels, list.plays[1].setting.channels);

    race = race_of(4, SEARCH_CALLS);
    const double us[] = {100, 70, 70.2, 71, 76}; /* channels 39, 38, 37, 36 */
    assert_int_equal(run_race(&race, quiet, us, 1), 2);
    assert_int_equal(race.lists, 1); /* without noise nobody needs more */
}

/* Medians of such samples jump between the two values; the race still finds who takes less time. */
static void durations_around_two_values_are_told_apart(void **state)
{
    (void)state;
    int right = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        att_race_t race = race_of(3, SEARCH_CALLS);
        right += run_race(&race, two_valued, (double[]){110, 70, 70, 70}, seed) == 2;
        assert_true(race.runners[0].out);
    }
    assert_in_range(right, 34, 40);
}

/* Eight settings that are the same: who wins does not matter, so it must not cost much more than
 * what led there. */
static void equals_cost_about_as_much_as_the_search(void **state)
{
    (void)state;
    const double us[] = {1.3, 1, 1, 1, 1, 1, 1, 1, 1};
    double calls = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        att_race_t race = race_of(8, SEARCH_CALLS);
        assert_int_not_equal(run_race(&race, noisy, us, seed), 0);
        assert_true(race.calls <= 2 * SEARCH_CALLS);
        calls += race.calls / 40.0;
    }
    assert_true(calls <= 1.2 * SEARCH_CALLS);
}

/* One that is 5 % faster than the others is found in spite of the noise. */
static void a_real_difference_is_found(void **state)
{
    (void)state;
    int right = 0;
    double calls = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double us[] = {1.3, 1, 1, 1, 1, 1, 1, 1, 1};
        uint32_t fastest = 1 + (uint32_t)seed % 8;
        us[fastest] = 0.95;
        att_race_t race = race_of(8, SEARCH_CALLS);
        right += run_race(&race, noisy, us, seed) == fastest;
        calls += race.calls / 40.0;
    }
    assert_in_range(right, 36, 40);
    assert_true(calls <= SEARCH_CALLS);
}

/* After a search that took long the race takes its time as well. */
static void a_long_search_has_a_long_race(void **state)
{
    (void)state;
    const double us[] = {1.3, 1, 0.99, 1};
    double calls[2] = {0};
    int right[2] = {0};
    for (int slow = 0; slow < 2; slow++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            att_race_t race = race_of(3, slow ? 20 * SEARCH_CALLS : SEARCH_CALLS);
            right[slow] += run_race(&race, noisy, us, seed) == 2;
            calls[slow] += race.calls;
        }
    assert_true(calls[1] > 3 * calls[0]);
    assert_true(right[1] > right[0]);
}

/* The machine takes twice as long in every other pair of lists: within a list all are slowed alike.
 */
static void a_change_of_pace_between_lists_spoils_nothing(void **state)
{
    (void)state;
    att_race_t race = race_of(2, SEARCH_CALLS);
    const double fast[] = {100, 72, 70}, slow[] = {200, 144, 140};
    for (int list = 0; !att_race_over(&race); list++)
        run_list(&race, quiet, list % 2 ? slow : fast, NULL);
    assert_true(race.runners[0].out && race.runners[1].out);
    assert_int_equal(att_race_winner(&race), 2);
}

static void a_race_that_loses_samples_ends(void **state)
{
    (void)state;
    att_race_t race = race_of(2, SEARCH_CALLS);
    assert_int_equal(run_race(&race, NULL, NULL, 1), 0);
    assert_int_equal(race.lists, ATT_RACE_LISTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_near_runs_and_few_channels_win),
        cmocka_unit_test(durations_around_two_values_are_told_apart),
        cmocka_unit_test(equals_cost_about_as_much_as_the_search),
        cmocka_unit_test(a_real_difference_is_found),
        cmocka_unit_test(a_long_search_has_a_long_race),
        cmocka_unit_test(a_change_of_pace_between_lists_spoils_nothing),
        cmocka_unit_test(a_race_that_loses_samples_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
