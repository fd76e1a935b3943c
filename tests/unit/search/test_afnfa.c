/* The strategy afnfa: what it learns from, what it picks, what it says of files it cannot use. */
#include "base/log.h"
#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct att_space_owned *six;
static struct att_strategy_host *host;
static char folder[] = "/tmp/attune-afnfa-XXXXXX";

/* Fastest: ring, simple or ll (the first of the ring), 8 channels, chunks of 64 KiB. */
static double duration(att_setting_t x)
{
    double chunk = x.chunk_bytes > 0 ? x.chunk_bytes : 2097152;
    return 1000 * (1 + 0.2 * fabs(log2(x.channels / 8.0)) + 0.05 * fabs(log2(chunk / 65536))) *
           (x.algorithm == 1 ? 1 : 1.4);
}

static uint32_t asked;
static att_setting_t best;

static int search(const char *spec, uint64_t seed, att_error_t *error)
{
    struct att_search *search;
    asked = 0;
    int rc = att_search_begin(host, spec, att_space_view(six), seed, &search, error);
    if (rc != ATT_OK)
        return rc;
    for (;;) {
        att_setting_t settings[15];
        uint32_t count;
        if (att_search_ask(search, 15, error) != ATT_OK ||
            att_search_poll(search, settings, &count, error) != 1)
            fail_msg("%s: %s", spec, error->text);
        if (count == 0)
            break;
        for (uint32_t i = 0; i < count; i++) {
            double us = duration(settings[i]);
            att_result_t result = fixture_result(&us);
            result.baseline_median_us = 1500;
            asked++;
            assert_int_equal(att_search_tell(search, &settings[i], &result, error), 0);
        }
    }
    assert_int_equal(att_search_best(search, &best, error), 0);
    att_search_end(search);
    return ATT_OK;
}

static const char *file_with(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return path;
}

/* A recording of every second channel count, as CSV. */
static const char *recording(const char *name, const char *header, const char *prefix)
{
    static char text[200000];
    int n = snprintf(text, sizeof text, "%s\n", header);
    for (int a = 0; a < 2; a++)
        for (int channels = 2; channels <= 64; channels += 2)
            for (int chunk = 4096; chunk <= 2097152; chunk *= 2) {
                att_setting_t x = {.algorithm = (int8_t)a,
                                   .protocol = 0,
                                   .channels = (uint16_t)channels,
                                   .chunk_bytes = (uint32_t)chunk};
                for (int p = 0; p < 2; p++)
                    n +=
                        snprintf(text + n, sizeof text - (size_t)n,
                                 "%s%s,%s,keep,%d,keep,%d,%.3f\n", prefix, a == 1 ? "ring" : "tree",
                                 p == 1 ? "simple" : "ll", channels, chunk, duration(x));
            }
    return file_with(name, text);
}

static void own_trials_are_paid_for(void **state)
{
    (void)state;
    att_error_t error;
    att_host_usage_t before, after;
    att_strategy_host_usage(host, &before);
    assert_int_equal(search("afnfa", 1, &error), ATT_OK);
    assert_int_equal(asked, 345 + 1);
    assert_true(duration(best) < 1250);
    assert_int_equal(search("afnfa:samples=50", 1, &error), ATT_OK);
    assert_int_equal(asked, 50 + 1);
    /* 1 % of 64 channels, 2 x (5 + 9 + 10 or 9) chunks or so */
    assert_int_equal(search("afnfa:form=task", 1, &error), ATT_OK);
    assert_in_range(asked, 20, 40);
    att_strategy_host_usage(host, &after);
    assert_int_equal(after.offline_samples, before.offline_samples);
}

static void recorded_samples_are_charged(void **state)
{
    (void)state;
    char spec[200];
    att_error_t error;
    att_host_usage_t before, after;
    const char *file =
        recording("all.csv", "algorithm,protocol,transport,channels,threads,chunk,time_us", "");
    snprintf(spec, sizeof spec, "afnfa:samples=300,train=%s", file);
    att_strategy_host_usage(host, &before);
    assert_int_equal(search(spec, 1, &error), ATT_OK);
    att_strategy_host_usage(host, &after);
    assert_int_equal(after.offline_samples - before.offline_samples, 300);
    assert_int_equal(asked, 1); /* nothing but the pick runs */
    assert_int_equal(best.algorithm, 1);
    assert_true(duration(best) < 1250);
    att_setting_t pick = best;
    assert_int_equal(search(spec, 1, &error), ATT_OK);
    assert_true(att_setting_equal(pick, best));
}

/* form=task takes the rows of its own task only. */
static void a_task_learns_from_its_own_rows(void **state)
{
    (void)state;
    char spec[200];
    att_error_t error;
    const char *header =
        "collective,bytes,algorithm,protocol,transport,channels,threads,chunk_bytes,measured_us";
    snprintf(spec, sizeof spec, "afnfa:form=task,train=%s",
             recording("mine.csv", header, "allreduce,83886080,"));
    assert_int_equal(search(spec, 1, &error), ATT_OK);
    assert_int_equal(asked, 1);
    snprintf(spec, sizeof spec, "afnfa:form=task,train=%s",
             recording("other.csv", header, "allgather,83886080,"));
    assert_int_equal(search(spec, 1, &error), -ATT_EUSAGE);
    snprintf(spec, sizeof spec, "afnfa:train=%s/other.csv:%s/mine.csv", folder, folder);
    assert_int_equal(search(spec, 1, &error), ATT_OK);
}

static void files_that_will_not_do(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n\n",
        "a,b\n1,2\n",
        "algorithm,protocol,channels,time_us\n",
        "{\"results\":1}",
        "{\"results\":[]}",
        "{",
        "algorithm,protocol,channels,time_us\nring,ll,8,-1\nring,ll,8,x\n",
        "algorithm,protocol,channels,time_us\nring,ll,8,5\n", /* one row */
        "\"algorithm,protocol,channels,time_us\n\"ring,ll,8,5\n"};
    char spec[200];
    att_error_t error;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(spec, sizeof spec, "afnfa:train=%s", file_with("bad", texts[i]));
        if (search(spec, 1, &error) != -ATT_EUSAGE)
            fail_msg("text %zu was taken", i);
    }
    assert_int_equal(search("afnfa:train=/nowhere", 1, &error), -ATT_EUSAGE);
    static const char *const specs[] = {"afnfa:samples=1", "afnfa:share=0", "afnfa:share=2",
                                        "afnfa:trees=0", "afnfa:steps=0"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(search(specs[i], 1, &error), -ATT_EUSAGE);
}

static int setup(void **state)
{
    (void)state;
    att_log_set_level(ATT_LOG_ERROR);
    six = fixture_space(1);
    if (mkdtemp(folder) == NULL)
        return -1;
    return att_strategy_host_create(ATTUNE_TEST_STRATEGIES, ATT_HOST_INPROCESS, 1, &host, NULL);
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"all.csv", "mine.csv", "other.csv", "bad"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    att_strategy_host_destroy(host);
    att_space_destroy(six);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_trials_are_paid_for),
        cmocka_unit_test(recorded_samples_are_charged),
        cmocka_unit_test(a_task_learns_from_its_own_rows),
        cmocka_unit_test(files_that_will_not_do),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
