#include "search/space.h"

#include "base/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define PAIR(a, p) ATT_PAIR_BIT(ATT_ALGORITHM_##a, ATT_PROTOCOL_##p)

static att_space_facts_t facts(int collective)
{
    att_space_facts_t f = {.collective = collective,
                           .bytes = 64u << 20,
                           .ranks = 8,
                           .nodes = 1,
                           .legal_pairs = ~0u,
                           .connected_pairs = ~0u,
                           .channels_ceiling = 24,
                           .has_chunk = 1,
                           .native = {.algorithm = ATT_ALGORITHM_RING,
                                      .protocol = ATT_PROTOCOL_SIMPLE,
                                      .transport = ATT_TRANSPORT_KEEP,
                                      .channels = 16}};
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        f.cost_us[i] = -1;
    return f;
}

static uint32_t pairs_of(const att_space_facts_t *f)
{
    struct att_space_owned *space;
    att_error_t error;
    if (att_space_build(f, &space, &error) != ATT_OK)
        return 0;
    uint32_t pairs = 0;
    const att_space_t *view = att_space_view(space);
    for (uint32_t i = 0; i < view->subspace_count; i++)
        pairs |= ATT_PAIR_BIT(view->subspaces[i].algorithm, view->subspaces[i].protocol);
    att_space_destroy(space);
    return pairs;
}

static void kernels_decide_the_pairs(void **state)
{
    (void)state;
    const uint32_t ring = PAIR(RING, LL) | PAIR(RING, LL128) | PAIR(RING, SIMPLE);
    const uint32_t tree = PAIR(TREE, LL) | PAIR(TREE, LL128) | PAIR(TREE, SIMPLE);
    const uint32_t gather =
        ring | PAIR(PAT, SIMPLE) | PAIR(NVLS, SIMPLE) | PAIR(COLLNET_DIRECT, SIMPLE);
    const struct {
        int collective;
        uint32_t pairs;
    } vectors[] = {
        {ATT_COLLECTIVE_BROADCAST, ring},
        {ATT_COLLECTIVE_REDUCE, ring},
        {ATT_COLLECTIVE_ALL_GATHER, gather},
        {ATT_COLLECTIVE_REDUCE_SCATTER, gather},
        {ATT_COLLECTIVE_ALL_REDUCE, ring | tree | PAIR(COLLNET_DIRECT, SIMPLE) |
                                        PAIR(COLLNET_CHAIN, SIMPLE) | PAIR(NVLS, SIMPLE) |
                                        PAIR(NVLS_TREE, SIMPLE)},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        att_space_facts_t f = facts(vectors[i].collective);
        assert_int_equal(pairs_of(&f), vectors[i].pairs);
    }
}

static void table_connection_and_user_restrict(void **state)
{
    (void)state;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.legal_pairs = PAIR(RING, SIMPLE) | PAIR(TREE, SIMPLE) | PAIR(TREE, LL);
    f.connected_pairs = PAIR(TREE, SIMPLE) | PAIR(TREE, LL) | PAIR(RING, LL);
    assert_int_equal(pairs_of(&f), PAIR(TREE, SIMPLE) | PAIR(TREE, LL));
    f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.algorithms = 1u << ATT_ALGORITHM_RING;
    assert_int_equal(pairs_of(&f), PAIR(RING, LL) | PAIR(RING, LL128) | PAIR(RING, SIMPLE));
}

static void pinned_knobs_are_kept(void **state)
{
    (void)state;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.pinned = ATT_PIN_ALGORITHM;
    assert_int_equal(pairs_of(&f), PAIR(RING, LL) | PAIR(RING, LL128) | PAIR(RING, SIMPLE));
    f.pinned = ATT_PIN_ALGORITHM | ATT_PIN_PROTOCOL;
    assert_int_equal(pairs_of(&f), PAIR(RING, SIMPLE));

    f.pinned = ATT_PIN_CHANNELS | ATT_PIN_CHUNK;
    struct att_space_owned *space;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    for (uint32_t i = 0; i < view->subspace_count; i++) {
        assert_int_equal(view->subspaces[i].channels_max, 0);
        assert_int_equal(view->subspaces[i].chunk_max, 0);
    }
    att_space_destroy(space);
}

static void a_forced_algorithm_is_read_from_the_table(void **state)
{
    (void)state;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    att_error_t error;
    struct att_space_owned *space;
    f.pinned = ATT_PIN_ALGORITHM;
    f.native = ATT_SETTING_KEEP;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "not seen yet"));
    f.legal_pairs = PAIR(TREE, SIMPLE) | PAIR(TREE, LL);
    assert_int_equal(pairs_of(&f), f.legal_pairs);
}

