/* What is particular to each baseline strategy: which questions follow from which answers. */
#include "base/log.h"
#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct att_space_owned *one, *six;
static struct att_strategy_host *host;

#define MOST  2000
#define NOISE 0.03

/* What a setting takes: the step, and the collective within it (0: they are the same). */
typedef struct answer {
    double step_us, collective_us;
} answer_t;
typedef answer_t (*answer_fn)(att_setting_t setting);

typedef struct search {
    att_setting_t asked[MOST];
    uint32_t count;
    att_setting_t best;
} search_t;

static search_t found;

static double noise(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    double sum = 0; /* nearly normal */
    for (int i = 0; i < 12; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*random >> 11) * 0x1p-53;
    }
    return 1 + NOISE * (sum - 6);
}

static void search(const char *spec, const struct att_space_owned *space, uint64_t seed,
                   answer_fn answer, double baseline_us)
{
    struct att_search *search;
    att_error_t error;
    uint64_t random = seed;
    found.count = 0;
    if (att_search_begin(host, spec, att_space_view(space), seed, &search, &error) != ATT_OK)
        fail_msg("%s: %s", spec, error.text);
    for (;;) {
        att_setting_t settings[15];
        uint32_t count;
        if (att_search_ask(search, 15, &error) != ATT_OK ||
            att_search_poll(search, settings, &count, &error) != 1)
            fail_msg("%s: %s", spec, error.text);
        if (count == 0)
            break;
        for (uint32_t i = 0; i < count; i++) {
            answer_t a = answer(settings[i]);
            double factor = noise(&random), us = a.step_us * factor;
            att_result_t result = fixture_result(&us);
            result.baseline_median_us = baseline_us;
            result.collective_us = a.collective_us * factor;
            assert_true(found.count < MOST);
            found.asked[found.count++] = settings[i];
            assert_int_equal(att_search_tell(search, &settings[i], &result, &error), 0);
        }
    }
    assert_int_equal(att_search_best(search, &found.best, &error), 0);
    att_search_end(search);
}

/* ---- lagom ---- */

/* Communication gets faster with channels up to 32, compute slower: the collective alone is best
 * with 32, the step with 8, where the two meet. */
static double communication(att_setting_t x)
{
    double channels = x.channels > 32 ? 32 + 2.0 * (x.channels - 32) : x.channels;
    double chunk = x.chunk_bytes > 0 ? fabs(log2(x.chunk_bytes / 131072.0)) : 1;
    return (4000 * pow(x.channels < 32 ? channels : 64 - 32, -0.7) + 200 +
            (x.channels > 32 ? 10.0 * (channels - 32) : 0)) *
           (1 + 0.02 * chunk) * (x.algorithm == 1 && x.protocol == 2 ? 1 : 1.3);
}

static answer_t isolated(att_setting_t x)
{
    return (answer_t){communication(x), 0};
}

static answer_t overlapped(att_setting_t x)
{
    double collective = communication(x), compute = 900 * (1 + 0.03 * x.channels);
    return (answer_t){fmax(collective, compute), collective};
}

static void lagom_stops_where_compute_pays(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        search("lagom", one, seed, overlapped, 1600);
        assert_in_range(found.best.channels, 6, 10);
        for (uint32_t i = 0; i < found.count; i++)
            assert_true(found.asked[i].channels <= 16); /* never further than one move beyond */
        search("lagom", one, seed, isolated, 1600);
        assert_in_range(found.best.channels, 16, 64);
    }
}

static void lagom_begins_with_little(void **state)
{
    (void)state;
    search("lagom", one, 1, isolated, 1600);
    assert_int_equal(found.asked[0].channels, 1);
    search("lagom:channels=4", one, 1, isolated, 1600);
    assert_int_equal(found.asked[0].channels, 4);
}

/* The strategy that does not know of steps is led by what it is told: the step. */
static void default_minds_the_step(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        search("default", one, seed, overlapped, 1600);
        assert_in_range(found.best.channels, 6, 10);
        search("default", one, seed, isolated, 1600);
        assert_in_range(found.best.channels, 20, 40);
    }
}

/* ---- bandit ---- */

static answer_t tree_ll_is_fast(att_setting_t x)
{
    return (answer_t){x.algorithm == 0 && x.protocol == 0 ? 900 : 1100, 0};
}

static void bandit_takes_turns(void **state)
{
    (void)state;
    search("bandit:rounds=4", six, 5, tree_ll_is_fast, 1000);
    assert_int_equal(found.count, 4 * 6);
    for (uint32_t i = 0; i < found.count; i++) {
        assert_true(att_setting_equal(found.asked[i], found.asked[i % 6]));
        assert_int_equal(found.asked[i].channels, 24); /* NCCL's own */
        assert_int_equal(found.asked[i].chunk_bytes, 0);
    }
    assert_int_equal(found.best.algorithm, 0);
    assert_int_equal(found.best.protocol, 0);
    search("bandit", six, 5, tree_ll_is_fast, 500);
    assert_true(att_setting_is_keep(found.best)); /* no arm is faster than AUTO */
}

/* ---- annealing ---- */

static answer_t slope(att_setting_t x)
{
    return (answer_t){1000 + 2.0 * x.channels, 0};
}

static answer_t flat(att_setting_t x)
{
    (void)x;
    return (answer_t){1000, 0};
}

static double spread_of_steps(const char *spec, answer_fn answer)
{
    double sum = 0;
    search(spec, one, 3, answer, 1100);
    for (uint32_t i = found.count / 2; i < found.count; i++)
        sum += found.asked[i].channels;
    return sum / (found.count - found.count / 2);
}

/* Hot it wanders over a slope, cold it stays below. */
static void annealing_obeys_its_temperature(void **state)
{
    (void)state;
    assert_true(spread_of_steps("annealing:trials=300,hot=100,cold=100", slope) > 12);
    assert_true(spread_of_steps("annealing:trials=300,hot=0.001,cold=0.001", slope) < 6);
    assert_true(spread_of_steps("annealing:trials=300,hot=0.001,cold=0.001", flat) > 3);
}

static void annealing_begins_at_the_incumbent(void **state)
{
    (void)state;
    search("annealing:trials=20", six, 1, slope, 1100);
    assert_int_equal(found.asked[0].algorithm, 1);
    assert_int_equal(found.asked[0].protocol, 2);
    assert_int_equal(found.asked[0].channels, 24);
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
        cmocka_unit_test(lagom_stops_where_compute_pays),
        cmocka_unit_test(lagom_begins_with_little),
        cmocka_unit_test(default_minds_the_step),
        cmocka_unit_test(bandit_takes_turns),
        cmocka_unit_test(annealing_obeys_its_temperature),
        cmocka_unit_test(annealing_begins_at_the_incumbent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
