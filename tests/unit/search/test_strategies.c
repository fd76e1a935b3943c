/* The strategies that are shipped: what they ask, how they take failures, how well they search. */
#include "base/log.h"
#include "fixture.h"
#include "job.h"
#include "search/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct att_space_owned *one, *six;
static struct att_strategy_host *host;

static const char *const specs[] = {"random:trials=60",
                                    "exhaustive:grid=5,announce=0",
                                    "coordinate_descent",
                                    "coordinate_descent:variant=paper",
                                    "coordinate_descent:variant=code",
                                    "default",
                                    "annealing",
                                    "bandit",
                                    "lagom"};
#define SPECS (sizeof specs / sizeof *specs)

/* Smooth in log2 of both knobs, with a ridge that runs against both axes, and ripples on it. */
static double bowl(double channels, double chunk)
{
    double x = log2(channels) - 3.3, y = log2(chunk) - 16.5;
    return 1000 *
           (1 + 0.08 * x * x + 0.03 * y * y + 0.03 * x * y + 0.015 * sin(7 * log2(channels)) +
            0.015 * sin(5 * log2(chunk)) * cos(3 * log2(channels)));
}

/* Two basins; NCCL's choice lies in the worse one. */
static double two_basins(double channels, double chunk)
{
    double x = log2(channels) - 2, y = log2(chunk) - 17, u = log2(channels) - 5,
           v = log2(chunk) - 13.5;
    return 1000 * fmin(1 + 0.06 * x * x + 0.05 * y * y, 1.08 + 0.06 * u * u + 0.05 * v * v) *
           (1 + 0.01 * sin(9 * log2(channels) + 4 * log2(chunk)));
}

typedef double (*surface_fn)(double channels, double chunk);

static double duration(void *context, att_setting_t setting)
{
    static const double pair[] = {1.5, 2.0, 1.12, 1.9, 1.3, 1}; /* tree, ring; ll, ll128, simple */
    static const double kept_chunk[] = {32768, 300000, 524288};
    if (att_setting_is_keep(setting))
        setting = (att_setting_t){.algorithm = 1, .protocol = 2, .channels = 24};
    double chunk = setting.chunk_bytes ? setting.chunk_bytes : kept_chunk[setting.protocol];
    return ((surface_fn)context)(setting.channels, chunk) *
           pair[setting.algorithm * 3 + setting.protocol];
}

static double optimum(surface_fn surface, const struct att_space_owned *space)
{
    const att_space_t *view = att_space_view(space);
    double best = INFINITY;
    for (uint64_t i = 0; i < att_space_size(view); i++) {
        double d = duration((void *)surface, att_space_at(view, i));
        best = d < best ? d : best;
    }
    return best;
}

/* Settled duration over the optimum. */
static double quality(const char *strategy, surface_fn surface, const struct att_space_owned *space,
                      double best, uint64_t seed, uint32_t *trials)
{
    att_optimizer_config_t config = {
        .strategy = strategy, .seed = seed, .samples = 5, .discard = 1, .max_slowdown = 3};
    job_t job = {.duration = duration,
                 .context = (void *)surface,
                 .noise = 0.03,
                 .delay = 2,
                 .random = 1000 + seed,
                 .incumbent = ATT_SETTING_KEEP};
    assert_int_equal(att_optimizer_create(att_space_view(space), &config, host, NULL, NULL,
                                          &job.optimizer, NULL),
                     0);
    assert_int_equal(job_run(&job, 100000), ATT_PHASE_SETTLED);
    att_optimizer_status_t status;
    att_optimizer_status(job.optimizer, &status);
    att_optimizer_destroy(job.optimizer);
    *trials = status.trials;
    return duration((void *)surface, status.incumbent) / best;
}

