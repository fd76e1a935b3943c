/*
 * AutoCCL's code takes its accelerated step along "an axis" by distance over all knobs, counted in
 * raw steps; after a gain the candidates lie far off the axis in the other knob, which coordinate
 * descent is not meant to change. The search as published stays on it.
 */
#include "surfaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const att_subspace_t ring = {.algorithm = ATT_ALGORITHM_RING,
                                    .protocol = ATT_PROTOCOL_SIMPLE,
                                    .transport = ATT_TRANSPORT_KEEP,
                                    .channels_min = 1,
                                    .channels_max = 32,
                                    .channels_step = 1,
                                    .chunk_min = 4096,
                                    .chunk_max = 2097152,
                                    .chunk_step = 512,
                                    .prior_us = 100};
static const att_space_t space = {.abi = ATT_STRATEGY_ABI,
                                  .size = sizeof space,
                                  .bytes = 83886080,
                                  .collective = ATT_COLLECTIVE_ALL_GATHER,
                                  .ranks = 8,
                                  .nodes = 1,
                                  .subspace_count = 1,
                                  .subspaces = &ring};

static uint32_t ask(struct att_search *search, att_setting_t *settings)
{
    uint32_t count = 0;
    assert_int_equal(att_search_ask(search, 15, NULL), 0);
    assert_int_equal(att_search_poll(search, settings, &count, NULL), 1);
    return count;
}

static void tell(struct att_search *search, const att_setting_t *setting, double us)
{
    att_result_t result = {.abi = ATT_STRATEGY_ABI,
                           .size = sizeof result,
                           .sample_count = 1,
                           .samples_us = &us,
                           .median_us = us,
                           .mean_us = us,
                           .baseline_median_us = 2000,
                           .baseline_count = 8,
                           .calls = 1};
    assert_int_equal(att_search_tell(search, setting, &result, NULL), 0);
}

/* Grid steps in which two settings differ. */
static int off_channels(att_setting_t a, att_setting_t b)
{
    return abs(a.channels - b.channels);
}
static int off_chunk(att_setting_t a, att_setting_t b)
{
    return abs((int)a.chunk_bytes - (int)b.chunk_bytes) / 512;
}

/* The descent gains 10 % with its first step along the channels; what does it try next? */
static void code_leaves_its_axis(void **state)
{
    (void)state;
    struct att_strategy_host *host = plugin_host();
    struct att_search *search;
    att_setting_t settings[15], best = ATT_SETTING_KEEP;
    double best_us = 1500;
    assert_int_equal(att_search_begin(host, "coordinate_descent:variant=code,budget=70", &space, 1,
                                      &search, NULL),
                     0);
    /* Sampling: 2/7 of the budget. The one in the middle of the channels wins. */
    uint32_t told = 0, count;
    while (told < 20 && (count = ask(search, settings)) > 0)
        for (uint32_t i = 0; i < count; i++, told++) {
            bool first = att_setting_is_keep(best) && settings[i].channels >= 4 &&
                         settings[i].channels <= 16;
            if (first)
                best = settings[i];
            tell(search, &settings[i], first ? best_us : 1900);
        }
    assert_int_equal(told, 20);
    /* The first, plain round stays near: its candidates are next to the best on the axis. */
    count = ask(search, settings);
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(settings[i].channels, best.channels + 1);
        assert_true(off_chunk(settings[i], best) <= 2);
        tell(search, &settings[i], i == 0 ? 0.9 * best_us : 1900);
    }
    best = settings[0];
    /* The accelerated one: step = 0.8 * 10 % of all points ahead. */
    count = ask(search, settings);
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        print_message("code: from channels %u, chunk %u to channels %u, chunk %u\n", best.channels,
                      best.chunk_bytes, settings[i].channels, settings[i].chunk_bytes);
        assert_true(off_channels(settings[i], best) > 0);
        assert_true(off_chunk(settings[i], best) > 100);
    }
    att_search_end(search);
    att_strategy_host_destroy(host);
}

static void published_search_stays_on_it(void **state)
{
    (void)state;
    struct att_strategy_host *host = plugin_host();
    struct att_search *search;
    att_setting_t settings[15], best = ATT_SETTING_KEEP;
    double best_us = 1900;
    assert_int_equal(att_search_begin(host, "coordinate_descent:variant=paper,budget=40", &space, 1,
                                      &search, NULL),
                     0);
    uint32_t moves = 0;
    for (int i = 0; i < 12 && ask(search, settings) == 1; i++) {
        att_setting_t x = settings[0];
        if (i > 0) {
            assert_true((off_channels(x, best) > 0) != (off_chunk(x, best) > 0));
            moves++;
        }
        bool better = i % 2 == 0; /* accelerates after every second one */
        best_us *= better ? 0.9 : 1;
        best = better ? x : best;
        tell(search, &x, better ? best_us : 1.2 * best_us);
    }
    assert_true(moves >= 5);
    att_search_end(search);
    att_strategy_host_destroy(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(code_leaves_its_axis),
                                       cmocka_unit_test(published_search_stays_on_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
