/*
 * tuner CSV: read back as NCCL's example tuner reads it (plugins/tuner/example/plugin.c of 2.30.7:
 * lines of 255 bytes, '#' in column 0, strtok, unknown words become allreduce, ring, simple; first
 * match wins; one channel where nothing matches or the line says -1).
 */
#include "base/names.h"
#include "cli/tuner_csv.h"
#include "tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RULES 256

typedef struct rule {
    int collective, algorithm, protocol, channels, nodes, ranks;
    unsigned long long low, high;
} rule_t;

static rule_t rules[RULES];
static int rule_count;
static char path[PATH_MAX];

/* A word that the plugin does not know would silently become another: the tests forbid it. */
static int known(int number, const char *word)
{
    if (number < 0)
        fail_msg("the plugin does not know '%s'", word);
    return number;
}

static void load_rules(void)
{
    char line[256];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    rule_count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        assert_non_null(strchr(line, '\n')); /* no line is cut */
        if (line[0] == '#' || line[0] == '\n')
            continue;
        line[strcspn(line, "\n")] = '\0';
        char *words[11];
        int n = 0;
        for (char *w = strtok(line, ","); w != NULL && n < 11; w = strtok(NULL, ","))
            words[n++] = w;
        assert_int_equal(n, 8);
        assert_true(rule_count < RULES);
        rules[rule_count++] =
            (rule_t){.collective = known(att_collective_parse(words[0]), words[0]),
                     .low = strtoull(words[1], NULL, 10),
                     .high = strtoull(words[2], NULL, 10),
                     .algorithm = known(att_algorithm_parse(words[3]), words[3]),
                     .protocol = known(att_protocol_parse(words[4]), words[4]),
                     .channels = atoi(words[5]),
                     .nodes = atoi(words[6]),
                     .ranks = atoi(words[7])};
        assert_string_equal(att_collective_name(rules[rule_count - 1].collective), words[0]);
        assert_string_equal(att_algorithm_name(rules[rule_count - 1].algorithm), words[3]);
        assert_string_equal(att_protocol_name(rules[rule_count - 1].protocol), words[4]);
        assert_true(rules[rule_count - 1].channels >= 0);
    }
    fclose(file);
}

static const rule_t *match(int collective, unsigned long long bytes, int nodes, int ranks)
{
    for (int i = 0; i < rule_count; i++) {
        const rule_t *r = &rules[i];
        if (r->collective == collective && bytes >= r->low && bytes <= r->high &&
            (r->nodes == -1 || r->nodes == nodes) && (r->ranks == -1 || r->ranks == ranks))
            return r;
    }
    return NULL;
}

static void expect(int collective, unsigned long long bytes, int nodes, int ranks, int algorithm,
                   int protocol, int channels)
{
    const rule_t *r = match(collective, bytes, nodes, ranks);
    if (r == NULL)
        fail_msg("no rule for %s %llu", att_collective_name(collective), bytes);
    if (r->algorithm != algorithm || r->protocol != protocol || r->channels != channels)
        fail_msg("%s %llu: %s/%s ch=%d", att_collective_name(collective), bytes,
                 att_algorithm_name(r->algorithm), att_protocol_name(r->protocol), r->channels);
}

static void write_rules(const att_tasks_t *tasks)
{
    att_error_t e = {""};
    if (att_tuner_csv_write(tasks, "the run", "2025-11-29T16:47:00Z", path, &e) != ATT_OK)
        fail_msg("%s", e.text);
    load_rules();
}

static void tuned_and_kept(void **state)
{
    att_tasks_t t;
    read_two_tasks(&t);
    write_rules(&t);
    expect(ATT_COLLECTIVE_ALL_GATHER, 83886080, 1, 8, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 20);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1048576, 1, 8, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 16);
    /* Another size: NCCL's pair, its own channel count. Other ranks: the general line. */
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1048577, 1, 8, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 0);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1048576, 2, 16, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 0);
    att_tasks_free(&t);
}

static void every_size_has_a_rule(void **state)
{
    att_tasks_t t;
    read_two_tasks(&t);
    write_rules(&t);
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++)
        for (int bit = -1; bit < 63; bit++)
            for (int around = -1; around <= 1; around++) {
                unsigned long long bytes = bit < 0 ? 0 : (1ull << bit) + (unsigned long long)around;
                assert_non_null(match(c, bytes, 1, 8));
                assert_non_null(match(c, bytes, 7, 56));
            }
    att_tasks_free(&t);
}

static att_task_row_t row(int collective, uint64_t bytes, att_setting_t native, att_setting_t tuned,
                          uint64_t samples)
{
    att_task_row_t r = {.ranks = 4, .nodes = 1, .collective = collective, .bytes = bytes};
    snprintf(r.phase, sizeof r.phase, "settled");
    r.native = (att_measured_t){.setting = native, .median_us = 100, .samples = 30};
    r.tuned = (att_measured_t){.setting = tuned, .median_us = 80, .samples = samples};
    return r;
}

