/* Matching: truncated windows, holes and several communicators give no false match, and every
 * record is matched or counted. */
#include "profile/matcher.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define RANKS 4u

/* Two communicators of four ranks, one task each. */
static void make_catalog(att_catalog_t *c)
{
    *c = (att_catalog_t){0};
    att_stream_header_t header = {.node = 0};
    uint32_t node;
    assert_int_equal(att_catalog_node(c, &header, &node), ATT_OK);
    for (uint32_t g = 0; g < 2; g++) {
        att_stream_group_t group = {.hash = 100 + g, .index = g, .ranks = RANKS};
        assert_int_equal(att_catalog_add_group(c, node, &group), ATT_OK);
        att_stream_task_t task = {.bytes = 4096, .index = g, .group = g, .collective = 4};
        assert_int_equal(att_catalog_add_task(c, node, &task), ATT_OK);
        for (uint32_t r = 0; r < RANKS; r++) {
            att_stream_member_t member = {
                .index = g * RANKS + r, .group = g, .process = r, .rank = r};
            assert_int_equal(att_catalog_add_member(c, node, &member), ATT_OK);
        }
    }
    assert_int_equal(att_catalog_finish(c), ATT_OK);
}

static att_trace_event_t event_of(uint32_t group, uint32_t rank, uint64_t call)
{
    return (att_trace_event_t){.start_ns = (int64_t)call * 1000 + rank,
                               .stop_ns = (int64_t)call * 1000 + 500,
                               .call = call,
                               .task = group,
                               .member = group * RANKS + rank,
                               .nccl_seq = (uint32_t)(call + 7 * group)};
}

typedef struct seen {
    uint64_t collectives[2], first[2], last[2];
    int64_t last_ns;
} seen_t;

static void take(void *context, const att_trace_event_t *const *ranks, uint32_t count)
{
    seen_t *seen = context;
    assert_int_equal(count, RANKS);
    int64_t last = 0;
    for (uint32_t r = 0; r < count; r++) {
        assert_int_equal(ranks[r]->member % RANKS, r); /* by rank */
        assert_int_equal(ranks[r]->call, ranks[0]->call);
        assert_int_equal(ranks[r]->task, ranks[0]->task);
        if (ranks[r]->start_ns > last)
            last = ranks[r]->start_ns;
    }
    assert_true(last >= seen->last_ns); /* in order of the last arrival, within a window */
    seen->last_ns = last;
    uint32_t g = ranks[0]->task;
    if (seen->collectives[g]++ == 0)
        seen->first[g] = ranks[0]->call;
    seen->last[g] = ranks[0]->call;
}

/* Each rank's window begins and ends elsewhere; one has a hole; the communicators interleave. */
static void truncated_windows(void **state)
{
    static const uint64_t from[RANKS] = {0, 17, 5, 30}, to[RANKS] = {90, 100, 77, 95};
    att_catalog_t c;
    make_catalog(&c);
    att_trace_event_t events[1000];
    size_t count = 0;
    for (uint64_t call = 0; call < 100; call++)
        for (uint32_t g = 0; g < 2; g++)
            for (uint32_t r = 0; r < RANKS; r++)
                if (call >= from[r] && call < to[r] &&
                    !(g == 0 && r == 2 && call >= 40 && call < 44))
                    events[count++] = event_of(g, r, call);
    seen_t seen = {0};
    struct att_matcher *m;
    assert_int_equal(att_matcher_create(&c, NULL, take, &seen, &m), ATT_OK);
    /* In windows that cut collectives in two. */
    for (size_t at = 0; at < count; at += 37)
        assert_int_equal(att_matcher_add(m, events + at, count - at < 37 ? count - at : 37),
                         ATT_OK);
    assert_int_equal(att_matcher_finish(m), ATT_OK);
    uint64_t records = 0;
    for (uint32_t g = 0; g < 2; g++) {
        const att_match_counts_t *counts = att_matcher_counts(m, g);
        assert_int_equal(counts->collectives,
                         g == 0 ? 43 : 47); /* calls 30..76, but for the hole */
        assert_int_equal(seen.collectives[g], counts->collectives);
        assert_int_equal(seen.first[g], 30);
        assert_int_equal(seen.last[g], 76);
        assert_int_equal(counts->matched, RANKS * counts->collectives);
        assert_int_equal(counts->disagree + counts->twice, 0);
        records += counts->matched + counts->unmatched;
    }
    assert_int_equal(records, count);
    att_matcher_destroy(m);
    att_catalog_free(&c);
}

/* Same call number, other sequence number of NCCL: not the same collective. */
static void disagreement_is_no_match(void **state)
{
    att_catalog_t c;
    make_catalog(&c);
    att_trace_event_t events[8];
    for (uint32_t r = 0; r < RANKS; r++) {
        events[r] = event_of(0, r, 1);
        events[4 + r] = event_of(0, r, 2);
    }
    events[3].nccl_seq += 1;
    seen_t seen = {0};
    struct att_matcher *m;
    assert_int_equal(att_matcher_create(&c, NULL, take, &seen, &m), ATT_OK);
    assert_int_equal(att_matcher_add(m, events, 8), ATT_OK);
    assert_int_equal(att_matcher_finish(m), ATT_OK);
    assert_int_equal(att_matcher_counts(m, 0)->disagree, 4);
    assert_int_equal(seen.collectives[0], 1);
    att_matcher_destroy(m);
    att_catalog_free(&c);
}

static void a_record_twice_is_no_match(void **state)
{
    att_catalog_t c;
    make_catalog(&c);
    att_trace_event_t events[5];
    for (uint32_t r = 0; r < RANKS; r++)
        events[r] = event_of(1, r, 3);
    events[4] = events[2];
    seen_t seen = {0};
    struct att_matcher *m;
    assert_int_equal(att_matcher_create(&c, NULL, take, &seen, &m), ATT_OK);
    assert_int_equal(att_matcher_add(m, events, 5), ATT_OK);
    assert_int_equal(att_matcher_finish(m), ATT_OK);
    assert_int_equal(att_matcher_counts(m, 1)->twice, 5);
    assert_int_equal(seen.collectives[1], 0);
    att_matcher_destroy(m);
    att_catalog_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_windows),
        cmocka_unit_test(disagreement_is_no_match),
        cmocka_unit_test(a_record_twice_is_no_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
