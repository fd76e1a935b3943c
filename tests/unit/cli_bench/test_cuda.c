/* The CUDA back end, on stand-ins for CUDA (fake_cuda) and for an NCCL that is no host fabric. */
#include "cli/bench.h"
#include "cli/bench_record.h"
#include "surface/surface.h"

#include "cli/bench_device.h"
#include "cli/bench_nccl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char out[1 << 16];

static int command(int (*run)(int, char **), const char *line)
{
    char words[512], path[] = "/tmp/attune-cuda-XXXXXX", *argv[64] = {(char *)"bench"};
    int argc = 1, file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    fflush(stdout);
    int saved_out = dup(1), saved_err = dup(2);
    dup2(file, 1);
    dup2(file, 2);
    int status = run(argc, argv);
    fflush(stdout);
    dup2(saved_out, 1);
    dup2(saved_err, 2);
    close(saved_out);
    close(saved_err);
    ssize_t size = pread(file, out, sizeof out - 1, 0);
    out[size > 0 ? size : 0] = '\0';
    close(file);
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    unsetenv("NCCL_NVLS_ENABLE");
    unsetenv("NCCL_MAX_CTAS");
    return status;
}

static int bench(const char *line)
{
    return command(att_bench_main, line);
}

static void has(const char *text)
{
    if (strstr(out, text) == NULL)
        fail_msg("not in the output: '%s'\n%s", text, out);
}

static void test_ranks_on_their_own_gpus(void **state)
{
    assert_int_equal(bench("all -b 4K -e 4K -t 2 -n 3"), 0);
    has("device  0 [0000:00:00.0] GPU with 20 multiprocessors");
    has("device  1 [0000:01:00.0]");
    has("# Out of bounds values : 0 OK");
    assert_null(strstr(out, "host fabric"));
    assert_null(strstr(out, "# set for"));
}

/* (20 multiprocessors - 4) / 2 ranks a GPU = 8 channels. */
static void test_ranks_that_share_gpus_get_what_nccl_needs(void **state)
{
    assert_int_equal(bench("allreduce -b 4K -e 4K -t 2 -g 2 -n 3 --gemm 16,8,4"), 0);
    has("# set for 2 ranks a GPU: NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=8");
    has("# beside each rank: bfloat16 products of 16x4 by 4x8");
    has("# products beside: ");
    has("# Out of bounds values : 0 OK");
}

static void test_what_is_set_is_left(void **state)
{
    setenv("NCCL_MAX_CTAS", "3", 1);
    assert_int_equal(bench("allreduce -b 4K -e 4K -t 4 -n 3"), 0);
    has("NCCL_NVLS_ENABLE=0\n");
}

static void test_older_nccl_wants_a_process_a_rank(void **state)
{
    setenv("FAKE_NCCL_VERSION", "22809", 1);
    assert_int_equal(bench("allreduce -b 4K -e 4K -t 4 -n 3"), 15);
    has("4 ranks on 2 GPUs: NCCL 2.28.9 takes only one rank a process there; use --procs 4");
    unsetenv("FAKE_NCCL_VERSION");
}

/* Recordings of one thread lie 1 ms apart: 1 ms a sample of 4 calls. */
static void test_a_sweep_times_with_events(void **state)
{
    assert_int_equal(
        bench(
            "allreduce -b 256 -e 256 -t 2 --sweep --max-channels 1 --keep 2 --repeats 3 --batch 4"),
        0);
    has("   250.00     250.00     250.00 ");
}

static void test_wrong_results_on_the_device_are_seen(void **state)
{
    setenv("FAKE_NCCL_WRONG", "5", 1);
    assert_int_equal(bench("allgather -b 4K -e 4K -t 2 -n 3"), 1);
    unsetenv("FAKE_NCCL_WRONG");
}

static void test_errors_of_cuda_are_told_in_its_words(void **state)
{
    att_device_t device;
    att_error_t error;
    assert_int_equal(att_device_open(&att_device_cuda, &device, &error), 0);
    assert_int_equal(device.ops->select(device.state, 7, &error), -ATT_ESYSTEM);
    assert_string_equal(error.text, "cudaSetDevice: invalid argument (CUDA error 1)");
    void *gemm;
    att_gemm_shape_t shape = {4, 4, 4, ATT_NCCL_DOUBLE};
    assert_int_equal(device.ops->gemm_create(device.state, shape, &gemm, &error),
                     -ATT_EUNSUPPORTED);
    att_device_close(&device);
}

/* Lines of a file that begin with `text`. */
static int lines_with(const char *path, const char *text)
{
    char line[256];
    int count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, text, strlen(text)) == 0;
    fclose(file);
    return count;
}

/* A communicator of each rank for each number of threads, made while the variable says so. */
static void test_recording_with_other_threads_a_block(void **state)
{
    char folder[] = "/tmp/attune-record-XXXXXX", log[64], line[256], file[96];
    assert_non_null(mkdtemp(folder));
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(line, sizeof line,
             "allreduce --size-list 4K -t 2 --channels 1,2 --chunks 8K --repeats 2 --again 1 "
             "--threads-list 96,256 --out %s",
             folder);
    setenv("FAKE_NCCL_LOG", log, 1);
    int status = command(att_record_main, line);
    unsetenv("FAKE_NCCL_LOG");
    unsetenv("NCCL_NO_CACHE");
    if (status != 0)
        fail_msg("status %d: %s", status, out);
    assert_int_equal(lines_with(log, "threads=- no_cache=NCCL_NTHREADS,NCCL_LL128_NTHREADS"), 2);
    assert_int_equal(lines_with(log, "threads=96 "), 2);
    assert_int_equal(lines_with(log, "threads=256 "), 2);
    assert_null(getenv("NCCL_NTHREADS"));
    snprintf(file, sizeof file, "%s/recorded-allreduce-4k.json.gz", folder);
    struct att_surface *surface;
    att_subspace_t subspaces[ATT_SURFACE_SUBSPACES];
    assert_int_equal(att_surface_open(file, &surface, NULL), 0);
    assert_true(att_surface_space(surface, ATT_COLLECTIVE_ALL_REDUCE, 4096, 0, subspaces) >= 2);
    assert_int_equal(subspaces[0].threads_max, 0); /* NCCL's own */
    assert_int_equal(subspaces[1].threads_min, 96);
    assert_int_equal(subspaces[1].threads_max, 256);
    att_surface_close(surface);
    setenv("FAKE_NCCL_VERSION", "22906", 1);
    assert_int_equal(command(att_record_main, line), ATT_EUNSUPPORTED);
    unsetenv("FAKE_NCCL_VERSION");
    unsetenv("NCCL_NO_CACHE");
    has("2.29.7 or later is needed");
    remove(file);
    remove(log);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_on_their_own_gpus),
        cmocka_unit_test(test_ranks_that_share_gpus_get_what_nccl_needs),
        cmocka_unit_test(test_what_is_set_is_left),
        cmocka_unit_test(test_older_nccl_wants_a_process_a_rank),
        cmocka_unit_test(test_a_sweep_times_with_events),
        cmocka_unit_test(test_wrong_results_on_the_device_are_seen),
        cmocka_unit_test(test_errors_of_cuda_are_told_in_its_words),
        cmocka_unit_test(test_recording_with_other_threads_a_block),
    };
    return cmocka_run_group_tests_name("cli_bench_cuda", tests, NULL, NULL);
}
