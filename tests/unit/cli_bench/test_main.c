/* The whole driver on an NCCL whose times and results are known beforehand (fake_nccl). */
#include "cli/bench.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/attune-bench-XXXXXX";
static char out[1 << 20];
static char words[1024];

/* Run with the output in `out`; returns the exit status. */
static int bench(const char *line)
{
    char path[64], *argv[64] = {(char *)"bench"};
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        for (char *c = word; *c != '\0'; c++)
            *c = *c == '~' ? ' ' : *c;
        argv[argc++] = word;
    }
    snprintf(path, sizeof path, "%s/out", folder);
    fflush(stdout);
    fflush(stderr);
    int saved_out = dup(1), saved_err = dup(2);
    FILE *file = freopen(path, "w", stdout);
    assert_non_null(file);
    dup2(1, 2);
    int status = att_bench_main(argc, argv);
    fflush(stdout);
    dup2(saved_out, 1);
    dup2(saved_err, 2);
    close(saved_out);
    close(saved_err);
    file = fopen(path, "r");
    assert_non_null(file);
    out[fread(out, 1, sizeof out - 1, file)] = '\0';
    fclose(file);
    return status;
}

static void has(const char *text)
{
    if (strstr(out, text) == NULL)
        fail_msg("not in the output: '%s'\n%s", text, out);
}

static json_t *json_of(const char *name)
{
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL)
        fail_msg("%s: %s", path, error.text);
    return root;
}

/* Two channels, 1 MiB chunks: 1 us x 4 x 1.5 = 6 us a call.
 * 64 KiB over 6 us = 10.9227 GB/s; x 2 x 3/4 = 16.384. AllGather: x 3/4 = 8.192. */
static void test_columns_and_formulas(void **state)
{
    assert_int_equal(bench("allreduce,allgather,broadcast -b 64K -e 64K -t 4 -n 5"), 0);
    has("#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
        "time   algbw   busbw  #wrong\n");
    has("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
        "(us)  (GB/s)  (GB/s)        \n");
    has("       65536         16384     float     sum      -1     6.00   10.92   16.38       0     "
        "6.00   10.92   16.38       0\n");
    has("       65536          4096     float    none      -1     6.00   10.92    8.19       0     "
        "6.00   10.92    8.19       0\n");
    has("       65536         16384     float    none       0     6.00   10.92   10.92       0     "
        "6.00   10.92   10.92       0\n");
    has("# Out of bounds values : 0 OK\n");
    has("# Avg bus bandwidth    : 11.8329 \n"); /* (16.384 + 8.192 + 10.9227) / 3 */
}

static void test_all_collectives_ops_and_layouts_are_right(void **state)
{
    static const char *const lines[] = {"all -b 4K -e 40K -f 10 -t 4 -n 2",
                                        "all -b 4K -e 4K -t 2 -g 2 -n 2 -c 3",
                                        "all -b 4K -e 4K -g 3 -n 2",
                                        "all -b 1000 -e 1000 -t 3 -n 2",
                                        "all -b 4K -e 4K -t 4 -n 2 -o max -r 3",
                                        "all -b 4K -e 4K -t 4 -n 2 -o prod --sync every",
                                        "all -b 4K -e 4K -t 4 -n 2 -o min -r 1",
                                        "all -b 4K -e 4K -t 3 -n 2 -o avg",
                                        "all -b 0 -e 0 -t 2 -n 2",
                                        "all -b 4K -e 4K -t 1 -n 2",
                                        "all -b 4K -e 4K -t 2 -n 2 --rounds 3 -w 0"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int status = bench(lines[i]);
        if (status != 0)
            fail_msg("'%s' ends with %d\n%s", lines[i], status, out);
        has("# Out of bounds values : 0 OK\n");
    }
}

/* Rank 0's first three elements are wrong in both checked calls of each side. */
static void test_wrong_results_are_counted_and_end_with_1(void **state)
{
    setenv("FAKE_NCCL_WRONG", "3", 1);
    int status = bench("allreduce -b 4K -e 4K -t 2 -n 2");
    has("       6 ");
    has("# Out of bounds values : 2 FAILED\n");
    assert_int_equal(status, 1);
    assert_int_equal(bench("allreduce -b 4K -e 4K -t 2 -n 2 -c 0"), 0);
    has(" N/A");
    assert_int_equal(bench("allgather -b 4K -e 4K -g 2 -n 2 --sweep --max-channels 2 --repeats 2"),
                     1);
    unsetenv("FAKE_NCCL_WRONG");
}

static void test_a_failing_rank_ends_the_run_with_the_reason(void **state)
{
    setenv("FAKE_NCCL_FAIL", "1:4", 1);
    assert_int_equal(bench("allreduce -b 4K -e 4K -t 3 -n 20"), 4);
    has("AllReduce: fake failure: made to fail");
    unsetenv("FAKE_NCCL_FAIL");
    setenv("ATTUNE_NCCL_LIB_SAVED", getenv("ATTUNE_NCCL_LIB"), 1);
    setenv("ATTUNE_NCCL_LIB", "/nowhere/libnccl.so.2", 1);
    assert_int_equal(bench("allreduce"), 6);
    has("cannot load NCCL (/nowhere/libnccl.so.2");
    setenv("ATTUNE_NCCL_LIB", getenv("ATTUNE_NCCL_LIB_SAVED"), 1);
    assert_int_equal(bench("--frob"), 2);
    has("--frob is not known");
    assert_int_equal(bench("--help"), 0);
    has("--watch-tuned");
}

