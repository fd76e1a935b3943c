/* Lookup by name, kept knobs, NCCL's own choice, and settings without meaning. */
#include "surface/surface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { AR = ATT_COLLECTIVE_ALL_REDUCE, MIB = 1 << 20 };

static struct att_surface *surface;

static int open_minimal(void **state)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/surfaces/minimal.json", getenv("ATTUNE_TEST_DATA"));
    return att_surface_open(path, &surface, NULL);
}

static int close_minimal(void **state)
{
    att_surface_close(surface);
    return 0;
}

static att_setting_t make(int algorithm, int protocol, int transport, int channels, int threads,
                          uint32_t chunk)
{
    return (att_setting_t){.algorithm = (int8_t)algorithm,
                           .protocol = (int8_t)protocol,
                           .transport = (int8_t)transport,
                           .channels = (uint16_t)channels,
                           .threads = (uint16_t)threads,
                           .chunk_bytes = chunk};
}

static void assert_setting(att_setting_t got, att_setting_t expected)
{
    if (!att_setting_equal(got, expected))
        fail_msg("got %d/%d/%d ch %d thr %d chunk %u", got.algorithm, got.protocol, got.transport,
                 got.channels, got.threads, got.chunk_bytes);
}

static void pairs_are_those_of_the_file(void **state)
{
    assert_int_equal(att_surface_pairs(surface, AR),
                     ATT_PAIR_BIT(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL) |
                         ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE));
    assert_int_equal(att_surface_pairs(surface, ATT_COLLECTIVE_BROADCAST), 0);
    assert_int_equal(att_surface_pairs(surface, -1), 0);
    assert_int_equal(att_surface_pairs(surface, ATT_COLLECTIVE_COUNT), 0);
}

static void cost_is_latency_plus_bytes(void **state)
{
    assert_float_equal(att_surface_cost_us(surface, AR, 8000, 0, 0), 5 + 4, 1e-9);
    assert_float_equal(att_surface_cost_us(surface, AR, 8000, 1, 2), 20 + 1, 1e-9);
    assert_true(att_surface_cost_us(surface, AR, 8000, 1, 0) < 0);
    assert_true(att_surface_cost_us(surface, AR, 8000, -1, -1) < 0);
    assert_true(att_surface_cost_us(surface, ATT_COLLECTIVE_REDUCE, 8000, 1, 2) < 0);
}

/* The estimates cross at 40,000 bytes. */
static void default_is_the_smallest_estimate(void **state)
{
    assert_setting(att_surface_default(surface, AR, MIB),
                   make(1, 2, ATT_TRANSPORT_SHM, 2, 512, 524288));
    assert_int_equal(att_surface_default(surface, AR, 39999).algorithm, ATT_ALGORITHM_TREE);
    assert_int_equal(att_surface_default(surface, AR, 40001).algorithm, ATT_ALGORITHM_RING);
    assert_true(att_setting_is_keep(att_surface_default(surface, ATT_COLLECTIVE_REDUCE, MIB)));
}

static void small_messages_get_fewer_channels_and_threads(void **state)
{
    /* tree/ll: 8 bytes a thread; 2 * 256 * 8 = 4096, 256 * 8 = 2048 */
    assert_int_equal(att_surface_default(surface, AR, 8192).channels, 4);
    assert_int_equal(att_surface_default(surface, AR, 4096).channels, 2);
    assert_setting(att_surface_default(surface, AR, 2047),
                   make(0, 0, ATT_TRANSPORT_P2P, 1, 128, 32768));
    assert_setting(att_surface_default(surface, AR, 0),
                   make(0, 0, ATT_TRANSPORT_P2P, 1, 96, 32768));
}

static void kept_knobs_are_filled_in(void **state)
{
    assert_setting(att_surface_resolve(surface, AR, MIB, make(0, 0, -1, 0, 0, 0)),
                   make(0, 0, ATT_TRANSPORT_P2P, 4, 256, 32768));
    assert_setting(att_surface_resolve(surface, AR, MIB, make(1, 2, -1, 7, 0, 65536)),
                   make(1, 2, ATT_TRANSPORT_SHM, 7, 512, 65536));
    assert_setting(att_surface_resolve(surface, AR, MIB, make(-1, -1, -1, 7, 0, 0)),
                   make(1, 2, ATT_TRANSPORT_SHM, 7, 512, 524288));
    assert_setting(att_surface_resolve(surface, AR, MIB, make(1, 2, 0, 1, 32, 512)),
                   make(1, 2, ATT_TRANSPORT_P2P, 1, 32, 512));
    /* chunks: floored to the grain, cut at the most */
    assert_int_equal(att_surface_resolve(surface, AR, MIB, make(1, 2, -1, 0, 0, 66000)).chunk_bytes,
                     65536);
    assert_int_equal(
        att_surface_resolve(surface, AR, MIB, make(1, 2, -1, 0, 0, 9 * MIB)).chunk_bytes, 2 * MIB);
    /* a pair that is not offered stays as it is */
    assert_setting(att_surface_resolve(surface, AR, MIB, make(1, 0, -1, 0, 0, 0)),
                   make(1, 0, -1, 0, 0, 0));
}

