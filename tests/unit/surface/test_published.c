/*
 * The shipped surfaces against what was published (AutoCCL, NSDI'25: tables 4 to 6, figure 3), and
 * what an exhaustive look over their settings finds.
 */
#include "base/names.h"
#include "surface/surface.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { K = 1024, TREE = ATT_ALGORITHM_TREE, RING = ATT_ALGORITHM_RING };
enum { P2P = ATT_TRANSPORT_P2P, SHM = ATT_TRANSPORT_SHM };

#define TOLERANCE 0.03

typedef struct task {
    const char *name;
    int collective;
    uint64_t bytes;
    struct att_surface *surface;
} task_t;

static task_t gather = {"a40-nvlink-8-allgather", ATT_COLLECTIVE_ALL_GATHER, 80ull << 20, NULL};
static task_t reduce16 = {"a40-pcie-16-allreduce", ATT_COLLECTIVE_ALL_REDUCE, 64ull << 20, NULL};
static task_t reduce8 = {"a40-pcie-8-allreduce", ATT_COLLECTIVE_ALL_REDUCE, 15ull << 20, NULL};

static int open_surfaces(void **state)
{
    task_t *all[] = {&gather, &reduce16, &reduce8};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        att_error_t error;
        if (att_surface_open(all[i]->name, &all[i]->surface, &error) != ATT_OK) {
            fprintf(stderr, "%s\n", error.text);
            return -1;
        }
    }
    return 0;
}

static int close_surfaces(void **state)
{
    att_surface_close(gather.surface);
    att_surface_close(reduce16.surface);
    att_surface_close(reduce8.surface);
    return 0;
}

static double gbs(const task_t *task, att_setting_t setting, int load)
{
    double us =
        att_surface_duration_us(task->surface, task->collective, task->bytes, setting, load);
    return us > 0 ? (double)task->bytes / us / 1e3 : -1;
}

static att_setting_t simple(int algorithm, int transport, int channels, int threads, int chunk_kib)
{
    return (att_setting_t){.algorithm = (int8_t)algorithm,
                           .protocol = ATT_PROTOCOL_SIMPLE,
                           .transport = (int8_t)transport,
                           .channels = (uint16_t)channels,
                           .threads = (uint16_t)threads,
                           .chunk_bytes = (uint32_t)chunk_kib * K};
}

static void assert_within(const char *what, double got, double low, double high)
{
    print_message("%-40s %6.2f GB/s (%.2f .. %.2f)\n", what, got, low, high);
    if (!(got >= low && got <= high))
        fail_msg("%s: %.3f GB/s is outside %.3f .. %.3f", what, got, low, high);
}

static void assert_published(const char *what, double got, double published)
{
    assert_within(what, got, published * (1 - TOLERANCE), published * (1 + TOLERANCE));
}

typedef struct best {
    double gbs;
    att_setting_t setting;
} best_t;

/* What a tuner can set on stock NCCL: A, P, every NC, every C on the grain; NT and T kept. */
static best_t stock_best(const task_t *task, int load)
{
    best_t best = {0};
    uint32_t offered = att_surface_pairs(task->surface, task->collective);
    int ceiling = att_surface_info(task->surface)->channels_ceiling;
    for (int pair = 0; pair < ATT_PAIR_COUNT; pair++) {
        if (!(offered & 1u << pair))
            continue;
        att_setting_t most = {.algorithm = (int8_t)(pair / 3),
                              .protocol = (int8_t)(pair % 3),
                              .transport = ATT_TRANSPORT_KEEP,
                              .chunk_bytes = UINT32_MAX};
        uint32_t chunk_max =
            att_surface_resolve(task->surface, task->collective, task->bytes, most).chunk_bytes;
        static const uint32_t grains[] = {16, 1920, 512};
        for (int channels = 1; channels <= ceiling; channels++)
            for (uint32_t c = grains[pair % 3]; c <= chunk_max; c += grains[pair % 3]) {
                att_setting_t x = most;
                x.channels = (uint16_t)channels;
                x.chunk_bytes = c;
                double value = gbs(task, x, load);
                if (value > best.gbs)
                    best = (best_t){value, x};
            }
    }
    return best;
}

