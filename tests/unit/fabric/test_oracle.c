/*
 * The oracle: ranks that use different settings for one call are found, named and counted, and the
 * job fails, or goes on where it is told to.
 */
#include "ranks.h"

#include <glob.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 200000
static float data[8][COUNT];

static char folder[] = "/tmp/attune-oracle-XXXXXX";

typedef struct wanted {
    int calls;    /* that succeed */
    int fails_at; /* -1: none */
    int function; /* 0 AllReduce, 1 Broadcast, 2 Reduce, 3 AllGather */
} wanted_t;

static ncclResult_t call(rank_t *rank, int function)
{
    float *own = data[rank->rank];
    switch (function) {
    case 1:
        return ncclBroadcast(own, own, COUNT, ncclFloat32, 0, rank->comm, NULL);
    case 2:
        return ncclReduce(own, own, COUNT, ncclFloat32, ncclMax, 0, rank->comm, NULL);
    case 3:
        return ncclAllGather(own, data[4 + rank->rank], 100, ncclFloat32, rank->comm, NULL);
    default:
        return ncclAllReduce(own, own, COUNT, ncclFloat32, ncclMax, rank->comm, NULL);
    }
}

static void body(rank_t *rank)
{
    const wanted_t *wanted = rank->argument;
    for (int i = 0; i < COUNT; i++)
        data[rank->rank][i] = (float)rank->rank;
    for (int k = 0; k < wanted->calls; k++)
        rank->failed += call(rank, wanted->function) != ncclSuccess;
    if (wanted->fails_at >= 0) {
        ncclResult_t error = ncclSuccess;
        for (int k = 0; k < 2; k++) { /* it is final */
            ncclResult_t result = call(rank, wanted->function);
            if (result != ncclInternalError)
                fprintf(stderr, "rank %d: %s\n", rank->rank, ncclGetErrorString(result));
            rank->failed += result != ncclInternalError;
        }
        ncclCommGetAsyncError(rank->comm, &error);
        rank->failed += error != ncclInternalError;
    } else {
        rank->failed += data[rank->rank][COUNT - 1] != (float)(rank->count - 1);
    }
}

/* A member of the report of this process. */
static json_t *report(void)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/fabric-%d-*.json", folder, (int)getpid());
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    json_t *root = json_load_file(found.gl_pathv[0], 0, NULL);
    globfree(&found);
    assert_non_null(root);
    return root;
}

static json_int_t reported(const char *name)
{
    json_t *root = report();
    json_int_t value = json_integer_value(json_object_get(root, name));
    json_decref(root);
    return value;
}

static void test_no_mismatch(void **state)
{
    wanted_t wanted = {5, -1, 0};
    assert_int_equal(run_threads(3, body, &wanted), 0);
    assert_int_equal(reported("mismatches"), 0);
    assert_int_equal(reported("calls"), 5);
    assert_int_equal(reported("ranks"), 3);
    json_t *root = report();
    assert_string_equal(json_string_value(json_object_get(root, "fabric")), "real");
    assert_true(json_is_null(json_object_get(root, "surface")));
    json_decref(root);
}

static void test_mismatch_fails_all_ranks(void **state)
{
    setenv("ATTUNE_FABRIC_INJECT_MISMATCH", "1:3", 1);
    for (int function = 0; function < 4; function++) {
        json_int_t before = reported("mismatches");
        wanted_t wanted = {3, 3, function};
        assert_int_equal(run_threads(3, body, &wanted), 0);
        assert_int_equal(reported("mismatches"), before + 1);
    }
    unsetenv("ATTUNE_FABRIC_INJECT_MISMATCH");
    const char *text = ncclGetLastError(NULL);
    assert_non_null(strstr(text, "mismatch at call 3"));
    assert_non_null(strstr(text, "rank 1"));
    assert_non_null(strstr(text, "AllGather"));
}

static void test_mismatch_between_processes(void **state)
{
    setenv("ATTUNE_FABRIC_INJECT_MISMATCH", "2:1", 1);
    wanted_t wanted = {1, 1, 0};
    int failed = run_processes(3, body, &wanted);
    unsetenv("ATTUNE_FABRIC_INJECT_MISMATCH");
    assert_int_equal(failed, 0);
}

static void test_keep_going(void **state)
{
    setenv("ATTUNE_FABRIC_INJECT_MISMATCH", "1:2", 1);
    setenv("ATTUNE_FABRIC_KEEP_GOING", "1", 1);
    json_int_t before = reported("mismatches");
    wanted_t wanted = {6, -1, 0};
    assert_int_equal(run_threads(3, body, &wanted), 0);
    assert_int_equal(reported("mismatches"), before + 1);
    unsetenv("ATTUNE_FABRIC_KEEP_GOING");
    unsetenv("ATTUNE_FABRIC_INJECT_MISMATCH");
}

static void other_bytes(rank_t *rank)
{
    size_t count = rank->rank == 2 ? COUNT - 1 : COUNT;
    rank->failed += ncclAllReduce(data[rank->rank], data[rank->rank], count, ncclFloat32, ncclMax,
                                  rank->comm, NULL) != ncclInternalError;
}

static void test_another_size_is_found_too(void **state)
{
    assert_int_equal(run_threads(3, other_bytes, NULL), 0);
}

static void nothing(rank_t *rank)
{
}

static void test_bad_variable(void **state)
{
    setenv("ATTUNE_FABRIC_INJECT_MISMATCH", "1:2x", 1);
    assert_int_equal(run_threads(1, nothing, NULL), 1);
    assert_non_null(strstr(ncclGetLastError(NULL), "ATTUNE_FABRIC_INJECT_MISMATCH=1:2x"));
    unsetenv("ATTUNE_FABRIC_INJECT_MISMATCH");
}

static int clean_up(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "none", 1);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    if (!mkdtemp(folder))
        return 1;
    setenv("ATTUNE_RUN_DIR", folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mismatch_between_processes), cmocka_unit_test(test_no_mismatch),
        cmocka_unit_test(test_mismatch_fails_all_ranks),   cmocka_unit_test(test_keep_going),
        cmocka_unit_test(test_another_size_is_found_too),  cmocka_unit_test(test_bad_variable),
    };
    return cmocka_run_group_tests_name("fabric_oracle", tests, NULL, clean_up);
}
