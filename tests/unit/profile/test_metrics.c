/* Prometheus text of a run: every family once, labels shielded, no task without its numbers. */
#include "profile/metrics.h"
#include "profile/metrics_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static att_metrics_task_t tasks[2];
static att_metrics_t metrics;

static int fill(void **state)
{
    (void)state;
    tasks[0] = (att_metrics_task_t){
        .hash = 0xabc,
        .ranks = 4,
        .nodes = 2,
        .collective = ATT_COLLECTIVE_ALL_REDUCE,
        .legal_pairs = 7,
        .bytes = 4 << 20,
        .phase = "settled",
        .trials = 12,
        .settled = 1,
        .default_s = 1e-3,
        .tuned_s = 5e-4,
        .now_s = 8e-4,
        .setting = {.algorithm = ATT_ALGORITHM_RING, .protocol = ATT_PROTOCOL_LL128},
        .late = 1,
        .late_rank = 3,
        .late_s = 2e-3};
    tasks[1] = (att_metrics_task_t){.hash = 0xabc,
                                    .ranks = 4,
                                    .collective = ATT_COLLECTIVE_BROADCAST,
                                    .bytes = 8,
                                    .phase = "new",
                                    .trials = 1,
                                    .setting = ATT_SETTING_KEEP};
    metrics = (att_metrics_t){.run_id = "a\"b\\c\nd\xff",
                              .device = "",
                              .host = "n1",
                              .job_id = "77",
                              .running = 1,
                              .unix_s = 1e9 + 0.25,
                              .untimed = {0, 5},
                              .decisions = 1ull << 60,
                              .tasks = tasks,
                              .task_count = 2};
    return 0;
}

static char *print(void (*write)(const att_metrics_t *, FILE *))
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    write(&metrics, out);
    fclose(out);
    return text;
}

static void expect(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (at == NULL || (at != text && at[-1] != '\n'))
        fail_msg("no line begins with: %s\n%s", line, text);
}

static void numbers_and_labels(void **state)
{
    char *text = print(att_metrics_print);
    expect(text, "attune_info{version=\"" ATTUNE_VERSION
                 "\",run_id=\"a\\\"b\\\\c?d?\",node=\"n1\",device=\"\",nccl=\"0\"} 1\n");
    expect(text, "attune_updated_timestamp_seconds 1000000000.25\n");
    expect(text, "attune_decisions_total 1152921504606846976\n");
    expect(text, "attune_calls_untimed_total{reason=\"off\"} 5\n");
    expect(text, "attune_trials_total 13\n");
    expect(text, "attune_tasks{phase=\"settled\"} 1\n");
#define TASK                                                                                       \
    "{group=\"0xabc\",collective=\"allreduce\",bytes=\"4194304\",ranks=\"4\",nodes=\"2\","         \
    "pairs=\"0x7\""
    expect(text, "attune_task_trials_total" TASK "} 12\n");
    expect(text, "attune_task_duration_seconds" TASK ",setting=\"now\"} 0.0008\n");
    /* 4 MiB in 0.5 ms, twice 3/4 of it */
    expect(text,
           "attune_task_bus_bandwidth_bytes_per_second" TASK ",setting=\"best\"} 1.2582912e+10\n");
    expect(text, "attune_task_late_rank_seconds" TASK ",rank=\"3\"} 0.002\n");
    assert_null(strstr(text, "bytes=\"8\",ranks=\"4\",nodes=\"0\",pairs=\"0x0\",setting"));
    free(text);
}

static void every_family_has_one_head_and_its_name_in_the_docs(void **state)
{
    char *text = print(att_metrics_print), docs[65536] = "";
    FILE *file = fopen(ATTUNE_TEST_DOCS "/metrics.md", "r");
    assert_non_null(file);
    docs[fread(docs, 1, sizeof docs - 1, file)] = '\0';
    fclose(file);
    int families = 0;
    for (const char *at = text; (at = strstr(at, "# TYPE ")) != NULL; at++, families++) {
        char name[80], head[96], documented[96];
        assert_int_equal(sscanf(at, "# TYPE %79s", name), 1);
        snprintf(head, sizeof head, "# TYPE %s ", name);
        snprintf(documented, sizeof documented, "`%s`", name);
        assert_null(strstr(at + 1, head));
        if (strstr(docs, documented) == NULL)
            fail_msg("docs/metrics.md does not have %s", name);
    }
    int listed = 0;
    for (const char *at = docs; (at = strstr(at, "\n| `attune_")) != NULL; at++)
        listed++;
    assert_int_equal(listed, families);
    free(text);
}

