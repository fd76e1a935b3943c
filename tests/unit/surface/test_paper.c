/*
 * data/paper.json against the modelled surfaces: every row that names a surface (or five) is looked
 * up there. Numbers and means within 3 %, ranges inside, orders in order. Table 3 is here too;
 * tables 4 to 6 and figure 3 are in test_published.c setting by setting.
 */
#include "base/names.h"
#include "surface/surface.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TOLERANCE  0.03
#define CHUNK_STEP 1.03

typedef struct task {
    struct att_surface *surface;
    int collective, load;
    uint64_t bytes;
} task_t;

static json_t *rows;

static int open_paper(void **state)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/../paper.json", getenv("ATTUNE_DATA_DIR"));
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        print_error("%s:%d: %s\n", path, error.line, error.text);
        return -1;
    }
    rows = json_incref(json_object_get(root, "rows"));
    json_decref(root);
    return rows == NULL ? -1 : 0;
}

static int close_paper(void **state)
{
    json_decref(rows);
    return 0;
}

static struct att_surface *open_surface(const char *name)
{
    struct att_surface *surface;
    att_error_t error = {""};
    if (att_surface_open(name, &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    return surface;
}

static double gbs(const task_t *t, att_setting_t setting)
{
    double us = att_surface_duration_us(t->surface, t->collective, t->bytes, setting, t->load);
    return us > 0 ? (double)t->bytes / us / 1e3 : -1;
}

/* The best that a tuner can set per call: all channels, chunks in steps of 3 %. */
static double best_gbs(const task_t *t, int all_knobs)
{
    att_subspace_t s[ATT_SURFACE_SUBSPACES];
    uint32_t count = att_surface_space(t->surface, t->collective, t->bytes, all_knobs, s);
    double best = gbs(t, ATT_SETTING_KEEP);
    for (uint32_t i = 0; i < count; i++)
        for (int nc = s[i].channels_min; nc <= s[i].channels_max; nc++)
            for (int nt = s[i].threads_min; nt <= s[i].threads_max; nt += 32)
                for (double c = s[i].chunk_min; c <= s[i].chunk_max; c *= CHUNK_STEP) {
                    att_setting_t x = {.algorithm = s[i].algorithm,
                                       .protocol = s[i].protocol,
                                       .transport = s[i].transport,
                                       .channels = (uint16_t)nc,
                                       .threads = (uint16_t)nt,
                                       .chunk_bytes = (uint32_t)c};
                    best = fmax(best, gbs(t, x));
                }
    return best;
}

static double gain(const task_t *t)
{
    return best_gbs(t, 0) / gbs(t, ATT_SETTING_KEEP);
}

/* Geometric mean over powers of two; least and most on the way. */
static double mean_gain(task_t t, uint64_t from, uint64_t to, double *least, double *most)
{
    double logs = 0;
    int count = 0;
    *least = INFINITY;
    *most = 0;
    for (t.bytes = from; t.bytes <= to; t.bytes *= 2, count++) {
        double value = gain(&t);
        logs += log(value);
        *least = fmin(*least, value);
        *most = fmax(*most, value);
    }
    return exp(logs / count);
}

static void assert_near(const char *what, double got, double expected)
{
    print_message("%-60s %8.3f, published %8.3f (%+.1f %%)\n", what, got, expected,
                  100 * (got / expected - 1));
    if (!(fabs(got / expected - 1) <= TOLERANCE))
        fail_msg("%s: %.3f is not within 3 %% of %.3f", what, got, expected);
}

/* 0 when the row has no such number. */
static double number(json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static task_t task_of(json_t *row, const char *surface)
{
    const char *load = json_string_value(json_object_get(row, "load"));
    task_t t = {.surface = open_surface(surface),
                .collective =
                    att_collective_parse(json_string_value(json_object_get(row, "collective"))),
                .bytes = (uint64_t)json_integer_value(json_object_get(row, "bytes"))};
    t.load = att_surface_load_index(t.surface, load);
    if (t.collective < 0 || t.load < 0)
        fail_msg("%s: no collective or load '%s' there", surface, load);
    return t;
}

static void check_row(json_t *row, int *checked)
{
    const char *source = json_string_value(json_object_get(row, "source"));
    const char *kind = json_string_value(json_object_get(row, "kind"));
    const char *surface = json_string_value(json_object_get(row, "surface"));
    char what[160];
    if (surface == NULL)
        return;
    task_t t = task_of(row, surface);
    snprintf(what, sizeof what, "%s, %s, %s", source, surface,
             json_string_value(json_object_get(row, "load")));
    if (strcmp(kind, "numeric") == 0) {
        double native = gbs(&t, ATT_SETTING_KEEP),
               best = best_gbs(&t, json_is_true(json_object_get(row, "all_knobs")));
        if (number(row, "nccl_gbs") > 0)
            assert_near(what, native, number(row, "nccl_gbs"));
        if (number(row, "autoccl_gbs") > 0)
            assert_near(what, best, number(row, "autoccl_gbs"));
        if (number(row, "autoccl_speedup") > 0)
            assert_near(what, best / native, number(row, "autoccl_speedup"));
        ++*checked;
    } else {
        double least, most,
            mean = mean_gain(t, (uint64_t)number(row, "bytes_from"),
                             (uint64_t)number(row, "bytes_to"), &least, &most);
        double low = number(row, "autoccl_speedup_low"), high = number(row, "autoccl_speedup_high");
        print_message("%-60s %8.3f to %8.3f\n", what, least, most);
        if (strcmp(kind, "mean") == 0)
            assert_near(what, mean, number(row, "autoccl_speedup"));
        if (high > 0 && !(least >= low && most <= high))
            fail_msg("%s: gains from %.3f to %.3f, published %.3f to %.3f", what, least, most, low,
                     high);
        ++*checked;
    }
    att_surface_close(t.surface);
}

static void every_row_holds(void **state)
{
    size_t i;
    json_t *row;
    int checked = 0;
    json_array_foreach(rows, i, row) check_row(row, &checked);
    print_message("%d rows\n", checked);
    assert_true(checked >= 17);
}

/* Figure 8: one mean over five setups. */
static void mean_over_setups_holds(void **state)
{
    size_t i, j;
    json_t *row, *name;
    int found = 0;
    json_array_foreach(rows, i, row)
    {
        json_t *names = json_object_get(row, "surfaces");
        double logs = 0, least, most;
        json_array_foreach(names, j, name)
        {
            task_t t = task_of(row, json_string_value(name));
            double mean = mean_gain(t, (uint64_t)number(row, "bytes_from"),
                                    (uint64_t)number(row, "bytes_to"), &least, &most);
            print_message("%-60s %8.3f\n", json_string_value(name), mean);
            logs += log(mean);
            att_surface_close(t.surface);
        }
        if (names != NULL) {
            assert_near("mean over the setups", exp(logs / (double)json_array_size(names)),
                        number(row, "autoccl_speedup"));
            found++;
        }
    }
    assert_int_equal(found, 1);
}

static att_setting_t ring(int transport, int channels, int threads, int chunk_kib)
{
    return (att_setting_t){.algorithm = ATT_ALGORITHM_RING,
                           .protocol = ATT_PROTOCOL_SIMPLE,
                           .transport = (int8_t)transport,
                           .channels = (uint16_t)channels,
                           .threads = (uint16_t)threads,
                           .chunk_bytes = (uint32_t)chunk_kib * 1024};
}

/* Four settings on PCIe, relative to the last one; and nothing is much better than that. */
static void table_3(void **state)
{
    task_t t = {open_surface("a40-pcie-8-allgather"), ATT_COLLECTIVE_ALL_GATHER, 0, 80ull << 20};
    att_setting_t cp0 = ring(ATT_TRANSPORT_SHM, 2, 256, 2048);
    att_setting_t native = att_surface_default(t.surface, t.collective, t.bytes);
    double cp3 = gbs(&t, ring(ATT_TRANSPORT_P2P, 8, 96, 32));
    double cp2 = gbs(&t, ring(ATT_TRANSPORT_P2P, 8, 256, 32));
    assert_true(att_setting_equal(native, cp0));
    assert_near("CP0 over CP3", gbs(&t, cp0) / cp3, 0.812);
    assert_near("CP1 over CP3", gbs(&t, ring(ATT_TRANSPORT_P2P, 2, 96, 32)) / cp3, 0.372);
    assert_true(cp2 < cp3); /* more threads are worse */
    assert_near("six-knob optimum over CP3", best_gbs(&t, 1) / cp3, 1.0);
    att_surface_close(t.surface);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_holds),
        cmocka_unit_test(mean_over_setups_holds),
        cmocka_unit_test(table_3),
    };
    return cmocka_run_group_tests_name("surface_paper", tests, open_paper, close_paper);
}