/* All six knobs; C in steps of 6 %. */
static best_t six_knob_best(const task_t *task, int load)
{
    best_t best = {0};
    uint32_t offered = att_surface_pairs(task->surface, task->collective);
    int ceiling = att_surface_info(task->surface)->channels_ceiling;
    for (int pair = 0; pair < ATT_PAIR_COUNT; pair++)
        for (int transport = 0; transport < ATT_TRANSPORT_COUNT; transport++)
            for (int threads = 32; threads <= 640; threads += 32)
                for (int channels = 1; channels <= ceiling; channels++)
                    for (double c = 2048; c <= 2.2e6 && (offered & 1u << pair); c *= 1.06) {
                        att_setting_t x = {.algorithm = (int8_t)(pair / 3),
                                           .protocol = (int8_t)(pair % 3),
                                           .transport = (int8_t)transport,
                                           .channels = (uint16_t)channels,
                                           .threads = (uint16_t)threads,
                                           .chunk_bytes = (uint32_t)c};
                        double value = gbs(task, x, load);
                        if (value > best.gbs)
                            best = (best_t){value, x};
                        else if (value < 0)
                            break;
                    }
    return best;
}

static void print_best(const char *what, best_t best)
{
    char text[ATT_SETTING_TEXT];
    print_message("%-40s %6.2f GB/s %s\n", what, best.gbs,
                  att_setting_text(best.setting, text, sizeof text));
}

static void allgather_default_is_nccls(void **state)
{
    att_setting_t native = att_surface_default(gather.surface, gather.collective, gather.bytes);
    assert_true(att_setting_equal(native, simple(RING, P2P, 8, 512, 2048)));
    assert_published("NCCL's choice, none", gbs(&gather, native, 0), 30.08);
    assert_published("NCCL's choice, light", gbs(&gather, native, 1), 26.21);
    assert_published("NCCL's choice, heavy", gbs(&gather, native, 2), 18.26);
    assert_int_equal(att_surface_load_index(gather.surface, "light"), 1);
    assert_int_equal(att_surface_load_index(gather.surface, "heavy"), 2);
    assert_int_equal(att_surface_info(gather.surface)->channels_ceiling, 64);
    assert_int_equal(att_surface_info(gather.surface)->device_units, 84);
}

static void allgather_table_4(void **state)
{
    double cn0 = gbs(&gather, simple(RING, P2P, 8, 512, 2048), 0);
    double cn1 = gbs(&gather, simple(RING, P2P, 64, 512, 108), 0);
    double cn2 = gbs(&gather, simple(RING, SHM, 8, 512, 108), 0);
    double cn3 = gbs(&gather, simple(RING, SHM, 64, 512, 108), 0);
    assert_published("CN1", cn1, 23);
    assert_within("CN2", cn2, 30.1, 38.62);
    assert_published("CN3", cn3, 38.62);
    assert_true(cn1 < cn0 && cn0 < cn2 && cn2 < cn3);
}

static void allgather_optimum_is_the_tuned_value(void **state)
{
    static const double published[] = {38.62, 35.14, 32.44};
    static const double at_least[] = {38.0, 34.6, 32.1};
    best_t found[3];
    for (int load = 0; load < 3; load++) {
        char what[64];
        found[load] = stock_best(&gather, load);
        snprintf(what, sizeof what, "stock optimum, load %d", load);
        print_best(what, found[load]);
        assert_published(what, found[load].gbs, published[load]);
        assert_true(found[load].gbs >= at_least[load]);
        best_t six = six_knob_best(&gather, load);
        snprintf(what, sizeof what, "six-knob optimum, load %d", load);
        print_best(what, six);
        assert_published(what, fmax(six.gbs, found[load].gbs), published[load]);
    }
    /* tuning under load is worth more than carrying the idle optimum over */
    assert_false(att_setting_equal(found[0].setting, found[2].setting));
    assert_within("idle optimum under heavy load", gbs(&gather, found[0].setting, 2), 18.26,
                  0.98 * found[2].gbs);
}

/* Figure 3: where the best value of one knob lies, the named grid point or its neighbour. */
static void allgather_figure_3(void **state)
{
    static const struct {
        int channels, threads, chunk_kib, best;
    } rows[] = {{0, 96, 80, 4}, {0, 96, 20, 16}, {2, 0, 120, 320}, {4, 0, 120, 192}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int sweep_channels = rows[i].channels == 0, step = sweep_channels ? 1 : 32, at = 0;
        double top = 0, first = 0, last = 0;
        for (int v = step; v <= (sweep_channels ? 64 : 640); v += step) {
            att_setting_t x = sweep_channels
                                  ? simple(RING, P2P, v, rows[i].threads, rows[i].chunk_kib)
                                  : simple(RING, P2P, rows[i].channels, v, rows[i].chunk_kib);
            last = gbs(&gather, x, 0);
            first = first > 0 ? first : last;
            if (last > top) {
                top = last;
                at = v;
            }
        }
        print_message("figure 3, row %zu: best at %d (published %d), %.2f GB/s\n", i, at,
                      rows[i].best, top);
        assert_in_range(at, rows[i].best - step, rows[i].best + step);
        assert_true(top > first && top > last);
    }
}

