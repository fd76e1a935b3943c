/* Recorded surfaces, T4 and CSV: answers, grid, nearest setting, and one line for what is wrong. */
#include "surface/surface.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { AR = ATT_COLLECTIVE_ALL_REDUCE, AG = ATT_COLLECTIVE_ALL_GATHER, MIB = 1 << 20 };

static char *read_data(const char *name, size_t *length)
{
    static char bytes[65536];
    char path[4096];
    snprintf(path, sizeof path, "%s/surfaces/%s", getenv("ATTUNE_TEST_DATA"), name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *length = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[*length] = '\0';
    return bytes;
}

static struct att_surface *open_data(const char *name)
{
    char path[4096];
    struct att_surface *surface;
    att_error_t error = {""};
    snprintf(path, sizeof path, "%s/surfaces/%s", getenv("ATTUNE_TEST_DATA"), name);
    if (att_surface_open(path, &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    return surface;
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

static att_setting_t simple(int channels, uint32_t chunk)
{
    return make(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, ATT_TRANSPORT_KEEP, channels, 0, chunk);
}

static double us(const struct att_surface *surface, att_setting_t setting)
{
    return att_surface_duration_us(surface, AR, MIB, setting, 0);
}

static void t4_answers(const char *file)
{
    struct att_surface *surface = open_data(file);
    const att_surface_info_t *info = att_surface_info(surface);
    assert_int_equal(info->kind, ATT_SURFACE_RECORDED);
    assert_string_equal(info->name, "recorded");
    assert_int_equal(info->ranks, 4);
    assert_int_equal(info->channels_ceiling, 8);
    assert_int_equal(info->task_count, 1);
    assert_int_equal(info->tasks[0].collective, AR);
    assert_int_equal(info->tasks[0].bytes, MIB);
    assert_int_equal(att_surface_load_index(surface, "none"), 0);

    assert_float_equal(us(surface, ATT_SETTING_KEEP), 100, 1e-9);
    assert_float_equal(us(surface, simple(1, 16384)), 152, 1e-9);
    /* measured again: those samples count */
    assert_float_equal(us(surface, simple(8, 16384)), 95, 1e-9);
    assert_float_equal(us(surface, simple(8, 65536)), 96, 1e-9);
    att_setting_t best;
    assert_float_equal(att_surface_optimum(surface, AR, MIB, 0, 0, &best), 95, 1e-9);
    assert_true(att_setting_equal(best, simple(8, 16384)));
    /* what ran into the time limit answers with the limit; what did not run has no answer */
    att_setting_t slow = make(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, -1, 2, 0, 4096);
    assert_float_equal(us(surface, slow), 300, 1e-9);
    assert_true(us(surface, make(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, -1, 4, 0, 4096)) < 0);
    assert_true(att_surface_duration_us(surface, AR, MIB, ATT_SETTING_KEEP, 1) < 0);
    assert_true(att_surface_duration_us(surface, AR, MIB + 1, ATT_SETTING_KEEP, 0) < 0);

    assert_true(att_setting_equal(att_surface_default(surface, AR, MIB), simple(8, 0)));
    assert_float_equal(att_surface_cost_us(surface, AR, MIB, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL),
                       40.5, 1e-6);
    assert_true(att_surface_cost_us(surface, AR, MIB, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL) < 0);

    size_t count;
    assert_non_null(att_surface_points(surface, AR, MIB, &count));
    assert_int_equal(count, 8);
    assert_non_null(att_surface_residuals(surface, AR, MIB, &count));
    assert_int_equal(count, 15); /* three settings with five samples */
    assert_true(info->noise > 0.005 && info->noise < 0.03);
    att_surface_close(surface);
}

static void t4_plain(void **state)
{
    t4_answers("recorded.json");
}

static void t4_gzip(void **state)
{
    t4_answers("recorded.json.gz");
}

static void between_recorded_settings_the_nearest_answers(void **state)
{
    struct att_surface *surface = open_data("recorded.json");
    static const struct {
        int channels;
        uint32_t chunk;
        int near_channels;
        uint32_t near_chunk;
    } rows[] = {
        {3, 16384, 2, 16384}, {5, 16384, 8, 16384}, /* 4 is half way of 2 and 8 */
        {4, 16384, 2, 16384},                       /* equally near: the smaller */
        {8, 32767, 8, 16384}, {8, 40000, 8, 65536},
        {8, 0, 8, 0},         {2, 0, 8, 0}, /* a kept chunk is met by a kept one */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        att_setting_t x = simple(rows[i].channels, rows[i].chunk);
        att_setting_t near = att_surface_nearest(surface, AR, MIB, x);
        if (!att_setting_equal(near, simple(rows[i].near_channels, rows[i].near_chunk)))
            fail_msg("row %zu: ch %u chunk %u", i, near.channels, near.chunk_bytes);
        assert_float_equal(us(surface, x), us(surface, near), 0);
    }
    /* outside of what was recorded there is no answer */
    assert_true(us(surface, simple(9, 16384)) < 0);
    assert_true(us(surface, simple(8, 8192)) < 0);
    assert_true(us(surface, simple(8, 131072)) < 0);
    att_surface_close(surface);
}

static void space_is_the_hull(void **state)
{
    struct att_surface *surface = open_data("recorded.json");
    att_subspace_t s[ATT_SURFACE_SUBSPACES];
    assert_int_equal(att_surface_space(surface, AR, MIB, 0, s), 2);
    assert_int_equal(s[0].protocol, ATT_PROTOCOL_SIMPLE); /* NCCL thinks it is faster */
    assert_float_equal(s[0].prior_us, 30, 1e-6);
    assert_int_equal(s[0].channels_min, 1);
    assert_int_equal(s[0].channels_max, 8);
    assert_int_equal(s[0].channels_step, 1);
    assert_int_equal(s[0].threads_max, 0);
    assert_int_equal(s[0].chunk_min, 16384);
    assert_int_equal(s[0].chunk_max, 65536);
    assert_int_equal(s[0].chunk_step, 49152);
    assert_int_equal(s[1].channels_step, 2);
    assert_int_equal(att_surface_space(surface, AG, MIB, 0, s), 0);
    att_surface_close(surface);
}

static void csv_answers(void **state)
{
    struct att_surface *surface = open_data("recorded.csv");
    const att_surface_info_t *info = att_surface_info(surface);
    assert_string_equal(info->name, "recorded");
    assert_int_equal(info->task_count, 2);
    assert_int_equal(info->ranks, 4);
    assert_float_equal(us(surface, ATT_SETTING_KEEP), 100.5, 1e-9);
    att_setting_t x =
        make(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, ATT_TRANSPORT_P2P, 8, 256, 65536);
    assert_float_equal(us(surface, x), 90, 1e-9);
    x.transport = ATT_TRANSPORT_SHM;
    assert_float_equal(us(surface, x), 95, 1e-9);
    att_subspace_t s[ATT_SURFACE_SUBSPACES];
    assert_int_equal(att_surface_space(surface, AR, MIB, 0, s), 2);
    assert_int_equal(s[0].threads_min, 256);
    assert_int_equal(s[0].threads_max, 256);
    assert_int_equal(att_surface_space(surface, AG, 65536, 0, s), 1);
    assert_int_equal(s[0].channels_step, 2);
    /* nothing says what NCCL takes by itself: the setting in the middle stands for it */
    assert_float_equal(att_surface_duration_us(surface, AG, 65536, ATT_SETTING_KEEP, 0), 19, 1e-9);
    att_surface_close(surface);
}

#define HEADER                                                                                     \
    "collective,ranks,bytes,algorithm,protocol,transport,channels,threads,chunk,time_us\n"
#define ROW "allreduce,4,1048576,ring,simple,p2p,8,256,16384,"

/* NCCL's own threads are no number of the threads' axis: without a subspace of their own no strategy
 * would ever try them. */
static void kept_threads_are_a_subspace(void **state)
{
    static const char text[] = HEADER "allreduce,4,1048576,ring,simple,keep,8,keep,16384,20\n"
                                      "allreduce,4,1048576,ring,simple,keep,4,128,16384,30\n"
                                      "allreduce,4,1048576,ring,simple,keep,4,256,16384,30\n"
                                      "allreduce,4,1048576,ring,simple,keep,6,keep,32768,25\n"
                                      "allreduce,4,1048576,ring,ll,keep,8,256,16384,40\n";
    struct att_surface *surface = NULL;
    att_error_t error = {""};
    if (att_surface_parse(text, strlen(text), &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    att_subspace_t s[ATT_SURFACE_SUBSPACES];
    assert_int_equal(att_surface_space(surface, AR, MIB, 0, s), 3);
    assert_int_equal(s[0].protocol, ATT_PROTOCOL_LL);
    assert_int_equal(s[0].threads_min, 256);
    assert_int_equal(s[1].protocol, ATT_PROTOCOL_SIMPLE);
    assert_int_equal(s[1].threads_max, 0);
    assert_int_equal(s[1].channels_min, 6);
    assert_int_equal(s[1].chunk_max, 32768);
    assert_int_equal(s[2].threads_min, 128);
    assert_int_equal(s[2].threads_max, 256);
    assert_int_equal(s[2].threads_step, 128);
    assert_int_equal(s[2].channels_max, 4);
    att_surface_close(surface);
}

static void bad_csv_gets_one_clear_line(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "empty"},
        {"\n\n", "empty"},
        {"# a comment\n", "empty; expected collective,ranks"},
        {HEADER, "nothing else"},
        {"collective,ranks\n", "column 'bytes' is missing"},
        {"collective,ranks,colour\n", "line 1: 'colour' is no column"},
        {"collective,ranks,ranks\n", "column 'ranks' appears twice"},
        {"collective,ranks,bytes,algorithm,protocol,time_ms\n", "must be in microseconds"},
        {HEADER "allreduce,4,1048576,ring,sim", "line 2: 5 fields, the header has 10 (truncated?)"},
        {HEADER ROW "1,2\n", "line 2: more than 10 fields"},
        {HEADER ROW "nan\n", "line 2: time_us: 'nan' is not a number of microseconds above 0"},
        {HEADER ROW "-3\n", "line 2: time_us: '-3'"},
        {HEADER ROW "inf\n", "line 2: time_us: 'inf'"},
        {HEADER ROW "1e300\n", "line 2: time_us: '1e300'"},
        {HEADER ROW "12ms\n", "line 2: time_us: '12ms'"},
        {HEADER ROW "\n", "line 2: time_us: ''"},
        {HEADER ROW "5\n" ROW "6\n", "line 3: 'ring/simple/p2p ch=8 thr=256 chunk=16K' of "
                                     "allreduce 1M was there before (line 2)"},
        {HEADER "sum,4,1,ring,ll,p2p,1,1,1,1\n", "line 2: collective: 'sum' is not a known word"},
        {HEADER "allreduce,4,1,ring,ll,p2p,-1,1,1,1\n", "line 2: channels: '-1'"},
        {HEADER "allreduce,4,1,ring,ll,p2p,99999,1,1,1\n", "line 2: channels: '99999'"},
        {HEADER "allreduce,4,1,ring,keep,p2p,1,1,1,1\n", "kept both or not at all"},
        {HEADER "allreduce,4,1,keep,keep,keep,1,keep,keep,1\n", "every knob kept"},
        {HEADER "allreduce,0,1,ring,ll,p2p,1,1,1,1\n", "line 2: ranks: '0'"},
        {HEADER ROW "5\n"
                    "allreduce,8,1048576,ring,ll,p2p,8,256,16384,5\n",
         "one number of ranks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct att_surface *surface = NULL;
        att_error_t error = {""};
        int rc = att_surface_parse(rows[i].text, strlen(rows[i].text), &surface, &error);
        if (rc != -ATT_EINPUT || surface != NULL || strstr(error.text, rows[i].says) == NULL ||
            strchr(error.text, '\n') != NULL)
            fail_msg("row %zu: %d '%s' does not say '%s'", i, rc, error.text, rows[i].says);
    }
}

/* The file with the first occurrence of `from` replaced. */
static void bad_t4_gets_one_clear_line(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"\"schema_version\"", "\"schema\"", "/schema_version: missing"},
        {"\"metadata\"", "\"about\"", "/metadata: missing: T4 results alone do not say"},
        {"\"version\": 1", "\"version\": 2", "/metadata/version: this attune reads version 1"},
        {"\"allreduce\"", "\"sum\"", "/metadata/task/collective: 'sum' is none of"},
        {"\"results\": [", "\"results\": [], \"more\": [", "/results: expected an array of 1 to"},
        {"\"unit\": \"us\"", "\"unit\": \"GB/s\"",
         "/results/0/measurements/0/unit: no unit of time; expected us, ms, s or ns"},
        {"\"unit\": \"us\"", "\"unit\": 3", "/results/0/measurements/0/unit: expected a string"},
        {"\"value\": 100", "\"value\": -100", "/results/0/measurements/0/value: expected a number"},
        {"\"value\": 100", "\"value\": 0", "/results/0/measurements/0/value: expected a duration"},
        {"\"value\": 100", "\"value\": NaN", "column"},
        {"   101,", "   -101,", "/results/0/times/runtimes/3: expected a duration above 0"},
        {"\"channels\": 1,", "\"channels\": 70000,", "/results/1/configuration/channels: expected"},
        {"\"channels\": 1,", "\"channels\": 2,",
         "/results element 2: 'ring/simple ch=2 chunk=16K' of allreduce 1M was there before "
         "(/results element 1)"},
        {"\"protocol\": \"keep\"", "\"protocol\": \"ll\"", "kept with the algorithm"},
        {"\"ranks\": 4", "\"ranks\": \"4\"", "/metadata/machine/ranks: expected an integer"},
        {"\"provenance\"", "\"provenence\"", "/metadata/provenence: unknown key"},
        {"\"bytes\": 1048576", "\"bytes\": 1048576, \"bytes\": 2", "duplicate object key"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length;
        char *text = read_data("recorded.json", &length), *at = strstr(text, rows[i].from);
        if (at == NULL)
            fail_msg("row %zu: nothing to replace", i);
        size_t from = strlen(rows[i].from), to = strlen(rows[i].to);
        memmove(at + to, at + from, strlen(at + from) + 1);
        memcpy(at, rows[i].to, to);
        struct att_surface *surface = NULL;
        att_error_t error = {""};
        int rc = att_surface_parse(text, strlen(text), &surface, &error);
        if (rc == ATT_OK || surface != NULL || strstr(error.text, rows[i].says) == NULL ||
            strchr(error.text, '\n') != NULL)
            fail_msg("row %zu: %d '%s' does not say '%s'", i, rc, error.text, rows[i].says);
    }
}

static void units_are_converted(void **state)
{
    size_t length;
    char *text = read_data("recorded.json", &length);
    for (char *at = text; (at = strstr(at, "\"unit\": \"us\"")) != NULL; at++)
        memcpy(at, "\"unit\": \"ms\"", 12);
    struct att_surface *surface;
    assert_int_equal(att_surface_parse(text, length, &surface, NULL), ATT_OK);
    assert_float_equal(us(surface, ATT_SETTING_KEEP), 1e5, 1e-6);
    att_surface_close(surface);
}

static void cut_files_are_refused(void **state)
{
    static const char *const files[] = {"recorded.json", "recorded.json.gz"};
    for (int f = 0; f < 2; f++) {
        size_t length;
        char *bytes = read_data(files[f], &length);
        size_t end = f == 0 ? length - 2 : length; /* without the newline it is whole */
        for (size_t n = 0; n < end; n += n < 64 || end - n < 64 ? 1 : 37) {
            struct att_surface *surface = NULL;
            att_error_t error = {""};
            if (att_surface_parse(bytes, n, &surface, &error) == ATT_OK || error.text[0] == '\0' ||
                strchr(error.text, '\n') != NULL)
                fail_msg("%s cut after %zu bytes: '%s'", files[f], n, error.text);
        }
    }
}

/* 2 GB are refused by their size alone; so is what inflates to more than the limit. */
static void huge_files_are_refused(void **state)
{
    char path[] = "/tmp/attune-huge-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_int_equal(fseeko(file, 2147483648ll - 1, SEEK_SET), 0);
    fputc('x', file);
    fclose(file);
    struct att_surface *surface = NULL;
    att_error_t error = {""};
    char with_slash[64];
    snprintf(with_slash, sizeof with_slash, "%s", path);
    assert_int_equal(att_surface_open(with_slash, &surface, &error), -ATT_EINPUT);
    remove(path);
    assert_non_null(strstr(error.text, "larger than 32 MiB"));
}

/* Everything in data/surfaces: opens, has NCCL's choice, and an optimum that is not slower. */
static void shipped_surface_answers(const char *path, const char *file, int *recorded,
                                    int *modelled)
{
    struct att_surface *surface;
    att_error_t error = {""};
    if (att_surface_open(path, &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    const att_surface_info_t *info = att_surface_info(surface);
    assert_memory_equal(info->name, file, strlen(info->name));
    *recorded += info->kind == ATT_SURFACE_RECORDED;
    *modelled += info->kind == ATT_SURFACE_MODELLED;
    for (int i = 0; i < info->task_count; i++) {
        int collective = info->tasks[i].collective;
        uint64_t bytes = info->tasks[i].bytes;
        double native = att_surface_duration_us(surface, collective, bytes, ATT_SETTING_KEEP, 0);
        att_setting_t best;
        double least = att_surface_optimum(surface, collective, bytes, 0, 0, &best);
        if (!(native > 0 && least > 0 && least <= native))
            fail_msg("%s: NCCL's choice %g us, optimum %g us", file, native, least);
        assert_float_equal(att_surface_duration_us(surface, collective, bytes, best, 0), least,
                           1e-9);
    }
    att_surface_close(surface);
}

static void shipped_surfaces_answer(void **state)
{
    int recorded = 0, modelled = 0;
    DIR *folder = opendir(getenv("ATTUNE_DATA_DIR"));
    const struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", getenv("ATTUNE_DATA_DIR"), entry->d_name);
        if (entry->d_name[0] != '.')
            shipped_surface_answers(path, entry->d_name, &recorded, &modelled);
    }
    closedir(folder);
    print_message("%d recorded, %d modelled\n", recorded, modelled);
    assert_true(recorded >= 18 && modelled >= 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t4_plain),
        cmocka_unit_test(t4_gzip),
        cmocka_unit_test(between_recorded_settings_the_nearest_answers),
        cmocka_unit_test(space_is_the_hull),
        cmocka_unit_test(csv_answers),
        cmocka_unit_test(kept_threads_are_a_subspace),
        cmocka_unit_test(bad_csv_gets_one_clear_line),
        cmocka_unit_test(bad_t4_gets_one_clear_line),
        cmocka_unit_test(units_are_converted),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(huge_files_are_refused),
        cmocka_unit_test(shipped_surfaces_answer),
    };
    return cmocka_run_group_tests_name("surface_recorded", tests, NULL, NULL);
}
