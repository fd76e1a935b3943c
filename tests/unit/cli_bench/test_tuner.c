/* The plugin that applies fixed settings, called as NCCL calls it. */
#include "cli/bench_setting.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct tuner {
    const char *name;
    int (*init)(void **, uint64_t, size_t, size_t, void *, void *, void *);
    int (*get_coll_info)(void *, int, size_t, int, float **, int, int, int, int *);
    int (*finalize)(void *);
    int (*get_chunk_size)(void *, int, size_t, int, int, int, size_t *);
};

static struct att_bench_setting *setting;
static const struct tuner *tuner;
static float table[7][3];
static int channels;

static att_setting_t parsed(const char *text)
{
    att_setting_t made;
    assert_int_equal(att_bench_setting_parse(text, &made, NULL), 0);
    return made;
}

/* Ring with all protocols and Tree/Simple are there; NCCL would take ring/ll128. */
static void ask(void)
{
    for (int a = 0; a < 7; a++)
        for (int p = 0; p < 3; p++)
            table[a][p] = -1.0f;
    table[1][0] = 30.0f;
    table[1][1] = 10.0f;
    table[1][2] = 20.0f;
    table[0][2] = 40.0f;
    channels = 0;
    assert_int_equal(tuner->get_coll_info(NULL, 4, 1 << 20, 1, (float **)table, 7, 3, 0, &channels),
                     0);
}

static int setup(void **state)
{
    assert_int_equal(att_bench_setting_open(-1, &setting, NULL), 0);
    void *library = dlopen(getenv("NCCL_TUNER_PLUGIN"), RTLD_NOW);
    assert_non_null(library);
    tuner = dlsym(library, "ncclTunerPlugin_v6");
    assert_non_null(tuner);
    assert_non_null(dlsym(library, "ncclTunerPlugin_v5"));
    void *context;
    assert_int_equal(tuner->init(&context, 1, 4, 1, NULL, NULL, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    att_bench_setting_close(setting);
    return 0;
}

static void test_keep_leaves_everything_and_notes_what_there_is(void **state)
{
    att_bench_setting_apply(setting, ATT_SETTING_KEEP);
    ask();
    ask();
    size_t chunk = 4096;
    assert_int_equal(tuner->get_chunk_size(NULL, 4, 1, 1, 2, 1, &chunk), 0);
    assert_true(table[1][1] == 10.0f && table[1][2] == 20.0f);
    assert_int_equal(channels, 0);
    assert_int_equal(chunk, 4096);
    att_bench_setting_table_t *t = att_bench_setting_table(setting);
    assert_int_equal(t->decisions, 2);
    assert_int_equal(t->legal_pairs, ATT_PAIR_BIT(1, 0) | ATT_PAIR_BIT(1, 1) | ATT_PAIR_BIT(1, 2) |
                                         ATT_PAIR_BIT(0, 2));
    assert_int_equal(t->native_pair, 1 * 3 + 1);
    assert_int_equal(t->refused, 0);
}

static void test_a_setting_is_applied(void **state)
{
    att_bench_setting_apply(setting, parsed("tree/simple ch=6 chunk=64K"));
    ask();
    assert_true(table[0][2] == 0.0f && table[1][1] == 10.0f && table[2][0] == -1.0f);
    assert_int_equal(channels, 6);
    size_t chunk = 4096, other = 4096;
    tuner->get_chunk_size(NULL, 4, 1, 0, 2, 1, &chunk);
    tuner->get_chunk_size(NULL, 4, 1, 1, 2, 1, &other);
    assert_int_equal(chunk, 64 << 10);
    assert_int_equal(other, 4096); /* another pair: not ours */
}

static void test_an_unavailable_pair_is_left_to_nccl_and_counted(void **state)
{
    att_bench_setting_apply(setting, parsed("nvls/simple ch=6"));
    ask();
    assert_true(table[4][2] == -1.0f);
    assert_int_equal(channels, 0);
    assert_int_equal(att_bench_setting_table(setting)->refused, 1);
}

static void test_chunks_below_the_grain_or_above_a_slot_are_not_given(void **state)
{
    size_t chunk = 4096;
    att_bench_setting_apply(setting, parsed("ring/ll128 chunk=1K"));
    tuner->get_chunk_size(NULL, 4, 1, 1, 1, 1, &chunk);
    assert_int_equal(chunk, 4096);
    att_bench_setting_apply(setting, parsed("nvls/simple chunk=256K"));
    tuner->get_chunk_size(NULL, 4, 1, 4, 2, 1, &chunk);
    assert_int_equal(chunk, 4096);
}

static void test_another_tuner_is_not_displaced(void **state)
{
    struct att_bench_setting *second = NULL;
    char before[4096];
    snprintf(before, sizeof before, "%s", getenv("NCCL_TUNER_PLUGIN"));
    setenv("NCCL_TUNER_PLUGIN", "aws-ofi", 1);
    att_error_t error;
    assert_int_equal(att_bench_setting_open(-1, &second, &error), -ATT_EBUSY);
    assert_non_null(strstr(error.text, "aws-ofi"));
    assert_null(second);
    setenv("NCCL_TUNER_PLUGIN", before, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep_leaves_everything_and_notes_what_there_is),
        cmocka_unit_test(test_a_setting_is_applied),
        cmocka_unit_test(test_an_unavailable_pair_is_left_to_nccl_and_counted),
        cmocka_unit_test(test_chunks_below_the_grain_or_above_a_slot_are_not_given),
        cmocka_unit_test(test_another_tuner_is_not_displaced),
    };
    return cmocka_run_group_tests_name("cli_bench_tuner", tests, setup, teardown);
}