static void refusals_say_why(void **state)
{
    (void)state;
    struct att_space_owned *space;
    att_error_t error;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.ranks = 1;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "one rank"));
    f = facts(ATT_COLLECTIVE_BROADCAST);
    f.legal_pairs = PAIR(TREE, SIMPLE);
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "offers no algorithm"));
    f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.connected_pairs = 0;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "connected"));
    f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.algorithms = 1u << ATT_ALGORITHM_PAT;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.legal_pairs = PAIR(NVLS, SIMPLE);
    f.channels_ceiling = 0;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EILLEGAL);
    assert_non_null(strstr(error.text, "single setting"));
    f.collective = 7;
    assert_int_equal(att_space_build(&f, &space, &error), -ATT_EINPUT);
}

/* The most channels that an algorithm's settings have; -1: it has none. */
static int channels_of(const att_space_facts_t *f, int algorithm)
{
    struct att_space_owned *space;
    int most = -1;
    assert_int_equal(att_space_build(f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    for (uint32_t i = 0; i < view->subspace_count; i++)
        if (view->subspaces[i].algorithm == algorithm)
            most = view->subspaces[i].channels_max;
    att_space_destroy(space);
    return most;
}

/* Where NCCL takes a number above the communicator's own as it is. */
static void channels_that_nobody_made(void **state)
{
    (void)state;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 24);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_COLLNET_DIRECT), 0);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_COLLNET_CHAIN), 0);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_NVLS), 24);
    f.nodes = 2;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_NVLS), 0);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_NVLS_TREE), 24);
    /* An AllGatherV asks as an AllGather does. */
    f = facts(ATT_COLLECTIVE_ALL_GATHER);
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 24);
    f.gathers_hidden = 1;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 16);
    f.channels_seen = 20;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 20);
    f.channels_seen = 30;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 24);
    f.channels_seen = 0;
    f.nccl_version = 22907;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 16);
    f.nccl_version = 22809;
    assert_int_equal(channels_of(&f, ATT_ALGORITHM_RING), 24);
}

static void chunks_keep_to_grain_and_clamp(void **state)
{
    (void)state;
    assert_int_equal(att_chunk_grain(ATT_PROTOCOL_LL), 16);
    assert_int_equal(att_chunk_grain(ATT_PROTOCOL_LL128), 1920);
    assert_int_equal(att_chunk_grain(ATT_PROTOCOL_SIMPLE), 512);
    const struct {
        int collective, algorithm, protocol;
        uint32_t most;
    } vectors[] = {
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 2097152},
        {ATT_COLLECTIVE_ALL_GATHER, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 2097152},
        {ATT_COLLECTIVE_BROADCAST, ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 524288},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_TREE, ATT_PROTOCOL_SIMPLE, 524288},
        {ATT_COLLECTIVE_ALL_GATHER, ATT_ALGORITHM_PAT, ATT_PROTOCOL_SIMPLE, 524288},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 32768},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL128, 576000},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_NVLS, ATT_PROTOCOL_SIMPLE, 0},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_NVLS_TREE, ATT_PROTOCOL_SIMPLE, 0},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_COLLNET_DIRECT, ATT_PROTOCOL_SIMPLE, 0},
        {ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_COLLNET_CHAIN, ATT_PROTOCOL_SIMPLE, 0},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_int_equal(
            att_chunk_max(vectors[i].collective, vectors[i].algorithm, vectors[i].protocol),
            vectors[i].most);

    struct att_space_owned *space;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    for (uint32_t i = 0; i < view->subspace_count; i++) {
        const att_subspace_t *s = &view->subspaces[i];
        uint32_t grain = att_chunk_grain(s->protocol);
        assert_int_equal(s->chunk_max, att_chunk_max(f.collective, s->algorithm, s->protocol));
        assert_int_equal(s->chunk_min % grain, 0);
        assert_int_equal(s->chunk_max % grain, 0);
        assert_int_equal(s->chunk_step, s->chunk_max ? grain : 0);
    }
    att_space_destroy(space);
}

static void small_messages_have_small_chunks(void **state)
{
    (void)state;
    struct att_space_owned *space;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.legal_pairs = PAIR(RING, SIMPLE) | PAIR(TREE, SIMPLE);
    f.bytes = 80000; /* a ring works on blocks of 10000 */
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    assert_int_equal(view->subspaces[0].algorithm, ATT_ALGORITHM_TREE);
    assert_int_equal(view->subspaces[0].chunk_max, 80000 / 512 * 512);
    assert_int_equal(view->subspaces[1].chunk_max, 10000 / 512 * 512);
    att_space_destroy(space);
    f.bytes = 8000;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    assert_int_equal(att_space_view(space)->subspaces[1].chunk_max, 0);
    att_space_destroy(space);
}

