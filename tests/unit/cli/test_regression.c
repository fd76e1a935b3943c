/* nccl-tests outputs of four kinds are read alike; a shift and a cliff are found with their sizes
 * and effect, and equal logs give no alarm. The logs are written here, so that what they hold is
 * known. */
#include "cli/regression.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

typedef enum kind { OLD = 0, CURRENT = 1, STATISTICS = 2, JSON3 = 3, KINDS = 4 } kind_t;

typedef struct log {
    char text[65536];
    size_t used;
} log_t;

__attribute__((format(printf, 2, 3))) static void say(log_t *log, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    log->used +=
        (size_t)vsnprintf(log->text + log->used, sizeof log->text - log->used, format, list);
    va_end(list);
    assert_true(log->used < sizeof log->text);
}

/* 8 ranks AllReduce: latency and a bandwidth of 200 GB/s; a shift of small sizes, a cliff. */
static double time_of(uint64_t bytes, double shift, uint64_t cliff, int seed)
{
    double us = 20 + (double)bytes / 1.1e5;
    if (bytes < 65536)
        us *= 1 + shift;
    if (cliff != 0 && bytes >= cliff)
        us *= 2;
    return us * (1 + 0.01 * sin((double)bytes * 0.7 + seed * 1.3));
}

static void write_log(log_t *log, kind_t kind, double shift, uint64_t cliff, int seed)
{
    static const char *const heads[] = {
        "#       size         count    type   redop     time   algbw   busbw  error     time   "
        "algbw   busbw  error\n",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
        "time   algbw   busbw #wrong\n",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong "
        "i_min "
        "i_max i_p99 i_cv%     time   algbw   busbw #wrong i_min i_max i_p99 i_cv%\n"};
    log->used = 0;
    if (kind == JSON3)
        say(log, "{\"version\":3,\"results\":[");
    else
        say(log, "# nThread 1 nGpus 8 minBytes 1024\n#\n%s", heads[kind]);
    bool first = true;
    for (uint64_t mib = 0, bytes = 1024; bytes <= (128u << 20);
         bytes = bytes < (2u << 20) ? bytes * 2 : (mib += 4) << 20) {
        if (bytes == (2u << 20) || bytes == (4u << 20))
            mib = bytes >> 20 == 2 ? 2 : mib;
        double us = time_of(bytes, shift, cliff, seed), alg = (double)bytes / us * 1e-3;
        double bus = alg * 1.75;
        unsigned long long b = bytes, n = bytes / 4;
        if (kind == OLD)
            say(log,
                "%12llu %13llu   float     sum %8.2f %7.2f %7.2f  2e-07 %8.2f %7.2f %7.2f  2e-07\n",
                b, n, us, alg, bus, us * 1.01, alg, bus);
        else if (kind == CURRENT)
            say(log,
                "%12llu %13llu   float     sum    -1 %8.2f %7.2f %7.2f 0 %8.2f %7.2f %7.2f 0\n", b,
                n, us, alg, bus, us * 1.01, alg, bus);
        else if (kind == STATISTICS)
            say(log,
                "%12llu %13llu   float     sum    -1 %8.2f %7.2f %7.2f 0 %.2f %.2f %.2f 1.0 %8.2f "
                "%7.2f %7.2f N/A %.2f %.2f %.2f 1.0\n",
                b, n, us, alg, bus, us, us, us, us * 1.01, alg, bus, us, us, us);
        else
            say(log,
                "%s{\"size\":%llu,\"count\":%llu,\"type\":\"float\",\"redop\":\"sum\",\"root\":-1,"
                "\"out_of_place\":{\"time\":%.2f,\"alg_bw\":%.2f,\"bus_bw\":%.2f,\"nwrong\":\"0\"},"
                "\"in_place\":{\"time\":%.2f,\"alg_bw\":%.2f,\"bus_bw\":%.2f,\"nwrong\":\"0\"}}",
                first ? "" : ",", b, n, us, alg, bus, us * 1.01, alg, bus);
        first = false;
    }
    say(log,
        kind == JSON3 ? "]}" : "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100\n#\n");
}