static void coordinate_descent_finds_the_optimum(void **state)
{
    (void)state;
    const surface_fn surfaces[] = {bowl, two_basins};
    const struct att_space_owned *spaces[] = {one, six};
    for (int k = 0; k < 2; k++)
        for (int n = 0; n < 2; n++) {
            double best = optimum(surfaces[k], spaces[n]);
            int within = 0;
            for (uint64_t seed = 0; seed < 10; seed++) {
                uint32_t trials;
                double over =
                    quality("coordinate_descent", surfaces[k], spaces[n], best, seed, &trials);
                within += over <= 1.025;
                assert_true(over < 1.12);
                assert_true(trials <= 150);
            }
            if (within < 9)
                fail_msg("surface %d, space %d: %d of 10 within 2.5 %%", k, n, within);
        }
}

/* With 3 % noise, from a search that takes few calls. */
static void default_finds_the_optimum(void **state)
{
    (void)state;
    const surface_fn surfaces[] = {bowl, two_basins};
    const struct att_space_owned *spaces[] = {one, six};
    for (int k = 0; k < 2; k++)
        for (int n = 0; n < 2; n++) {
            double best = optimum(surfaces[k], spaces[n]), sum = 0;
            for (uint64_t seed = 0; seed < 20; seed++) {
                uint32_t trials;
                double over = quality("default", surfaces[k], spaces[n], best, seed, &trials);
                sum += log(over) / 20;
                if (over > 1.08 || trials > 200)
                    fail_msg("surface %d, space %d, seed %d: %.1f %% over, %u trials", k, n,
                             (int)seed, 100 * (over - 1), trials);
            }
            if (sum > log(1.02))
                fail_msg("surface %d, space %d: %.1f %% over", k, n, 100 * expm1(sum));
        }
}

static void every_strategy_beats_the_default(void **state)
{
    (void)state;
    double best = optimum(bowl, six), keep = duration((void *)bowl, ATT_SETTING_KEEP) / best;
    for (size_t i = 0; i < SPECS; i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            uint32_t trials;
            double over = quality(specs[i], bowl, six, best, seed, &trials);
            assert_true(over <= keep * 1.0001);
        }
}

#define MOST 2000
typedef struct record {
    att_setting_t asked[MOST];
    uint32_t count;
} record_t;

/* What is told of the collective within a step. */
typedef struct within {
    double share;     /* of the collective in it; 0: a sample is the collective */
    uint32_t odd;     /* this result, from 1, has a stamp that is far off; 0: none */
    double odd_share; /* there */
    bool old;         /* by a host whose results do not know of it */
} within_t;
static within_t within;

static void tell_of_step(att_result_t *result, uint32_t number)
{
    result->mean_us = result->median_us;
    result->collective_us =
        (number == within.odd ? within.odd_share : within.share) * result->mean_us;
    if (within.old)
        result->size = offsetof(att_result_t, collective_us);
}

/* Talk to a strategy alone: all answers are exact, or of one failure kind. */
static void converse(const char *spec, const struct att_space_owned *space, uint64_t seed,
                     att_outcome_t every_third, uint32_t most, record_t *record)
{
    struct att_search *search;
    att_error_t error;
    record->count = 0;
    if (att_search_begin(host, spec, att_space_view(space), seed, &search, &error) != ATT_OK)
        fail_msg("%s: %s", spec, error.text);
    for (;;) {
        att_setting_t settings[15];
        uint32_t count;
        if (att_search_ask(search, most, &error) != ATT_OK ||
            att_search_poll(search, settings, &count, &error) != 1)
            fail_msg("%s: %s", spec, error.text);
        if (count == 0)
            break;
        for (uint32_t i = count; i-- > 0;) { /* told in another order */
            double us = duration((void *)bowl, settings[i]);
            att_result_t result = fixture_result(&us);
            result.baseline_median_us = duration((void *)bowl, ATT_SETTING_KEEP);
            if (every_third != ATT_OUTCOME_OK && record->count % 3 == 0) {
                result.outcome = every_third;
                if (every_third != ATT_OUTCOME_SLOW) {
                    result.sample_count = 0;
                    result.median_us = 0;
                }
            }
            tell_of_step(&result, record->count + 1);
            assert_true(record->count < MOST);
            record->asked[record->count++] = settings[i];
            assert_int_equal(att_search_tell(search, &settings[i], &result, &error), 0);
        }
    }
    att_setting_t best;
    assert_int_equal(att_search_best(search, &best, &error), 0);
    assert_true(att_setting_is_keep(best) || att_space_contains(att_space_view(space), best));
    att_search_end(search);
}

