/* The command line of `attune bench`. */
#include "cli/bench_nccl.h"
#include "cli/bench_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static att_bench_options_t options;
static att_error_t error;

/* Words as a shell would split them at blanks. */
static int parse(const char *line)
{
    static char copy[512];
    char *argv[64] = {(char *)"bench"};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    memset(&error, 0, sizeof error);
    return att_bench_options_parse(&options, argc, argv, NULL, &error);
}

static void refused(const char *line, const char *says)
{
    assert_int_equal(parse(line), -ATT_EUSAGE);
    if (strstr(error.text, says) == NULL)
        fail_msg("'%s' says '%s', not '%s'", line, error.text, says);
}

static void test_defaults_are_those_of_nccl_tests(void **state)
{
    assert_int_equal(parse(""), 0);
    assert_int_equal(options.collective_count, 1);
    assert_int_equal(options.collectives[0], ATT_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(options.size_count, 1);
    assert_int_equal(options.sizes[0], 32 << 20);
    assert_int_equal(options.iterations, 20);
    assert_int_equal(options.warmup, 1);
    assert_int_equal(options.check, 1);
    assert_int_equal(options.type, ATT_NCCL_FLOAT);
    assert_int_equal(options.op, ATT_NCCL_SUM);
    assert_int_equal(att_bench_options_ranks(&options), 1);
}

static void test_sizes_grow_by_factor_or_step(void **state)
{
    assert_int_equal(parse("all_reduce -b 8 -e 128K -f 2"), 0);
    assert_int_equal(options.size_count, 15);
    assert_int_equal(options.sizes[14], 128 << 10);
    assert_int_equal(parse("-b 1K -e 4K -i 1K"), 0);
    assert_int_equal(options.size_count, 4);
    assert_int_equal(options.sizes[2], 3072);
    assert_int_equal(parse("--size-list 1M,16M,80M"), 0);
    assert_int_equal(options.size_count, 3);
    assert_int_equal(options.sizes[2], 80 << 20);
    assert_int_equal(options.min_bytes, 1 << 20);
    assert_int_equal(options.max_bytes, 80 << 20);
    assert_int_equal(parse("-b 3K -e 100K -f 10"), 0);
    assert_int_equal(options.size_count, 2);
}

static void test_long_names_and_word_order(void **state)
{
    assert_int_equal(parse("--nthreads 4 allgather,reducescatter --ngpus=2 --procs 3 -d bfloat16 "
                           "-o max -r 5 -J out.json --watch-tuned=0.5 --gemm 64,32,16,float"),
                     0);
    assert_int_equal(att_bench_options_ranks(&options), 24);
    assert_int_equal(options.collective_count, 2);
    assert_int_equal(options.collectives[1], ATT_COLLECTIVE_REDUCE_SCATTER);
    assert_int_equal(options.type, ATT_NCCL_BFLOAT16);
    assert_int_equal(options.op, ATT_NCCL_MAX);
    assert_string_equal(options.json, "out.json");
    assert_true(options.watch_s == 0.5);
    assert_true(options.gemm);
    assert_int_equal(options.gemm_shape.n, 32);
    assert_int_equal(options.gemm_shape.type, ATT_NCCL_FLOAT);
    assert_int_equal(parse("all"), 0);
    assert_int_equal(options.collective_count, 5);
}

/* Processes of --procs are started with the same words. */
static void test_the_words_are_left_as_they_are(void **state)
{
    char list[] = "allreduce,allgather", sizes[] = "1M,2M", flag[] = "--size-list",
         name[] = "bench";
    char *argv[] = {name, list, flag, sizes, NULL};
    assert_int_equal(att_bench_options_parse(&options, 4, argv, NULL, &error), 0);
    assert_string_equal(list, "allreduce,allgather");
    assert_string_equal(sizes, "1M,2M");
}

static void test_refusals_name_the_option(void **state)
{
    refused("--frob", "--frob is not known");
    refused("-Z", "-Z is not known");
    refused("-b", "-b needs a value");
    refused("-b 3Q", "-b '3Q'");
    refused("-b 2M -e 1M", "above the largest");
    refused("-n 0", "-n '0': expected a number from 1");
    refused("-n 5x", "-n '5x'");
    refused("-t 2000", "-t '2000'");
    refused("--procs 100 -t 100", "10000 ranks");
    refused("-d fp8", "-d 'fp8'");
    refused("-o xor", "-o 'xor'");
    refused("-r 2 -t 2", "root 2, but there are 2 ranks");
    refused("alltoall", "unknown collective 'alltoall'");
    refused("allreduce,allreduce", "named twice");
    refused("--sync never", "iter or every");
    refused("--gemm 1,2", "M,N,K");
    refused("--gemm 1,2,3,half", "float or bfloat16");
    refused("--setting ring", "is not understood");
    refused("--sweep --setting keep", "exclude");
    refused("--also run", "--sweep");
    refused("--size-list 1M,,2M", "--size-list ''");
    refused("-b 0 -e 8 -f 2", "-b above 0");
    refused("--time 0", "above 0");
}

static void test_help_is_no_error_text(void **state)
{
    assert_int_equal(parse("--help"), -ATT_EUSAGE);
    assert_string_equal(error.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_those_of_nccl_tests),
        cmocka_unit_test(test_sizes_grow_by_factor_or_step),
        cmocka_unit_test(test_long_names_and_word_order),
        cmocka_unit_test(test_the_words_are_left_as_they_are),
        cmocka_unit_test(test_refusals_name_the_option),
        cmocka_unit_test(test_help_is_no_error_text),
    };
    return cmocka_run_group_tests_name("cli_bench_options", tests, NULL, NULL);
}
