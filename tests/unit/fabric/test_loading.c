/*
 * Plugins by path: older versions are understood, the env plugin answers for the environment, and a
 * library that is not there is no error.
 */
#include "old_plugin.h"
#include "ranks.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void one_call(rank_t *rank)
{
    float data[100] = {0};
    rank->failed +=
        ncclAllReduce(data, data, 100, ncclFloat32, ncclSum, rank->comm, NULL) != ncclSuccess;
}

static void two_ranks_of_one_thread(void)
{
    ncclComm_t comms[2];
    float data[2][100] = {{0}};
    assert_int_equal(ncclCommInitAll(comms, 2, NULL), ncclSuccess);
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        ncclAllReduce(data[r], data[r], 100, ncclFloat32, ncclSum, comms[r], NULL);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    assert_int_equal(ncclCommDestroy(comms[0]), ncclSuccess);
    assert_int_equal(ncclCommDestroy(comms[1]), ncclSuccess);
}

static void test_loading(void **state)
{
    void *library = dlopen(OLD_PLUGIN, RTLD_NOW);
    assert_non_null(library);
    const old_counts_t *counts = dlsym(library, "old_counts");
    two_ranks_of_one_thread();
    assert_int_equal(counts->env, 1);
    assert_int_equal(counts->tuner, 4); /* two inits, two questions */
    assert_int_equal(counts->profiler, 2);
    assert_int_equal(counts->tree, 2); /* NCCL_ALGO from the env plugin */

    setenv("NCCL_TUNER_PLUGIN", "/nonexistent.so", 1);
    setenv("NCCL_PROFILER_PLUGIN", "no-such-word", 1);
    assert_int_equal(run_threads(2, one_call, NULL), 0);
    assert_int_equal(counts->tuner, 4);
    assert_int_equal(counts->profiler, 2);
    dlclose(library);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", OLD_PLUGIN, 1);
    setenv("NCCL_PROFILER_PLUGIN", OLD_PLUGIN, 1);
    setenv("NCCL_ENV_PLUGIN", OLD_PLUGIN, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading),
    };
    return cmocka_run_group_tests_name("fabric_loading", tests, NULL, NULL);
}
