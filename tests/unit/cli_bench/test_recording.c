/* What is recorded next, what survives a kill, and that the optimum is not the luckiest sample. */
#include "cli/bench_recording.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 200, REPEATS = 3, AGAIN = 30 };

static char folder[] = "/tmp/attune-recording-XXXXXX";
static char path[64], journal[64];
static att_setting_t settings[COUNT];
static const att_t4_header_t header = {.name = "made-up",
                                       .description = "made up",
                                       .source = "test",
                                       .collective = ATT_COLLECTIVE_ALL_REDUCE,
                                       .bytes = 1 << 20,
                                       .load = "none",
                                       .type = "float",
                                       .device = "none",
                                       .ranks = 2,
                                       .nodes = 1};

static int make(void **state)
{
    settings[0] = ATT_SETTING_KEEP;
    for (int i = 1; i < COUNT; i++)
        settings[i] = (att_setting_t){.algorithm = 1,
                                      .protocol = 2,
                                      .transport = ATT_TRANSPORT_KEEP,
                                      .channels = (uint16_t)i};
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/s.json.gz", folder);
    snprintf(journal, sizeof journal, "%s/s.partial.jsonl", folder);
    return 0;
}

static int clean(void **state)
{
    remove(path);
    remove(journal);
    return rmdir(folder);
}

static att_recording_t *open_recording(int batch, int expected)
{
    static att_recording_t recording;
    att_recording_plan_t plan = {
        .repeats = REPEATS, .again = AGAIN, .again_share = 0.05, .seed = 1, .batch = batch};
    att_error_t error = {""};
    int rc =
        att_recording_open(path, &header, "2.30.7", &plan, settings, COUNT, &recording, &error);
    if (rc != expected)
        fail_msg("%d: %s", rc, error.text);
    return &recording;
}

/* True durations: NCCL's choice 100 us; 90 at i = 60, rising to both sides; above 3 x 100 from 170
 * on. */
static double truth(int i)
{
    return i == 0 ? 100 : i >= 170 ? 400 : 90 + fabs(i - 60.0);
}

/* A sample with noise; number 150 (really 180 us) is very lucky in its grid samples. */
static double sample(int i, att_recording_kind_t kind, uint64_t *random)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    double noise = 1 + 0.1 * ((double)(*random >> 40) / 16777216.0 - 0.5);
    if (i == 150 && kind == ATT_RECORDING_GRID)
        return 50;
    return truth(i) * noise;
}

/* Measure up to `most` things; returns how many there were. */
static int measure(att_recording_t *r, int most, uint64_t *random, int *first)
{
    int n = 0, index;
    att_recording_kind_t kind;
    for (; n < most && att_recording_next(r, &index, &kind); n++) {
        if (n == 0 && first != NULL)
            *first = index;
        double us = sample(index, kind, random);
        int rc = kind == ATT_RECORDING_PROBE ? att_recording_probe(r, index, us, NULL)
                                             : att_recording_sample(r, index, kind, us, NULL);
        assert_int_equal(rc, 0);
    }
    return n;
}

static void check_complete(att_recording_t *r)
{
    for (int i = 0; i < COUNT; i++) {
        const att_recording_point_t *p = &r->points[i];
        assert_int_equal(p->slow, i >= 170);
        assert_int_equal(p->sample_count, i >= 170 ? 1 : REPEATS);
        if (p->again_count > 0 && p->again_count < AGAIN)
            fail_msg("setting %d was measured again %u times", i, p->again_count);
    }
    assert_true(r->points[0].again_count >= AGAIN);
    assert_true(r->points[150].again_count >= AGAIN);
    /* 5 % of 200, NCCL's choice, and no more than a few latecomers */
    int again = 0;
    for (int i = 0; i < COUNT; i++)
        again += r->points[i].again_count > 0;
    assert_in_range(again, 11, 40);
    /* the lucky one did not win, and nothing that looked faster than the winner was left out */
    int best = att_recording_best(r);
    assert_in_range(best, 57, 63);
    for (int i = 0; i < COUNT; i++)
        if (r->points[i].again_count == 0 && !r->points[i].slow)
            assert_true(r->points[i].median_us >= r->points[best].again_median_us);
}

static void all_is_measured_and_luck_does_not_win(void **state)
{
    uint64_t random = 7;
    int first = -1;
    att_recording_t *r = open_recording(4, 0);
    measure(r, 1000000, &random, &first);
    assert_int_equal(first, 0); /* NCCL's choice: what is slow is measured by it */
    check_complete(r);
    assert_false(att_recording_is_complete(path));
    assert_int_equal(att_recording_save(r, true, NULL), 0);
    att_recording_close(r);
    assert_true(att_recording_is_complete(path));
    remove(path);
}

static void killed_anywhere_it_goes_on(void **state)
{
    uint64_t random = 7;
    int rounds = 0, measured = 0;
    for (int n = 97; n == 97; rounds++) {
        att_recording_t *r = open_recording(4, 0);
        uint64_t before = att_recording_samples(r);
        assert_true(rounds == 0 || before > 0);
        n = measure(r, 97, &random, NULL);
        measured += n;
        if (n < 97)
            check_complete(r);
        att_recording_close(r); /* nothing is saved: only the journal is there */
        if (rounds % 3 == 0 && n == 97) {
            FILE *file = fopen(journal, "a");
            fputs("[17,\"gri", file);
            fclose(file);
        }
    }
    assert_true(rounds > 10);
    /* what was measured is not measured again, but for a probe at each start */
    assert_in_range(measured, 0, 200 + 170 * REPEATS + 60 * AGAIN + 2 * rounds);
    remove(journal);
}

static void samples_of_another_kind_do_not_mix(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_recording(4, 0);
    measure(r, 50, &random, NULL);
    att_recording_close(r);
    open_recording(8, -ATT_EMISMATCH);
    settings[5].channels++;
    open_recording(4, -ATT_EMISMATCH);
    settings[5].channels--;
    FILE *file = fopen(journal, "a");
    fputs("[4000,\"grid\",1,1]\n", file);
    fclose(file);
    open_recording(4, -ATT_EINPUT);
    remove(journal);
}

static void in_a_hurry_the_best_are_still_measured_again(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_recording(4, 0);
    r->hurry = true;
    measure(r, 1000000, &random, NULL);
    int best = att_recording_best(r);
    assert_int_equal(r->points[3].sample_count, 1); /* one pass */
    assert_true(r->points[best].again_count >= AGAIN);
    assert_in_range(best, 57, 63);
    att_recording_close(r);
    remove(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_measured_and_luck_does_not_win),
        cmocka_unit_test(killed_anywhere_it_goes_on),
        cmocka_unit_test(samples_of_another_kind_do_not_mix),
        cmocka_unit_test(in_a_hurry_the_best_are_still_measured_again),
    };
    return cmocka_run_group_tests_name("cli_bench_recording", tests, make, clean);
}