/* Without a chunk per call: a subspace for each buffer whose chunk matters, of Simple alone. */
static void buffers_of_variants_are_chunks(void **state)
{
    (void)state;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.nccl_version = 22907;
    f.has_chunk = 0;
    f.bytes = (uint64_t)f.ranks << 20; /* a ring's channel moves at most 1 MiB */
    assert_int_equal(att_variants_parse("buffer=256K,1M,4M", &f.variants, NULL), ATT_OK);
    struct att_space_owned *space;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    int ring = 0, tree = 0;
    for (uint32_t i = 0; i < view->subspace_count; i++) {
        const att_subspace_t *s = &view->subspaces[i];
        if (s->chunk_max == 0)
            continue;
        assert_int_equal(s->protocol, ATT_PROTOCOL_SIMPLE);
        assert_int_equal(s->chunk_min, s->chunk_max);
        if (s->algorithm == ATT_ALGORITHM_RING) {
            assert_true(s->chunk_max == 128 << 10 || s->chunk_max == 512 << 10);
            ring++;
        } else {
            assert_int_equal(s->algorithm, ATT_ALGORITHM_TREE);
            assert_true(s->chunk_max == 32 << 10 || s->chunk_max == 128 << 10 ||
                        s->chunk_max == 512 << 10);
            tree++;
        }
    }
    assert_int_equal(ring, 2); /* of 4M it is 2 MiB: no difference */
    assert_int_equal(tree, 3);
    att_setting_t x = {.algorithm = ATT_ALGORITHM_RING,
                       .protocol = ATT_PROTOCOL_SIMPLE,
                       .transport = ATT_TRANSPORT_KEEP,
                       .channels = 2,
                       .chunk_bytes = 512 << 10};
    assert_true(att_space_contains(view, x));
    x.chunk_bytes = 256 << 10;
    assert_false(att_space_contains(view, x));
    att_space_destroy(space);
    f.pinned = ATT_PIN_CHUNK;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    view = att_space_view(space);
    for (uint32_t i = 0; i < view->subspace_count; i++)
        assert_int_equal(view->subspaces[i].chunk_max, 0);
    att_space_destroy(space);
}

static void cheapest_estimate_comes_first(void **state)
{
    (void)state;
    struct att_space_owned *space;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.legal_pairs = PAIR(RING, SIMPLE) | PAIR(TREE, SIMPLE) | PAIR(TREE, LL);
    f.cost_us[ATT_ALGORITHM_RING * 3 + ATT_PROTOCOL_SIMPLE] = 10;
    f.cost_us[ATT_ALGORITHM_TREE * 3 + ATT_PROTOCOL_LL] = 20;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_subspace_t *s = att_space_view(space)->subspaces;
    assert_int_equal(s[0].algorithm, ATT_ALGORITHM_RING);
    assert_float_equal(s[0].prior_us, 10, 0);
    assert_int_equal(s[1].protocol, ATT_PROTOCOL_LL);
    assert_true(s[2].prior_us < 0);
    att_space_destroy(space);
}

static void numbering_covers_the_space_once(void **state)
{
    (void)state;
    struct att_space_owned *space;
    att_space_facts_t f = facts(ATT_COLLECTIVE_ALL_REDUCE);
    f.legal_pairs = PAIR(RING, SIMPLE) | PAIR(RING, LL) | PAIR(NVLS, SIMPLE);
    f.channels_ceiling = 3;
    f.bytes = 64 << 10;
    assert_int_equal(att_space_build(&f, &space, NULL), ATT_OK);
    const att_space_t *view = att_space_view(space);
    uint64_t size = att_space_size(view);
    /* Simple 4096..8192 in 512: 9, LL 2048..8192 in 16: 385, each + keep; NVLS keep. */
    assert_int_equal(size, 3 * (10 + 386 + 1));
    for (uint64_t i = 0; i < size; i++) {
        att_setting_t x = att_space_at(view, i);
        assert_true(att_space_contains(view, x));
        if (i > 0)
            assert_false(att_setting_equal(x, att_space_at(view, i - 1)));
    }
    att_setting_t x = att_space_at(view, 0);
    x.channels = 4;
    assert_false(att_space_contains(view, x));
    x.channels = 0;
    assert_false(att_space_contains(view, x));
    assert_false(att_space_contains(view, ATT_SETTING_KEEP));
    x = att_space_at(view, 1);
    x.chunk_bytes += 1;
    assert_false(att_space_contains(view, x));
    x = att_space_at(view, 0);
    x.reserved1 = 1;
    assert_false(att_space_contains(view, x));
    att_space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_decide_the_pairs),
        cmocka_unit_test(table_connection_and_user_restrict),
        cmocka_unit_test(pinned_knobs_are_kept),
        cmocka_unit_test(a_forced_algorithm_is_read_from_the_table),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(channels_that_nobody_made),
        cmocka_unit_test(chunks_keep_to_grain_and_clamp),
        cmocka_unit_test(small_messages_have_small_chunks),
        cmocka_unit_test(buffers_of_variants_are_chunks),
        cmocka_unit_test(cheapest_estimate_comes_first),
        cmocka_unit_test(numbering_covers_the_space_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