/*
 * Local optima by exhaustive enumeration: settings that no change of one knob alone (protocol,
 * channels, or chunk to any other legal value) makes faster, and those that no single step makes
 * faster.
 */
typedef struct plane {
    int pair;
    uint32_t grain, chunks; /* chunk of index k is (k + 1) * grain */
    double *us;             /* [channels - 1][chunk] */
} plane_t;

static double plane_at(const plane_t *plane, int channel, uint32_t bytes)
{
    if (bytes % plane->grain != 0 || bytes / plane->grain > plane->chunks)
        return INFINITY;
    return plane->us[(size_t)channel * plane->chunks + bytes / plane->grain - 1];
}

static void allgather_has_local_optima(void **state)
{
    enum { CHANNELS = 64 };
    plane_t planes[3] = {{3, 16, 2048, NULL}, {4, 1920, 300, NULL}, {5, 512, 4096, NULL}};
    assert_int_equal(att_surface_pairs(gather.surface, gather.collective), 7u << 3);
    for (int load = 0; load < 3; load++) {
        for (int p = 0; p < 3; p++) {
            plane_t *plane = &planes[p];
            plane->us = malloc(CHANNELS * plane->chunks * sizeof *plane->us);
            assert_non_null(plane->us);
            for (int nc = 0; nc < CHANNELS; nc++)
                for (uint32_t k = 0; k < plane->chunks; k++) {
                    att_setting_t x = {.algorithm = RING,
                                       .protocol = (int8_t)p,
                                       .transport = ATT_TRANSPORT_KEEP,
                                       .channels = (uint16_t)(nc + 1),
                                       .chunk_bytes = (k + 1) * plane->grain};
                    plane->us[(size_t)nc * plane->chunks + k] = att_surface_duration_us(
                        gather.surface, gather.collective, gather.bytes, x, load);
                }
        }
        int any_move[3] = {0}, one_step[3] = {0};
        best_t best[3] = {0};
        for (int p = 0; p < 3; p++) {
            const plane_t *plane = &planes[p];
            uint32_t n = plane->chunks;
            double *column = malloc(n * sizeof *column); /* best over channels */
            for (uint32_t k = 0; k < n; k++) {
                column[k] = INFINITY;
                for (int nc = 0; nc < CHANNELS; nc++)
                    column[k] = fmin(column[k], plane->us[(size_t)nc * n + k]);
            }
            for (int nc = 0; nc < CHANNELS; nc++) {
                const double *us = plane->us + (size_t)nc * n;
                double row = INFINITY;
                for (uint32_t k = 0; k < n; k++)
                    row = fmin(row, us[k]);
                for (uint32_t k = 0; k < n; k++) {
                    double other = INFINITY;
                    for (int q = 0; q < 3; q++)
                        if (q != p)
                            other = fmin(other, plane_at(&planes[q], nc, (k + 1) * plane->grain));
                    if (us[k] >= other)
                        continue;
                    double left = k > 0 ? us[k - 1] : INFINITY;
                    double right = k + 1 < n ? us[k + 1] : INFINITY;
                    double down = nc > 0 ? *(us + k - n) : INFINITY;
                    double up = nc + 1 < CHANNELS ? us[k + n] : INFINITY;
                    one_step[p] += us[k] < left && us[k] < right && us[k] < down && us[k] < up;
                    if (us[k] > row || us[k] > column[k])
                        continue;
                    any_move[p]++;
                    double value = (double)gather.bytes / us[k] / 1e3;
                    if (value > best[p].gbs)
                        best[p] = (best_t){value,
                                           {.algorithm = RING,
                                            .protocol = (int8_t)p,
                                            .transport = ATT_TRANSPORT_KEEP,
                                            .channels = (uint16_t)(nc + 1),
                                            .chunk_bytes = (k + 1) * plane->grain}};
                }
            }
            free(column);
        }
        for (int p = 0; p < 3; p++) {
            print_message("load %d, %s: %d optima under any change of one knob, %d under one "
                          "step\n",
                          load, att_protocol_name(p), any_move[p], one_step[p]);
            if (any_move[p] > 0)
                print_best("  best of them", best[p]);
            free(planes[p].us);
        }
        assert_true(any_move[0] + any_move[1] + any_move[2] >= 2);
        assert_true(one_step[0] + one_step[1] + one_step[2] >= 2);
        /* ... that lie in different protocols, the smaller one clearly so */
        assert_true(any_move[1] >= 1 && any_move[2] >= 1);
        assert_true(best[1].gbs < 0.98 * best[2].gbs);
    }
}

