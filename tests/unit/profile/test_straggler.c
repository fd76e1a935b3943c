/* Naming late ranks: above the clocks' uncertainty and their own calm steps, in a row; nobody else.
 */
#include "profile/straggler.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define RANKS 8u
#define STEPS 400u

typedef struct script {
    uint32_t ranks;
    uint32_t late; /* rank */
    int64_t late_ns;
    uint32_t from, to; /* steps */
    uint32_t every;    /* only every n-th of these; 0 = all */
    int64_t noise_ns;  /* of every arrival, evenly */
    uint32_t uncertainty_ns;
    uint32_t warm_up; /* first steps, with ten times the noise */
} script_t;

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return *seed >> 33;
}

static struct att_straggler *play(const script_t *s)
{
    struct att_straggler *out;
    uint64_t seed = 5;
    int64_t arrivals[64], now = 1000000;
    assert_int_equal(att_straggler_create(s->ranks, &out), ATT_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        att_straggler_step_t step = {.call = i, .uncertainty_ns = s->uncertainty_ns};
        uint64_t noise = (uint64_t)s->noise_ns * (i < s->warm_up ? 10 : 1);
        for (uint32_t r = 0; r < s->ranks; r++)
            arrivals[r] = now + (noise > 0 ? (int64_t)(draw(&seed) % noise) : 0);
        if (i >= s->from && i < s->to && (s->every == 0 || i % s->every == 0))
            arrivals[s->late] += s->late_ns;
        for (uint32_t r = 0; r < s->ranks; r++)
            if (arrivals[r] > step.at_ns)
                step.at_ns = arrivals[r];
        assert_int_equal(att_straggler_add(out, &step, arrivals), ATT_OK);
        now = step.at_ns + 1000000;
    }
    assert_int_equal(att_straggler_finish(out), ATT_OK);
    return out;
}

static uint32_t episodes_of(const struct att_straggler *s)
{
    uint32_t count;
    att_straggler_episodes(s, &count);
    return count;
}

static void a_late_rank_is_named_with_its_onset(void **state)
{
    for (int64_t ms = 2; ms <= 200; ms *= 10) {
        script_t script = {.ranks = RANKS,
                           .late = 3,
                           .late_ns = ms * 1000000,
                           .from = 100,
                           .to = 300,
                           .noise_ns = 50000};
        struct att_straggler *s = play(&script);
        uint32_t count;
        const att_straggler_episode_t *e = att_straggler_episodes(s, &count);
        assert_int_equal(count, 1);
        assert_int_equal(e->rank, 3);
        assert_int_equal(e->from, 100);
        assert_int_equal(e->to, 299);
        assert_in_range(e->named, 196, 200);
        assert_false(e->constant);
        /* Each of the others waits for all of it, but for the noise. */
        double wanted = (double)script.late_ns * 200 * (RANKS - 1);
        assert_true(e->wait_ns > 0.9 * wanted && e->wait_ns < 1.1 * wanted);
        assert_true(e->lateness_ns > 0.95 * (double)script.late_ns);
        assert_in_range(att_straggler_rank(s, 3)->last, 200, STEPS);
        att_straggler_destroy(s);
    }
}

/* Wherever the onset falls in the windows, and with no noise at all. */
static void the_onset_may_be_anywhere(void **state)
{
    for (uint32_t from = 0; from < 60; from++) {
        script_t script = {
            .ranks = RANKS, .late = 5, .late_ns = 2000000, .from = from, .to = STEPS};
        struct att_straggler *s = play(&script);
        uint32_t count;
        const att_straggler_episode_t *e = att_straggler_episodes(s, &count);
        assert_int_equal(count, 1);
        assert_int_equal(e->from, from);
        assert_int_equal(e->named, STEPS - from);
        att_straggler_destroy(s);
    }
}

/* Recordings begin when they begin: few calm steps before the onset, noisier ones than later, two
 * ranks. */
static void a_short_calm_start_is_enough(void **state)
{
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += 6)
        for (uint32_t from = 4; from < 48; from++) {
            script_t script = {.ranks = ranks,
                               .late = 1,
                               .late_ns = 20000000,
                               .from = from,
                               .to = STEPS,
                               .noise_ns = 50000,
                               .warm_up = 16};
            struct att_straggler *s = play(&script);
            uint32_t count;
            const att_straggler_episode_t *e = att_straggler_episodes(s, &count);
            assert_int_equal(count, 1);
            assert_int_equal(e->rank, 1);
            assert_in_range(e->from, from, from + 1);
            assert_in_range(e->named, STEPS - from - 2, STEPS - from);
            att_straggler_destroy(s);
        }
}

