/* Surface files: what is read, and one clear line for what is wrong. */
#include "surface/surface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct bad_file {
    const char *name;
    int status;
    const char *says; /* where and what */
} bad_file_t;

static const bad_file_t bad_files[] = {
    {"bad-empty", ATT_EINPUT, "the file is empty"},
    {"bad-truncated", ATT_EINPUT, "line 15, column "},
    {"bad-array", ATT_EINPUT, "document: expected an object"},
    {"bad-version", ATT_EVERSION, "/version: this attune reads surfaces of version 1, not 7"},
    {"bad-unit", ATT_EINPUT, "/units/time: the model's constants are in microseconds"},
    {"bad-no-version", ATT_EINPUT, "/version: missing"},
    {"bad-duplicate-key", ATT_EINPUT, "line 8, column "},
    {"bad-unknown-key", ATT_EINPUT, "/collectives/0/pairs/0/transports/0/tial: unknown key"},
    {"bad-missing-key", ATT_EINPUT, "/collectives/0/pairs/1/transports/0/hop_us: missing"},
    {"bad-no-source", ATT_EINPUT, "/source: missing"},
    {"bad-text-for-number", ATT_EINPUT, "/machine/ranks: expected an integer from 1 to 65536"},
    {"bad-negative-bandwidth", ATT_EINPUT,
     "/collectives/0/pairs/0/transports/0/phase0/bandwidth_gbs: expected a number from 0.001"},
    {"bad-huge-number", ATT_EINPUT,
     "/collectives/0/pairs/0/transports/0/phase0/congestion_bytes: expected a number from 1"},
    {"bad-unknown-word", ATT_EINPUT,
     "/collectives/0/pairs/1/protocol: 'll256' is none of ll, ll128, simple"},
    {"bad-duplicate-pair", ATT_EINPUT,
     "/collectives/0/pairs/1: this algorithm and protocol appear twice"},
    {"bad-duplicate-transport", ATT_EINPUT,
     "/collectives/0/pairs/1/transports/1/transport: this transport appears twice"},
    {"bad-native-transport", ATT_EINPUT,
     "/collectives/0/pairs/0/native/transport: there are no constants for this transport"},
    {"bad-native-channels", ATT_EINPUT,
     "/collectives/0/pairs/0/native/channels: expected an integer from 1 to 8"},
    {"bad-chunk-off-grain", ATT_EINPUT,
     "/collectives/0/pairs/0/native/chunk_bytes: not a multiple of the grain"},
    {"bad-first-load", ATT_EINPUT, "/loads/0/name: the first load must be 'none'"},
    {"bad-load-twice", ATT_EINPUT, "/loads/1/name: this load appears twice"},
    {"bad-task-without-constants", ATT_EINPUT,
     "/tasks/0/collective: there are no constants for this collective"},
    {"bad-more-nodes-than-ranks", ATT_EINPUT, "/machine/nodes: more nodes than ranks"},
    {"bad-two-lines", ATT_EINPUT, "/name: expected a string of 1 to 200 bytes, one line"},
};

static const char *data_path(const char *name)
{
    static char path[4096];
    const char *folder = getenv("ATTUNE_TEST_DATA");
    assert_non_null(folder);
    snprintf(path, sizeof path, "%s/surfaces/%s.json", folder, name);
    return path;
}

static void bad_files_get_one_clear_line(void **state)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        const bad_file_t *bad = &bad_files[i];
        struct att_surface *surface = NULL;
        att_error_t error = {""};
        const char *path = data_path(bad->name);
        int status = att_surface_open(path, &surface, &error);
        if (status != -bad->status || surface != NULL)
            fail_msg("%s: status %d: %s", bad->name, status, error.text);
        if (strncmp(error.text, path, strlen(path)) != 0 || strstr(error.text, bad->says) == NULL ||
            strchr(error.text, '\n') != NULL)
            fail_msg("%s: '%s' does not say '%s'", bad->name, error.text, bad->says);
        assert_int_equal(att_surface_open(path, &surface, NULL), -bad->status);
    }
}

static void good_file_is_read(void **state)
{
    struct att_surface *surface;
    att_error_t error = {""};
    if (att_surface_open(data_path("minimal"), &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    const att_surface_info_t *info = att_surface_info(surface);
    assert_string_equal(info->name, "minimal");
    assert_string_equal(info->source, "made up for the tests");
    assert_string_equal(info->description, "one collective, two pairs, round numbers");
    assert_int_equal(info->ranks, 4);
    assert_int_equal(info->nodes, 1);
    assert_int_equal(info->device_units, 16);
    assert_int_equal(info->channels_ceiling, 8);
    assert_int_equal(info->load_count, 2);
    assert_int_equal(att_surface_load_index(surface, "none"), 0);
    assert_int_equal(att_surface_load_index(surface, "light"), 1);
    assert_int_equal(att_surface_load_index(surface, "heavy"), -1);
    assert_int_equal(att_surface_load_index(surface, NULL), -1);
    att_surface_close(surface);
    att_surface_close(NULL);
}

/* Every prefix of a good file is refused. */
static void cut_files_are_refused(void **state)
{
    char bytes[16384];
    FILE *file = fopen(data_path("minimal"), "r");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(length > 1000 && length < sizeof bytes);
    while (length > 0 && bytes[length - 1] != '}')
        length--;
    for (size_t cut = 0; cut < length; cut += 7) {
        struct att_surface *surface = NULL;
        att_error_t error;
        assert_int_equal(att_surface_parse(bytes, cut, &surface, &error), -ATT_EINPUT);
        assert_null(surface);
    }
    struct att_surface *surface = NULL;
    assert_int_equal(att_surface_parse(bytes, length, &surface, NULL), ATT_OK);
    att_surface_close(surface);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_get_one_clear_line),
        cmocka_unit_test(good_file_is_read),
        cmocka_unit_test(cut_files_are_refused),
    };
    return cmocka_run_group_tests_name("surface_definition", tests, NULL, NULL);
}