static void allreduce_table_5(void **state)
{
    att_setting_t native =
        att_surface_default(reduce16.surface, reduce16.collective, reduce16.bytes);
    assert_true(att_setting_equal(native, simple(RING, SHM, 2, 256, 512)));
    assert_published("C0, NCCL's choice", gbs(&reduce16, native, 0), 4.0);
    assert_published("C1", gbs(&reduce16, simple(TREE, SHM, 2, 256, 512), 0), 5.4);
    assert_published("C2", gbs(&reduce16, simple(TREE, SHM, 8, 160, 59), 0), 8.9);
    best_t stock = stock_best(&reduce16, 0), six = six_knob_best(&reduce16, 0);
    print_best("stock optimum", stock);
    print_best("six-knob optimum", six);
    assert_published("six-knob optimum", fmax(six.gbs, stock.gbs), 8.9);
    assert_published("stock optimum", stock.gbs, 8.9);
    assert_int_equal(stock.setting.algorithm, TREE);
}

static void allreduce_on_8(void **state)
{
    assert_published("C3", gbs(&reduce8, simple(TREE, SHM, 8, 160, 59), 0), 8.1);
    assert_published("C4", gbs(&reduce8, simple(RING, SHM, 10, 128, 27), 0), 8.8);
    best_t stock = stock_best(&reduce8, 0), six = six_knob_best(&reduce8, 0);
    print_best("stock optimum", stock);
    print_best("six-knob optimum", six);
    assert_published("six-knob optimum", fmax(six.gbs, stock.gbs), 8.8);
    att_setting_t native = att_surface_default(reduce8.surface, reduce8.collective, reduce8.bytes);
    print_best("NCCL's choice (not published)", (best_t){gbs(&reduce8, native, 0), native});
}

/* NCCL's choice is the strict minimum of the estimates. */
static void default_is_the_cheapest_pair(void **state)
{
    const task_t *all[] = {&gather, &reduce16, &reduce8};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const task_t *t = all[i];
        for (uint64_t bytes = 1; bytes <= 1ull << 34; bytes *= 2) {
            att_setting_t native = att_surface_default(t->surface, t->collective, bytes);
            double least = att_surface_cost_us(t->surface, t->collective, bytes, native.algorithm,
                                               native.protocol);
            for (int pair = 0; pair < ATT_PAIR_COUNT; pair++) {
                double us =
                    att_surface_cost_us(t->surface, t->collective, bytes, pair / 3, pair % 3);
                if (us >= 0 && pair != native.algorithm * 3 + native.protocol)
                    assert_true(us > least);
            }
        }
    }
}

/* Durations of other sizes: finite, above 0, and growing. */
static void other_sizes_are_sane(void **state)
{
    const task_t *all[] = {&gather, &reduce16, &reduce8};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const task_t *t = all[i];
        uint32_t pairs = att_surface_pairs(t->surface, t->collective);
        for (int pair = 0; pair < ATT_PAIR_COUNT; pair++) {
            att_setting_t x = {.algorithm = (int8_t)(pair / 3),
                               .protocol = (int8_t)(pair % 3),
                               .transport = ATT_TRANSPORT_KEEP};
            double before = 0;
            for (uint64_t bytes = 1; bytes <= 1ull << 34 && (pairs & 1u << pair); bytes *= 4) {
                double us = att_surface_duration_us(t->surface, t->collective, bytes, x, 0);
                if (!(us > before && us < 1e8))
                    fail_msg("%s, %s/%s: %llu bytes take %g us, a quarter of them %g us", t->name,
                             att_algorithm_name(pair / 3), att_protocol_name(pair % 3),
                             (unsigned long long)bytes, us, before);
                before = us;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allgather_default_is_nccls),
        cmocka_unit_test(allgather_table_4),
        cmocka_unit_test(allgather_optimum_is_the_tuned_value),
        cmocka_unit_test(allgather_figure_3),
        cmocka_unit_test(allgather_has_local_optima),
        cmocka_unit_test(allreduce_table_5),
        cmocka_unit_test(allreduce_on_8),
        cmocka_unit_test(default_is_the_cheapest_pair),
        cmocka_unit_test(other_sizes_are_sane),
    };
    return cmocka_run_group_tests_name("surface_published", tests, open_surfaces, close_surfaces);
}