static void nobody_is_named_without_a_delay(void **state)
{
    int64_t noise[] = {0, 100, 50000, 2000000};
    for (int i = 0; i < 4; i++) {
        script_t script = {.ranks = RANKS, .noise_ns = noise[i]};
        struct att_straggler *s = play(&script);
        assert_int_equal(episodes_of(s), 0);
        att_straggler_destroy(s);
    }
}

static void the_clocks_must_be_good_enough(void **state)
{
    script_t script = {.ranks = RANKS,
                       .late = 1,
                       .late_ns = 2000000,
                       .from = 100,
                       .to = 400,
                       .uncertainty_ns = 700000}; /* three times it is more than the lateness */
    struct att_straggler *s = play(&script);
    assert_int_equal(episodes_of(s), 0);
    att_straggler_destroy(s);
    script.uncertainty_ns = 600000;
    s = play(&script);
    assert_int_equal(episodes_of(s), 1);
    att_straggler_destroy(s);
}

/* Noise as large as the lateness: the rank's own calm steps are like its late ones. */
static void what_the_rank_always_does_names_nobody(void **state)
{
    script_t script = {
        .ranks = RANKS, .late = 1, .late_ns = 1000000, .from = 200, .to = 400, .noise_ns = 4000000};
    struct att_straggler *s = play(&script);
    assert_int_equal(episodes_of(s), 0);
    att_straggler_destroy(s);
}

static void single_hiccups_name_nobody(void **state)
{
    script_t script = {.ranks = RANKS,
                       .late = 2,
                       .late_ns = 20000000,
                       .from = 50,
                       .to = 400,
                       .every = 10,
                       .noise_ns = 10000};
    struct att_straggler *s = play(&script);
    assert_int_equal(episodes_of(s), 0);
    assert_true(att_straggler_rank(s, 2)->wait_caused_ns > 30 * 19000000.0); /* but it is told */
    att_straggler_destroy(s);
}

static void late_from_the_first_step_to_the_last(void **state)
{
    for (uint32_t ranks = 2; ranks <= RANKS; ranks *= 2) {
        script_t script = {.ranks = ranks,
                           .late = ranks - 1,
                           .late_ns = 20000000,
                           .from = 0,
                           .to = STEPS,
                           .noise_ns = 20000};
        struct att_straggler *s = play(&script);
        uint32_t count;
        const att_straggler_episode_t *e = att_straggler_episodes(s, &count);
        assert_int_equal(count, 1);
        assert_int_equal(e->rank, ranks - 1);
        assert_true(e->constant);
        assert_in_range(e->named, STEPS * 95 / 100, STEPS);
        att_straggler_destroy(s);
    }
}

static void few_steps_and_one_rank(void **state)
{
    struct att_straggler *s;
    int64_t arrivals[2] = {5, 9};
    att_straggler_step_t step = {.at_ns = 9};
    assert_int_equal(att_straggler_create(1, &s), ATT_OK);
    assert_int_equal(att_straggler_add(s, &step, arrivals), ATT_OK);
    assert_int_equal(att_straggler_finish(s), ATT_OK);
    assert_int_equal(episodes_of(s), 0);
    att_straggler_destroy(s);
    assert_int_equal(att_straggler_create(2, &s), ATT_OK);
    assert_int_equal(att_straggler_finish(s), ATT_OK);
    assert_int_equal(att_straggler_add(s, &step, arrivals), ATT_OK);
    assert_int_equal(att_straggler_finish(s), ATT_OK);
    assert_int_equal(att_straggler_rank(s, 1)->last, 1);
    att_straggler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_rank_is_named_with_its_onset),
        cmocka_unit_test(the_onset_may_be_anywhere),
        cmocka_unit_test(a_short_calm_start_is_enough),
        cmocka_unit_test(nobody_is_named_without_a_delay),
        cmocka_unit_test(the_clocks_must_be_good_enough),
        cmocka_unit_test(what_the_rank_always_does_names_nobody),
        cmocka_unit_test(single_hiccups_name_nobody),
        cmocka_unit_test(late_from_the_first_step_to_the_last),
        cmocka_unit_test(few_steps_and_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
