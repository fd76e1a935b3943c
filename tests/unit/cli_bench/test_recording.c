/* What is recorded next, what survives a kill, and that the optimum is not the luckiest sample or
 * the luckiest median. */
#include "cli/bench_recording.h"
#include "surface/t4.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 200, REPEATS = 3, AGAIN = 30, FRONT = 8, FRONT_SAMPLES = 120 };

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

static att_recording_t *open_front(int batch, int front, int front_samples, int expected)
{
    static att_recording_t recording;
    att_recording_plan_t plan = {.repeats = REPEATS,
                                 .again = AGAIN,
                                 .again_share = 0.05,
                                 .front = front,
                                 .front_samples = front_samples,
                                 .seed = 1,
                                 .batch = batch};
    att_error_t error = {""};
    int rc =
        att_recording_open(path, &header, "2.30.7", &plan, settings, COUNT, &recording, &error);
    if (rc != expected)
        fail_msg("%d: %s", rc, error.text);
    return &recording;
}

static att_recording_t *open_recording(int batch, int expected)
{
    return open_front(batch, 0, 0, expected);
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

/* Nobody with fewer samples than the second measurement gives looks faster than the best. */
static void check_none_looks_faster(const att_recording_t *r)
{
    double best_us = r->points[att_recording_best(r)].again_median_us;
    for (int i = 0; i < COUNT; i++) {
        const att_recording_point_t *p = &r->points[i];
        if (!p->slow && p->again_count < AGAIN)
            assert_true((p->again_count > 0 ? p->again_median_us : p->median_us) > best_us);
    }
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
    check_none_looks_faster(r);
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
    /* what was measured is not measured again, but for a few probes at each start */
    assert_in_range(measured, 0, 230 + 170 * REPEATS + 60 * AGAIN + 7 * rounds);
    remove(journal);
}

/* Of NCCL's choice two of five probes and the first sample are lucky, of each other setting the
 * first probe is held up: who is slow is found all the same. */
static void no_single_call_makes_a_setting_slow(void **state)
{
    uint64_t random = 7;
    int index, natives = 0, probes[COUNT] = {0};
    att_recording_kind_t kind;
    att_recording_t *r = open_recording(4, 0);
    while (att_recording_next(r, &index, &kind)) {
        double us = sample(index, kind, &random);
        if (kind == ATT_RECORDING_PROBE)
            probes[index]++;
        if (index == 0 && (kind == ATT_RECORDING_PROBE ? probes[0] % 2 == 0 : natives++ == 0))
            us = 5;
        if (kind == ATT_RECORDING_PROBE && index > 0 && probes[index] == 1)
            us *= 10;
        assert_int_equal(kind == ATT_RECORDING_PROBE
                             ? att_recording_probe(r, index, us, NULL)
                             : att_recording_sample(r, index, kind, us, NULL),
                         0);
    }
    assert_int_equal(probes[0], ATT_NATIVE_CALLS);
    check_complete(r);
    for (int i = 170; i < COUNT; i++)
        assert_in_range(r->points[i].samples[0], 375, 425); /* the shorter of its calls */
    att_recording_close(r);
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

/* The fastest FRONT by the medians, and NCCL's choice, have their samples; few others do. */
static void check_settled(const att_recording_t *r)
{
    int settled = 0;
    for (int i = 0; i < COUNT; i++) {
        const att_recording_point_t *p = &r->points[i];
        int faster = 0;
        for (int j = 0; j < COUNT; j++)
            faster +=
                r->points[j].again_count > 0 && r->points[j].again_median_us < p->again_median_us;
        if (p->again_count > 0 && (i == 0 || faster < FRONT))
            assert_true(p->again_count >= FRONT_SAMPLES);
        settled += p->again_count >= FRONT_SAMPLES;
    }
    assert_in_range(settled, FRONT, 3 * FRONT);
}

static void the_front_is_settled(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_front(4, FRONT, FRONT_SAMPLES, 0);
    measure(r, 1000000, &random, NULL);
    check_complete(r);
    check_settled(r);
    assert_in_range(att_recording_best(r), 59, 61);
    att_recording_close(r);
    remove(journal);
}

static void killed_anywhere_its_front_is_settled(void **state)
{
    uint64_t random = 7;
    int rounds = 0, measured = 0;
    for (int n = 97; n == 97; rounds++) {
        att_recording_t *r = open_front(4, FRONT, FRONT_SAMPLES, 0);
        n = measure(r, 97, &random, NULL);
        measured += n;
        if (n < 97) {
            check_complete(r);
            check_settled(r);
            assert_true(att_recording_samples(r) >= (uint64_t)(measured - 200 - 6 * rounds));
        }
        att_recording_close(r);
    }
    assert_in_range(measured, 0,
                    230 + 170 * REPEATS + 60 * AGAIN + 3 * FRONT * FRONT_SAMPLES + 7 * rounds);
    remove(journal);
}

static void without_a_front_nothing_is_settled(void **state)
{
    int counts[][2] = {{0, FRONT_SAMPLES}, {FRONT, 0}, {FRONT, AGAIN}};
    uint64_t samples = 0;
    for (int k = 0; k < 3; k++) {
        uint64_t random = 7;
        att_recording_t *r = open_front(4, counts[k][0], counts[k][1], 0);
        measure(r, 1000000, &random, NULL);
        samples = k == 0 ? att_recording_samples(r) : samples;
        assert_int_equal(att_recording_samples(r), samples);
        att_recording_close(r);
        remove(journal);
    }
}

/* Latecomers come by what the best was then: going on, those that have all their samples start
 * nothing anew, and one that has but a lucky one gets the rest. */
static void going_on_latecomers_get_what_they_lack(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_recording(4, 0);
    measure(r, 1000000, &random, NULL);
    assert_int_equal(r->points[140].again_count, 0);
    att_recording_close(r);
    r = open_recording(4, 0);
    assert_int_equal(measure(r, 1000000, &random, NULL), 0);
    assert_int_equal(att_recording_sample(r, 140, ATT_RECORDING_AGAIN, 50, NULL), 0);
    att_recording_close(r);
    r = open_recording(4, 0);
    assert_true(measure(r, 1000000, &random, NULL) >= AGAIN - 1);
    check_complete(r);
    att_recording_close(r);
    remove(journal);
}

/* A recording that was complete without a front, whose journal is there, is taken up again. */
static void a_front_can_be_settled_later(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_recording(4, 0);
    measure(r, 1000000, &random, NULL);
    uint64_t before = att_recording_samples(r);
    assert_int_equal(att_recording_save(r, false, NULL), 0);
    att_recording_close(r);
    assert_false(att_recording_is_complete(path));

    r = open_front(4, FRONT, FRONT_SAMPLES, 0);
    assert_int_equal(att_recording_samples(r), before);
    int index;
    att_recording_kind_t kind;
    while (att_recording_next(r, &index, &kind)) {
        assert_int_equal(kind, ATT_RECORDING_AGAIN);
        assert_int_equal(att_recording_sample(r, index, kind, sample(index, kind, &random), NULL),
                         0);
    }
    check_complete(r);
    check_settled(r);
    assert_int_equal(att_recording_save(r, true, NULL), 0);
    att_recording_close(r);
    assert_true(att_recording_is_complete(path));
    remove(path);
}

/* How much faster than it is the optimum is recorded, of 199 settings that are all alike. */
static double luck(int front, int front_samples, uint64_t random, uint64_t *samples)
{
    att_recording_t *r = open_front(4, front, front_samples, 0);
    int index;
    att_recording_kind_t kind;
    while (att_recording_next(r, &index, &kind)) {
        double noise = 0; /* of 6 %, nearly normal */
        for (int i = 0; i < 12; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            noise += (double)(random >> 40) / 16777216.0 - 0.5;
        }
        double us = (index == 0 ? 150 : 100) * (1 + 0.06 * noise);
        assert_int_equal(kind == ATT_RECORDING_PROBE
                             ? att_recording_probe(r, index, us, NULL)
                             : att_recording_sample(r, index, kind, us, NULL),
                         0);
    }
    check_none_looks_faster(r);
    *samples += att_recording_samples(r);
    double best_us = r->points[att_recording_best(r)].again_median_us;
    att_recording_close(r);
    remove(journal);
    return 1 - best_us / 100;
}

static void a_settled_optimum_is_less_lucky(void **state)
{
    double before = 0, after = 0;
    uint64_t samples_before = 0, samples_after = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        before += luck(0, 0, seed, &samples_before) / 8;
        after += luck(16, 200, seed, &samples_after) / 8;
    }
    print_message("too fast by %.2f %% with %" PRIu64 " samples, settled %.2f %% with %" PRIu64
                  "\n",
                  100 * before, samples_before / 8, 100 * after, samples_after / 8);
    assert_true(before > 0.02);
    assert_true(after < before / 2 && after > 0);
}

/* Who is measured beside others never gets more samples than a reader takes. */
/* The median that is told, and by which the front is chosen, is of all samples: the surface's. */
static void a_median_is_of_all_samples(void **state)
{
    (void)state;
    att_recording_t *r = open_recording(4, 0);
    for (int i = 0; i < 1500; i++)
        assert_int_equal(
            att_recording_sample(r, 60, ATT_RECORDING_AGAIN, i < 900 ? 10 + i % 3 : 20, NULL), 0);
    assert_int_equal(r->points[60].again_count, 1500);
    assert_float_equal(r->points[60].again_median_us, 12, 0);
    att_recording_close(r);
    r = open_recording(4, 0);
    assert_int_equal(r->points[60].again_count, 1500);
    assert_float_equal(r->points[60].again[899], 12, 0); /* in the order they came in */
    assert_float_equal(r->points[60].again_median_us, 12, 0);
    att_recording_close(r);
    remove(journal);
}

static void no_list_is_too_long_to_be_read(void **state)
{
    uint64_t random = 7;
    att_recording_t *r = open_front(4, FRONT, FRONT_SAMPLES, 0);
    measure(r, 1000000, &random, NULL);
    att_recording_point_t *p = &r->points[att_recording_best(r)];
    double *again = malloc(ATT_T4_SAMPLES_MAX * sizeof *again);
    double *sorted = malloc(ATT_T4_SAMPLES_MAX * sizeof *sorted);
    assert_true(again != NULL && sorted != NULL);
    for (int i = 0; i < ATT_T4_SAMPLES_MAX; i++)
        again[i] = sorted[i] = p->again_median_us;
    free(p->again);
    free(p->again_sorted);
    p->again = again;
    p->again_sorted = sorted;
    p->again_room = ATT_T4_SAMPLES_MAX;
    p->again_count = ATT_T4_SAMPLES_MAX - 2;
    r->front_samples += 50;
    assert_true(measure(r, 1000000, &random, NULL) > 50);
    assert_int_equal(p->again_count, ATT_T4_SAMPLES_MAX);
    att_recording_close(r);
    remove(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_measured_and_luck_does_not_win),
        cmocka_unit_test(killed_anywhere_it_goes_on),
        cmocka_unit_test(no_single_call_makes_a_setting_slow),
        cmocka_unit_test(samples_of_another_kind_do_not_mix),
        cmocka_unit_test(in_a_hurry_the_best_are_still_measured_again),
        cmocka_unit_test(going_on_latecomers_get_what_they_lack),
        cmocka_unit_test(the_front_is_settled),
        cmocka_unit_test(killed_anywhere_its_front_is_settled),
        cmocka_unit_test(without_a_front_nothing_is_settled),
        cmocka_unit_test(a_front_can_be_settled_later),
        cmocka_unit_test(a_settled_optimum_is_less_lucky),
        cmocka_unit_test(a_median_is_of_all_samples),
        cmocka_unit_test(no_list_is_too_long_to_be_read),
    };
    return cmocka_run_group_tests_name("cli_bench_recording", tests, make, clean);
}