static void read_log(kind_t kind, double shift, uint64_t cliff, int seed, att_result_rows_t *rows)
{
    static log_t log;
    att_error_t error = {""};
    write_log(&log, kind, shift, cliff, seed);
    assert_int_equal(att_result_rows_parse(log.text, log.used, "log", rows, &error), ATT_OK);
}

static void all_kinds_read_alike(void **state)
{
    att_result_rows_t all[KINDS];
    for (int k = 0; k < KINDS; k++)
        read_log((kind_t)k, 0, 0, 0, &all[k]);
    for (int k = 1; k < KINDS; k++) {
        assert_int_equal(all[k].count, all[0].count);
        for (uint32_t i = 0; i < all[0].count; i++) {
            assert_int_equal(all[k].rows[i].bytes, all[0].rows[i].bytes);
            assert_string_equal(all[k].rows[i].type, "float");
            for (int s = 0; s < 2; s++) {
                assert_true(all[k].rows[i].side[s].time_us == all[0].rows[i].side[s].time_us);
                assert_true(all[k].rows[i].side[s].busbw_gbs == all[0].rows[i].side[s].busbw_gbs);
            }
            assert_true((all[k].rows[i].side[1].cv >= 0) == (k == STATISTICS));
        }
    }
    for (int k = 0; k < KINDS; k++)
        att_result_rows_free(&all[k]);
}

static void equal_logs_give_no_alarm(void **state)
{
    for (int seed = 0; seed < 20; seed++) {
        att_result_rows_t a, b;
        att_regression_t r;
        double effect;
        read_log((kind_t)(seed % KINDS), 0, 0, 0, &a);
        read_log((kind_t)(seed / 4 % KINDS), 0, 0, seed, &b);
        att_regression_compare(&a, &b, &r);
        assert_true(r.compared > 20);
        assert_int_equal(r.count, 0);
        assert_int_equal(att_regression_cliff(&b, &effect), 0);
        att_result_rows_free(&a);
        att_result_rows_free(&b);
    }
}

static void a_shift_of_small_sizes_is_found(void **state)
{
    att_result_rows_t a, b;
    att_regression_t r;
    read_log(OLD, 0, 0, 0, &a);
    read_log(CURRENT, 0.30, 0, 5, &b);
    att_regression_compare(&a, &b, &r);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.ranges[0].from_bytes, 1024);
    assert_int_equal(r.ranges[0].to_bytes, 32768);
    assert_true(r.ranges[0].effect > 0.27 && r.ranges[0].effect < 0.33);
    assert_true(r.ranges[0].confidence > 0.95);
    att_regression_compare(&b, &a, &r); /* the other way: faster */
    assert_int_equal(r.count, 1);
    assert_true(r.ranges[0].effect < -0.2);
    att_result_rows_free(&a);
    att_result_rows_free(&b);
}

static void a_cliff_is_found(void **state)
{
    for (int k = 0; k < KINDS; k++) {
        att_result_rows_t rows;
        double effect = 0;
        read_log((kind_t)k, 0, 46ull << 20, 3, &rows);
        assert_int_equal(att_regression_cliff(&rows, &effect), 46ull << 20);
        assert_true(effect > 0.4 && effect < 0.55);
        att_result_rows_free(&rows);
    }
}

static void other_files_are_refused(void **state)
{
    static const char *const texts[] = {"", "{}", "# no table\n1 2 3\n", "[1,2", "{\"results\":3}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        att_result_rows_t rows;
        att_error_t error = {""};
        assert_int_equal(att_result_rows_parse(texts[i], strlen(texts[i]), "x.log", &rows, &error),
                         -ATT_EINPUT);
        assert_non_null(strstr(error.text, "x.log"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_read_alike),
        cmocka_unit_test(equal_logs_give_no_alarm),
        cmocka_unit_test(a_shift_of_small_sizes_is_found),
        cmocka_unit_test(a_cliff_is_found),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