#define SETTING(a, p, c)                                                                           \
    ((att_setting_t){.algorithm = ATT_ALGORITHM_##a,                                               \
                     .protocol = ATT_PROTOCOL_##p,                                                 \
                     .transport = ATT_TRANSPORT_KEEP,                                              \
                     .channels = c})

static void ranges_follow_the_nearest_size(void **state)
{
    att_task_row_t rows[] = {
        row(ATT_COLLECTIVE_ALL_REDUCE, 1 << 20, SETTING(RING, SIMPLE, 8), SETTING(NVLS, SIMPLE, 6),
            30),
        row(ATT_COLLECTIVE_ALL_REDUCE, 1 << 10, SETTING(TREE, LL, 2), SETTING(RING, LL, 1), 30),
    };
    att_tasks_t t = {.rows = rows, .count = 2};
    write_rules(&t);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1 << 20, 1, 4, ATT_ALGORITHM_NVLS, ATT_PROTOCOL_SIMPLE, 6);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1 << 10, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 1);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 0, 1, 4, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 0);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1 << 15, 1, 4, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 0);
    expect(ATT_COLLECTIVE_ALL_REDUCE, (1 << 15) + 1, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE,
           0);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 1ull << 40, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 0);
}

/* Two groups of the same shape: one rule, of the better measured one. Kept knobs are NCCL's. */
static void same_scope_and_kept_knobs(void **state)
{
    att_setting_t keep = ATT_SETTING_KEEP, channels = ATT_SETTING_KEEP;
    channels.channels = 12;
    att_task_row_t rows[] = {
        row(ATT_COLLECTIVE_REDUCE, 4096, SETTING(RING, LL, 4), SETTING(RING, LL128, 3), 10),
        row(ATT_COLLECTIVE_REDUCE, 4096, SETTING(RING, LL, 4), SETTING(TREE, LL, 5), 20),
        row(ATT_COLLECTIVE_BROADCAST, 4096, SETTING(RING, LL, 4), channels, 20),
        row(ATT_COLLECTIVE_ALL_GATHER, 4096, SETTING(RING, LL, 4), SETTING(RING, LL, 0), 20),
        row(ATT_COLLECTIVE_ALL_REDUCE, 4096, keep, keep, 0),
    };
    att_tasks_t t = {.rows = rows, .count = 5};
    write_rules(&t);
    expect(ATT_COLLECTIVE_REDUCE, 4096, 1, 4, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 5);
    expect(ATT_COLLECTIVE_BROADCAST, 4096, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 12);
    expect(ATT_COLLECTIVE_ALL_GATHER, 4096, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 4);
    expect(ATT_COLLECTIVE_ALL_REDUCE, 4096, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 0);
}

/* A reason may be long and have anything in it: still one comment line that the plugin skips. */
static void long_reasons_stay_comments(void **state)
{
    att_task_row_t r =
        row(ATT_COLLECTIVE_REDUCE, 4096, SETTING(RING, LL, 4), SETTING(RING, LL, 4), 10);
    r.kept_default = true;
    memset(r.reason, ',', sizeof r.reason - 1);
    memcpy(r.reason, "a\nreduce,0,9,tree,ll,1,1,4\n", 27);
    att_tasks_t t = {.rows = &r, .count = 1};
    char name[512];
    memset(name, 'n', sizeof name - 1);
    name[511] = '\0';
    att_error_t e = {""};
    assert_int_equal(att_tuner_csv_write(&t, name, "2025-11-29T16:47:00Z", path, &e), ATT_OK);
    load_rules();
    expect(ATT_COLLECTIVE_REDUCE, 5, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 0);
    expect(ATT_COLLECTIVE_REDUCE, 4096, 1, 4, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 4);
}

static void unwritable(void **state)
{
    att_tasks_t t = {.count = 0};
    att_error_t e = {""};
    assert_int_equal(att_tuner_csv_write(&t, "n", "w", "/nonexistent/tuner.csv", &e), -ATT_ESYSTEM);
    assert_non_null(strstr(e.text, "/nonexistent/tuner.csv"));
}

int main(void)
{
    snprintf(path, sizeof path, "%s/tuner-%d.csv", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tuned_and_kept),
        cmocka_unit_test(every_size_has_a_rule),
        cmocka_unit_test(ranges_follow_the_nearest_size),
        cmocka_unit_test(same_scope_and_kept_knobs),
        cmocka_unit_test(long_reasons_stay_comments),
        cmocka_unit_test(unwritable),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