static void keep_lasts_as_long_as_what_it_stands_for(void **state)
{
    for (uint64_t bytes = 1; bytes < 1ull << 32; bytes *= 5) {
        double keep = att_surface_duration_us(surface, AR, bytes, ATT_SETTING_KEEP, 1);
        double full =
            att_surface_duration_us(surface, AR, bytes, att_surface_default(surface, AR, bytes), 1);
        assert_true(keep > 0);
        assert_true(keep == full);
    }
}

static void settings_without_meaning_are_negative(void **state)
{
    assert_true(att_surface_duration_us(surface, AR, MIB, make(1, 2, 0, 8, 640, 512), 0) > 0);
    const att_setting_t none[] = {
        make(1, 0, -1, 0, 0, 0),   make(2, 2, -1, 0, 0, 0),   make(0, 0, 1, 0, 0, 0),
        make(1, 2, 2, 0, 0, 0),    make(1, 2, -1, 9, 0, 0),   make(1, 2, -1, 0, 672, 0),
        make(1, 2, -1, 0, 100, 0), make(1, 2, -1, 0, 0, 511), make(7, 2, -1, 0, 0, 0),
        make(1, 3, -1, 0, 0, 0),   make(1, 2, 3, 0, 0, 0),
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (att_surface_duration_us(surface, AR, MIB, none[i], 0) >= 0)
            fail_msg("setting %zu has a duration", i);
    assert_true(att_surface_duration_us(surface, AR, MIB, ATT_SETTING_KEEP, 2) < 0);
    assert_true(att_surface_duration_us(surface, AR, MIB, ATT_SETTING_KEEP, -1) < 0);
    assert_true(att_surface_duration_us(surface, 0, MIB, ATT_SETTING_KEEP, 0) < 0);
    assert_true(att_surface_duration_us(surface, 99, MIB, ATT_SETTING_KEEP, 0) < 0);
}

static void load_makes_it_slower(void **state)
{
    assert_true(att_surface_duration_us(surface, AR, MIB, ATT_SETTING_KEEP, 1) >
                1.5 * att_surface_duration_us(surface, AR, MIB, ATT_SETTING_KEEP, 0));
}

static void names_are_looked_up(void **state)
{
    char folder[] = "/tmp/att-surface-XXXXXX", path[128], source[4096], command[8300];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.json", folder);
    snprintf(source, sizeof source, "%s/surfaces/minimal.json", getenv("ATTUNE_TEST_DATA"));
    snprintf(command, sizeof command, "cp '%s' '%s'", source, path);
    assert_int_equal(system(command), 0);

    const char *before = getenv("ATTUNE_DATA_DIR");
    char *saved = before != NULL ? strdup(before) : NULL;
    struct att_surface *found;
    att_error_t error;
    setenv("ATTUNE_DATA_DIR", folder, 1);
    assert_int_equal(att_surface_open("mine", &found, &error), ATT_OK);
    att_surface_close(found);
    /* not there: the source tree's data */
    assert_int_equal(att_surface_open("a40-nvlink-8-allgather", &found, &error), ATT_OK);
    att_surface_close(found);
    assert_int_equal(att_surface_open(path, &found, &error), ATT_OK);
    att_surface_close(found);

    assert_int_equal(att_surface_open("nowhere", &found, &error), -ATT_ENOENT);
    assert_non_null(strstr(error.text, "nowhere.json"));
    assert_non_null(strstr(error.text, folder));
    assert_int_equal(att_surface_open("/nowhere/x.json", &found, &error), -ATT_ENOENT);
    assert_int_equal(att_surface_open("", &found, &error), -ATT_EUSAGE);
    assert_int_equal(att_surface_open(NULL, &found, &error), -ATT_EUSAGE);
    assert_int_equal(att_surface_open(folder, &found, &error), -ATT_ESYSTEM);
    /* a broken file under the name is an error, not a reason to look further */
    FILE *file = fopen(path, "w");
    fputs("{", file);
    fclose(file);
    assert_int_equal(att_surface_open("mine", &found, &error), -ATT_EINPUT);
    assert_non_null(strstr(error.text, path));

    unsetenv("ATTUNE_DATA_DIR");
    assert_int_equal(att_surface_open("mine", &found, &error), -ATT_ENOENT);
    if (saved != NULL)
        setenv("ATTUNE_DATA_DIR", saved, 1);
    free(saved);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_those_of_the_file),
        cmocka_unit_test(cost_is_latency_plus_bytes),
        cmocka_unit_test(default_is_the_smallest_estimate),
        cmocka_unit_test(small_messages_get_fewer_channels_and_threads),
        cmocka_unit_test(kept_knobs_are_filled_in),
        cmocka_unit_test(keep_lasts_as_long_as_what_it_stands_for),
        cmocka_unit_test(settings_without_meaning_are_negative),
        cmocka_unit_test(load_makes_it_slower),
        cmocka_unit_test(names_are_looked_up),
    };
    return cmocka_run_group_tests_name("surface_surface", tests, open_minimal, close_minimal);
}
