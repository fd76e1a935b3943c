/* The metrics of more tasks than a segment holds: every one is there. */
#include "control/exporter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define COUNT (3 * ATT_TASKS)

static uint32_t lines_with(const char *path, const char *word)
{
    char line[4096];
    uint32_t found = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        found += strncmp(line, word, strlen(word)) == 0;
    fclose(file);
    return found;
}

static double cpu_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void every_task_is_exported(void **state)
{
    (void)state;
    char folder[] = "/tmp/att-exporter-XXXXXX", path[64], other[128];
    att_error_t error;
    att_config_t config;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.prom", folder);
    assert_int_equal(att_config_init(&config, &error), ATT_OK);
    assert_int_equal(att_config_set(&config, "metrics-file", path, "test", &error), ATT_OK);
    assert_int_equal(att_config_set(&config, "run-id", "r", "test", &error), ATT_OK);
    struct att_writer *writer;
    struct att_exporter *exporter;
    assert_int_equal(att_writer_create(&writer, &error), ATT_OK);
    assert_int_equal(att_exporter_create(&config, writer, &exporter, &error), ATT_OK);
    att_task_report_t *tasks = calloc(COUNT, sizeof *tasks);
    assert_non_null(tasks);
    for (uint32_t i = 0; i < COUNT; i++)
        tasks[i] = (att_task_report_t){.hash = i / 10 % (COUNT / 20),
                                       .bytes = 1024u << i % 10,
                                       .ranks = 8,
                                       .nodes = 1,
                                       .late_rank = ATT_NONE,
                                       .reason = ""};
    att_run_totals_t totals = {.state = "running", .device = ""};
    /* First few, then many: the latter half are the former communicators, made once more. */
    att_exporter_report(exporter, &totals, tasks, 10, 1);
    att_writer_flush(writer);
    assert_int_equal(lines_with(path, "attune_task_trials_total{"), 10);
    double process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID), own_s = cpu_s(CLOCK_THREAD_CPUTIME_ID);
    att_exporter_report(exporter, &totals, tasks, COUNT, 1);
    own_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - own_s;
    att_writer_flush(writer);
    process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - process_s;
    /* The text is made by the writer: whoever reports has records and votes to look after. */
    assert_true(own_s < process_s / 2);
    assert_int_equal(lines_with(path, "attune_task_trials_total{"), COUNT / 2 / 10 * 10);
    att_exporter_destroy(exporter);
    att_writer_destroy(writer);
    att_config_free(&config);
    free(tasks);
    unlink(path);
    snprintf(other, sizeof other, "%s/nccl_inspector_metrics_r.prom", folder);
    unlink(other);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_is_exported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