static bool same(const record_t *a, const record_t *b)
{
    return a->count == b->count && memcmp(a->asked, b->asked, a->count * sizeof *a->asked) == 0;
}

static record_t first, second;

static void a_seed_decides_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        converse(specs[i], six, 3, ATT_OUTCOME_OK, 15, &first);
        converse(specs[i], six, 3, ATT_OUTCOME_OK, 15, &second);
        assert_true(same(&first, &second));
        converse(specs[i], six, 4, ATT_OUTCOME_OK, 15, &second);
        assert_false(same(&first, &second));
        assert_true(first.count >= 10);
    }
}

static void failures_do_not_stop_a_search(void **state)
{
    (void)state;
    const att_outcome_t kinds[] = {ATT_OUTCOME_TIMEOUT, ATT_OUTCOME_ILLEGAL, ATT_OUTCOME_LOSSY,
                                   ATT_OUTCOME_SLOW};
    for (size_t i = 0; i < SPECS; i++)
        for (size_t k = 0; k < 4; k++) {
            converse(specs[i], six, 3, kinds[k], 15, &first);
            converse(specs[i], one, 3, kinds[k], 1, &second);
            assert_true(first.count >= 6 && second.count >= 1);
        }
}

static void no_setting_is_asked_twice(void **state)
{
    (void)state;
    const size_t once[] = {1, 3, 4}; /* random and the log variant may */
    for (size_t n = 0; n < 3; n++) {
        size_t i = once[n];
        converse(specs[i], six, 3, ATT_OUTCOME_OK, 15, &first);
        for (uint32_t a = 0; a < first.count; a++)
            for (uint32_t b = 0; b < a; b++)
                assert_false(att_setting_equal(first.asked[a], first.asked[b]));
    }
}

static uint32_t pairs_in(const record_t *record)
{
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < record->count; i++)
        pairs |= ATT_PAIR_BIT(record->asked[i].algorithm, record->asked[i].protocol);
    return pairs;
}

static void every_subspace_is_visited(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        converse(specs[i], six, 9, ATT_OUTCOME_OK, 15, &first);
        assert_int_equal(pairs_in(&first), 0x3f);
    }
}

static void exhaustive_covers_its_grid(void **state)
{
    (void)state;
    converse("exhaustive:grid=4,announce=0", one, 1, ATT_OUTCOME_OK, 15, &first);
    assert_int_equal(first.count, 4 * 5);
    int corners = 0, keeps = 0;
    for (uint32_t i = 0; i < first.count; i++) {
        const att_setting_t *x = &first.asked[i];
        corners += (x->channels == 1 || x->channels == 64) &&
                   (x->chunk_bytes == 4096 || x->chunk_bytes == 2097152);
        keeps += x->chunk_bytes == 0;
    }
    assert_int_equal(corners, 4);
    assert_int_equal(keeps, 4);
    converse("exhaustive:grid=3,channels=all,announce=0", one, 1, ATT_OUTCOME_OK, 15, &first);
    assert_int_equal(first.count, 64 * 4);
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    const char *bounded[] = {"random:trials=7",
                             "coordinate_descent:budget=7",
                             "coordinate_descent:budget=7,variant=code",
                             "coordinate_descent:budget=7,variant=paper",
                             "default:budget=7",
                             "annealing:trials=7",
                             "lagom:trials=7"};
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        converse(bounded[i], six, 3, ATT_OUTCOME_OK, 15, &first);
        assert_int_equal(first.count, 7);
    }
}