static void test_files(void **state)
{
    char line[256], name[64];
    setenv("ATTUNE_RUN_DIR", folder, 1);
    snprintf(line, sizeof line, "reducescatter -b 64K -e 128K -f 2 -t 4 -n 2 -J %s/result.json",
             folder);
    assert_int_equal(bench(line), 0);
    unsetenv("ATTUNE_RUN_DIR");
    json_t *root = json_of("result.json"), *rows = json_object_get(root, "results");
    assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
    assert_int_equal(json_array_size(rows), 2);
    json_t *side = json_object_get(json_array_get(rows, 1), "in_place");
    assert_true(json_real_value(json_object_get(side, "time")) == 6.0);
    assert_int_equal(json_integer_value(json_object_get(side, "nwrong")), 0);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(root, "provenance"), "nccl_version")),
        "2.30.7");
    json_decref(root);
    snprintf(name, sizeof name, "bench-%d.json", (int)getpid());
    root = json_of(name);
    assert_int_equal(json_integer_value(json_object_get(root, "result_errors")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "sizes")), 2);
    json_decref(root);
}

static void test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(void **state)
{
    char line[256];
    assert_int_equal(bench("-b 4K -e 4K -t 2 -J /nowhere/at/all.json"), 4);
    has("/nowhere/at/all.json cannot be written: No such file or directory");
    assert_null(strchr(out, '#'));
    snprintf(line, sizeof line, "-b 4K -e 4K -t 2 -J %s", folder);
    assert_int_equal(bench(line), 4);
    has("cannot be written: Is a directory");
    assert_null(strchr(out, '#'));
}

/* What stood there stays until there is something better. */
static void test_a_run_that_fails_leaves_the_file_as_it_was(void **state)
{
    char path[64], line[256], text[16] = "";
    snprintf(path, sizeof path, "%s/kept.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("before", file);
    fclose(file);
    setenv("FAKE_NCCL_FAIL", "1:4", 1);
    snprintf(line, sizeof line, "allreduce -b 4K -e 4K -t 3 -n 20 -J %s", path);
    assert_int_equal(bench(line), 4);
    unsetenv("FAKE_NCCL_FAIL");
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text, file), 6);
    fclose(file);
    assert_string_equal(text, "before");
    strcat(path, ".tmp");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_a_time_limit_prints_the_first_and_the_last_round(void **state)
{
    assert_int_equal(bench("-b 4K -e 8K -f 2 -t 2 -n 2 --time 0.2 --watch-tuned=0.05"), 0);
    has("the last round (");
    has("busbw out-of-place");
    int rows = 0;
    for (const char *at = out; (at = strstr(at, "float     sum")) != NULL; at++)
        rows++;
    assert_int_equal(rows, 4);
}

static void test_a_fixed_setting_is_in_force(void **state)
{
    /* The optimum of the fake: 1 us. */
    assert_int_equal(bench("-b 64K -e 64K -t 2 -n 2 --setting ring/simple~ch=8~chunk=128K"), 0);
    has("# setting: ring/simple ch=8 chunk=128K\n");
    has("     1.00   65.54   65.54       0     1.00");
}

static void test_compute_between_calls_is_not_counted(void **state)
{
    assert_int_equal(bench("-b 64K -e 64K -t 2 -n 4 --compute-us 5000 --gemm 8,8,8"), 0);
    has("     6.00   10.92   10.92       0     6.00");
    has("# products beside: ");
}

/* The fake's optimum is in the grid, and NCCL's choice takes six times as long. */
static void test_a_sweep_finds_the_optimum(void **state)
{
    char line[256];
    snprintf(line, sizeof line,
             "allreduce,allgather -b 256 -e 256 -g 4 --sweep --max-channels 12 --keep 5 "
             "--repeats 4 --grid-repeats 1 -J %s/sweep.json",
             folder);
    assert_int_equal(bench(line), 0);
    has("     1  ring/simple ch=8 chunk=128K");
    has("NCCL's choice");
    json_t *root = json_of("sweep.json"), *tasks = json_object_get(root, "tasks");
    assert_int_equal(json_array_size(tasks), 2);
    json_t *task = json_array_get(tasks, 0), *list = json_object_get(task, "settings");
    assert_true(json_real_value(json_object_get(task, "best_us")) == 1.0);
    assert_true(json_real_value(json_object_get(task, "default_us")) == 6.0);
    assert_true(json_is_null(json_object_get(task, "tuned_us")));
    assert_string_equal(json_string_value(json_object_get(task, "native_pair")), "ring/simple");
    assert_int_equal(json_array_size(list), 6);
    json_t *best = json_array_get(list, 0);
    assert_int_equal(json_integer_value(json_object_get(best, "repeats")), 4);
    assert_true(json_real_value(json_object_get(best, "ratio_to_best")) == 1.0);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(best, "setting"), "text")),
        "ring/simple ch=8 chunk=128K");
    json_decref(root);
}

static int setup(void **state)
{
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    char name[64], path[128];
    snprintf(name, sizeof name, "bench-%d.json", (int)getpid());
    const char *const names[] = {"out", "kept.json", "result.json", "sweep.json", name};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_and_formulas),
        cmocka_unit_test(test_all_collectives_ops_and_layouts_are_right),
        cmocka_unit_test(test_wrong_results_are_counted_and_end_with_1),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured),
        cmocka_unit_test(test_a_run_that_fails_leaves_the_file_as_it_was),
        cmocka_unit_test(test_a_time_limit_prints_the_first_and_the_last_round),
        cmocka_unit_test(test_compute_between_calls_is_not_counted),
        cmocka_unit_test(test_a_fixed_setting_is_in_force),
        cmocka_unit_test(test_a_sweep_finds_the_optimum),
        cmocka_unit_test(test_a_failing_rank_ends_the_run_with_the_reason),
    };
    return cmocka_run_group_tests_name("cli_bench_main", tests, setup, teardown);
}