/* What is written can be read: every line that is no comment is one sample. */
static void the_text_reads_back(void **state)
{
    char *text = print(att_metrics_print), value[32];
    const char *at = text, *end = text + strlen(text);
    att_metrics_sample_t s;
    int samples = 0, lines = 0, seen = 0;
    while (att_metrics_text_next(&at, end, &s)) {
        samples++;
        if (strncmp(s.name, "attune_info", s.name_length) == 0) {
            const char *label = s.labels;
            assert_true(
                att_metrics_label_next(&label, s.labels + s.labels_length, value, sizeof value));
            assert_string_equal(value, ATTUNE_VERSION);
            assert_true(
                att_metrics_label_next(&label, s.labels + s.labels_length, value, sizeof value));
            assert_string_equal(value, "a\"b\\c?d?");
            assert_true(att_metrics_label_next(&label, s.labels + s.labels_length, value, 2));
            assert_string_equal(value, "n");
            seen++;
        } else if (strncmp(s.name, "attune_trials_total", s.name_length) == 0) {
            assert_float_equal(s.value, 13, 0);
            assert_int_equal(s.labels_length, 0);
            seen++;
        }
    }
    for (const char *c = text; *c != '\0'; c = strchr(c, '\n') + 1)
        lines += *c != '#';
    assert_int_equal(samples, lines);
    assert_int_equal(seen, 2);
    free(text);
}

static void inspector_names(void **state)
{
    char *text = print(att_metrics_print_inspector);
    expect(text, "nccl_bus_bandwidth_gbs{version=\"v5.1\",slurm_job_id=\"77\",node=\"n1\","
                 "gpu=\"all\",comm_name=\"0xabc\",n_nodes=\"2\",nranks=\"4\","
                 "collective=\"AllReduce\",message_size=\"4M\",algo_proto=\"Ring_ll128\"} "
                 "7.86432\n");
    expect(text, "nccl_collective_exec_time_microseconds{");
    assert_null(strstr(text, "Broadcast")); /* never measured */
    free(text);
}

static void a_file_is_replaced_whole_or_not_at_all(void **state)
{
    char folder[] = "metrics-XXXXXX", path[64], text[16] = "";
    att_error_t error;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.prom", folder);
    assert_int_equal(att_metrics_replace(path, "one", 3, &error), ATT_OK);
    assert_int_equal(att_metrics_replace(path, "two", 3, &error), ATT_OK);
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof text, file), 3);
    assert_string_equal(text, "two");
    fclose(file);
    char link[64];
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("a.prom", link), 0);
    assert_int_equal(att_metrics_replace(link, "six", 3, &error), ATT_OK);
    assert_int_equal(unlink(link), 0);
    file = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof text, file), 3);
    assert_string_equal(text, "two"); /* a link is never followed */
    fclose(file);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(att_metrics_replace(path, "x", 1, &error), -ATT_ESYSTEM);
    assert_non_null(strstr(error.text, folder));
}

static void a_device_stays_one(void **state)
{
    char folder[] = "metrics-XXXXXX", path[64];
    struct stat found;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/null", folder);
    if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) != 0) {
        rmdir(folder);
        print_message("skip: this user makes no devices\n");
        skip();
    }
    int status = att_metrics_replace(path, "one", 3, NULL);
    int status_of_stat = stat(path, &found);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(status, ATT_OK);
    assert_int_equal(status_of_stat, 0);
    assert_true(S_ISCHR(found.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_labels),
        cmocka_unit_test(every_family_has_one_head_and_its_name_in_the_docs),
        cmocka_unit_test(the_text_reads_back),
        cmocka_unit_test(inspector_names),
        cmocka_unit_test(a_file_is_replaced_whole_or_not_at_all),
        cmocka_unit_test(a_device_stays_one),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