/* One stamp that is far off says nothing of the others. */
static void one_odd_stamp_changes_no_question_of_the_default(void **state)
{
    (void)state;
    const double odd[] = {1e-6, 50};
    for (int i = 0; i < 2; i++)
        for (uint32_t number = 1; number < 20; number += 6) {
            within = (within_t){.share = 0.3};
            converse("default:budget=60", six, 3, ATT_OUTCOME_OK, 15, &first);
            within = (within_t){.share = 0.3, .odd = number, .odd_share = odd[i]};
            converse("default:budget=60", six, 3, ATT_OUTCOME_OK, 15, &second);
            within = (within_t){0};
            assert_true(same(&first, &second));
            converse("default:budget=60", six, 3, ATT_OUTCOME_OK, 15, &second);
            assert_false(same(&first, &second)); /* it does count */
        }
}

static void a_host_that_does_not_know_of_steps_tells_nothing_of_them(void **state)
{
    (void)state;
    const char *knowing[] = {"default:budget=60", "lagom"};
    for (int i = 0; i < 2; i++) {
        converse(knowing[i], six, 3, ATT_OUTCOME_OK, 15, &first);
        within = (within_t){.share = 0.01, .old = true};
        converse(knowing[i], six, 3, ATT_OUTCOME_OK, 15, &second);
        within = (within_t){0};
        assert_true(same(&first, &second));
    }
}

static void kept_knobs_are_kept(void **state)
{
    (void)state;
    att_space_facts_t facts = {.collective = ATT_COLLECTIVE_ALL_REDUCE,
                               .bytes = 1 << 20,
                               .ranks = 4,
                               .nodes = 1,
                               .legal_pairs = 0x3f,
                               .connected_pairs = 0x3f,
                               .native = ATT_SETTING_KEEP};
    struct att_space_owned *bare;
    assert_int_equal(att_space_build(&facts, &bare, NULL), 0);
    for (size_t i = 0; i < SPECS; i++) {
        converse(specs[i], bare, 3, ATT_OUTCOME_OK, 15, &first);
        assert_int_equal(pairs_in(&first), 0x3f);
        for (uint32_t k = 0; k < first.count; k++)
            assert_true(first.asked[k].channels == 0 && first.asked[k].chunk_bytes == 0);
    }
    att_space_destroy(bare);
}

/* AutoCCL's published step: a knob is only ever raised from the best point, by at least one step.
 */
static void paper_only_raises(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        converse("coordinate_descent:variant=paper", one, seed, ATT_OUTCOME_OK, 15, &first);
        att_setting_t best = first.asked[0];
        for (uint32_t i = 1; i < first.count; i++) {
            const att_setting_t *x = &first.asked[i];
            assert_true((x->channels > best.channels) + (x->chunk_bytes > best.chunk_bytes) == 1);
            assert_true(x->channels >= best.channels && x->chunk_bytes >= best.chunk_bytes);
            if (duration((void *)bowl, *x) < duration((void *)bowl, best))
                best = *x;
        }
    }
}

static int setup(void **state)
{
    (void)state;
    att_log_set_level(ATT_LOG_ERROR);
    one = fixture_space(0);
    six = fixture_space(1);
    return att_strategy_host_create(ATTUNE_TEST_STRATEGIES, ATT_HOST_INPROCESS, 1, &host, NULL);
}

static int teardown(void **state)
{
    (void)state;
    att_strategy_host_destroy(host);
    att_space_destroy(one);
    att_space_destroy(six);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinate_descent_finds_the_optimum),
        cmocka_unit_test(default_finds_the_optimum),
        cmocka_unit_test(every_strategy_beats_the_default),
        cmocka_unit_test(a_seed_decides_everything),
        cmocka_unit_test(failures_do_not_stop_a_search),
        cmocka_unit_test(no_setting_is_asked_twice),
        cmocka_unit_test(every_subspace_is_visited),
        cmocka_unit_test(exhaustive_covers_its_grid),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(one_odd_stamp_changes_no_question_of_the_default),
        cmocka_unit_test(a_host_that_does_not_know_of_steps_tells_nothing_of_them),
        cmocka_unit_test(kept_knobs_are_kept),
        cmocka_unit_test(paper_only_raises),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
