#include "search/space.h"

#include "base/names.h"
#include "base/protocol.h"
#include "base/segment.h"
#include "search/knobs.h"

#include <stdlib.h>
#include <string.h>

#define ALL_PROTOCOLS(algorithm)                                                                   \
    (ATT_PAIR_BIT(algorithm, ATT_PROTOCOL_LL) | ATT_PAIR_BIT(algorithm, ATT_PROTOCOL_LL128) |      \
     ATT_PAIR_BIT(algorithm, ATT_PROTOCOL_SIMPLE))

#define SUBSPACES 64 /* what strategies take */

struct att_space_owned {
    att_space_t space;
    att_subspace_t subspaces[SUBSPACES];
};

uint32_t att_chunk_grain(int protocol)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    const att_knob_rule_t *rule =
        knobs != NULL && protocol >= 0 && protocol < ATT_PROTOCOL_COUNT
            ? att_knobs_rule(knobs, ATT_KNOB_CHUNK, 0, ATT_COLLECTIVE_ALL_REDUCE,
                             ATT_ALGORITHM_RING, protocol)
            : NULL;
    return rule != NULL ? (uint32_t)rule->step : 0;
}

uint32_t att_chunk_max(int collective, int algorithm, int protocol)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    if (knobs == NULL || protocol < 0 || protocol >= ATT_PROTOCOL_COUNT || algorithm < 0 ||
        algorithm >= ATT_ALGORITHM_COUNT)
        return 0;
    const att_knob_rule_t *rule =
        att_knobs_rule(knobs, ATT_KNOB_CHUNK, 0, collective, algorithm, protocol);
    return rule != NULL && !rule->never ? (uint32_t)rule->max : 0;
}

uint32_t att_channels_max(int nccl_version)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    const att_knob_rule_t *rule =
        knobs != NULL
            ? att_knobs_rule(knobs, ATT_KNOB_CHANNELS, nccl_version, ATT_COLLECTIVE_ALL_REDUCE,
                             ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE)
            : NULL;
    return rule != NULL ? (uint32_t)rule->max : 0;
}

/* Bytes that one channel would move in all of its steps if it were alone: a larger chunk changes
 * nothing. A ring of AllReduce, AllGather and ReduceScatter works on blocks of bytes / ranks. */
static uint64_t useful_bytes(const att_space_facts_t *facts, int algorithm)
{
    bool blocks = algorithm != ATT_ALGORITHM_TREE &&
                  facts->collective != ATT_COLLECTIVE_BROADCAST &&
                  facts->collective != ATT_COLLECTIVE_REDUCE;
    return blocks ? facts->bytes / (uint64_t)facts->ranks : facts->bytes;
}

static void chunk_range(const att_space_facts_t *facts, const att_knobs_t *knobs, att_subspace_t *s)
{
    const att_knob_rule_t *rule = att_knobs_rule(knobs, ATT_KNOB_CHUNK, facts->nccl_version,
                                                 facts->collective, s->algorithm, s->protocol);
    if (!facts->has_chunk || (facts->pinned & ATT_PIN_CHUNK) || rule == NULL || rule->never)
        return;
    uint32_t grain = (uint32_t)rule->step, most = (uint32_t)rule->max;
    uint32_t least = (uint32_t)(rule->search_min != 0 ? rule->search_min : rule->min);
    uint64_t useful = useful_bytes(facts, s->algorithm);
    if (useful < most)
        most = (uint32_t)useful / grain * grain;
    if (most <= least)
        return;
    s->chunk_min = least;
    s->chunk_max = most;
    s->chunk_step = grain;
}

/* The pairs left after pins: a pinned knob keeps the value that NCCL's own choice has. */
static int pinned_pairs(const att_space_facts_t *facts, uint32_t *pairs, att_error_t *error)
{
    if (!(facts->pinned & (ATT_PIN_ALGORITHM | ATT_PIN_PROTOCOL)))
        return ATT_OK;
    const att_setting_t native = facts->native;
    uint32_t left = 0;
    int algorithms = 0, protocols = 0;
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < ATT_PROTOCOL_COUNT; p++)
            if (*pairs & ATT_PAIR_BIT(a, p)) {
                algorithms |= 1 << a;
                protocols |= 1 << p;
                if ((!(facts->pinned & ATT_PIN_ALGORITHM) || a == native.algorithm) &&
                    (!(facts->pinned & ATT_PIN_PROTOCOL) || p == native.protocol))
                    left |= ATT_PAIR_BIT(a, p);
            }
    /* Before NCCL's choice was seen, its table tells what is forced when one value is left. */
    if (native.algorithm == ATT_ALGORITHM_KEEP) {
        bool known = (!(facts->pinned & ATT_PIN_ALGORITHM) || !(algorithms & (algorithms - 1))) &&
                     (!(facts->pinned & ATT_PIN_PROTOCOL) || !(protocols & (protocols - 1)));
        if (!known)
            return att_fail(error, ATT_EILLEGAL,
                            "algorithm or protocol is forced by the user and NCCL's choice of it "
                            "was not seen yet");
        return ATT_OK;
    }
    *pairs = left;
    return ATT_OK;
}

static int by_prior(const void *a, const void *b)
{
    const att_subspace_t *x = a, *y = b;
    bool x_known = x->prior_us >= 0, y_known = y->prior_us >= 0;
    if (x_known != y_known)
        return x_known ? -1 : 1;
    if (x_known && x->prior_us != y->prior_us)
        return x->prior_us < y->prior_us ? -1 : 1;
    /* qsort is not stable: equal estimates keep NCCL's numbering. */
    int dx = x->algorithm * ATT_PROTOCOL_COUNT + x->protocol;
    int dy = y->algorithm * ATT_PROTOCOL_COUNT + y->protocol;
    if (dx != dy)
        return dx - dy;
    if (x->transport != y->transport)
        return x->transport - y->transport;
    if (x->threads_min != y->threads_min)
        return (int)x->threads_min - (int)y->threads_min;
    return (x->chunk_max > y->chunk_max) - (x->chunk_max < y->chunk_max);
}

/* Is a variant of the communicator worth a subspace of this pair? Threads: what the catalogue says,
 * of Ring, and NCCL_NTHREADS does not reach LL128. Transport: pairs that every transport offers
 * (LL128 is off over shared memory, NVLS knows none). */
static bool variant_fits(const att_space_facts_t *facts, const att_knobs_t *knobs, int a, int p,
                         att_variant_t variant)
{
    uint32_t chunk = att_variant_chunk(&variant, facts->collective, a, p);
    /* More than a channel has to move changes nothing. */
    if (variant.buffer != 0 &&
        ((facts->pinned & ATT_PIN_CHUNK) || chunk == 0 || chunk >= useful_bytes(facts, a)))
        return false;
    if (p == ATT_PROTOCOL_LL128 || (a != ATT_ALGORITHM_RING && a != ATT_ALGORITHM_TREE))
        return false;
    if (variant.threads == 0)
        return true;
    const att_knob_rule_t *rule =
        att_knobs_rule(knobs, ATT_KNOB_THREADS, facts->nccl_version, facts->collective, a, p);
    return a == ATT_ALGORITHM_RING && att_knob_rule_allows(rule, variant.threads);
}

/* The subspace again, for each variant that fits. */
static void add_variants(const att_space_facts_t *facts, const att_knobs_t *knobs,
                         struct att_space_owned *owned)
{
    const att_subspace_t base = owned->subspaces[owned->space.subspace_count - 1];
    for (uint32_t i = 0; i < facts->variants.count; i++) {
        att_variant_t variant = facts->variants.items[i];
        if (owned->space.subspace_count == SUBSPACES ||
            !variant_fits(facts, knobs, base.algorithm, base.protocol, variant))
            continue;
        att_subspace_t *s = &owned->subspaces[owned->space.subspace_count++];
        *s = base;
        s->transport = variant.transport;
        s->threads_min = variant.threads;
        s->threads_max = variant.threads;
        s->threads_step = variant.threads != 0;
        if (variant.buffer != 0) {
            s->chunk_min = s->chunk_max =
                att_variant_chunk(&variant, facts->collective, base.algorithm, base.protocol);
            s->chunk_step = att_protocol_grain(base.protocol);
        }
    }
}

/* NCCL lowers a number above the communicator's own, but for CollNet and NVLS between nodes
 * (scheduleCollTasksToPlan, src/enqueue.cc), and for an AllGatherV, which asks as an AllGather does
 * (src/scheduler/allgatherv_sched.cc) and then is not decided where the hook knows it: it would use
 * channels that were never made. 0: kept. */
static uint32_t channels_of(const att_space_facts_t *facts, int algorithm, uint32_t most)
{
    uint32_t known =
        (uint32_t)(facts->channels_seen > facts->native.channels ? facts->channels_seen
                                                                 : facts->native.channels);
    bool may_gather = facts->gathers_hidden &&
                      (facts->nccl_version == 0 || facts->nccl_version >= ATT_NCCL_ALLGATHERV);
    if (algorithm == ATT_ALGORITHM_COLLNET_DIRECT || algorithm == ATT_ALGORITHM_COLLNET_CHAIN ||
        (algorithm == ATT_ALGORITHM_NVLS && facts->nodes > 1))
        return 0;
    if (facts->collective == ATT_COLLECTIVE_ALL_GATHER && may_gather && known < most)
        return known;
    return most;
}

int att_space_build(const att_space_facts_t *facts, struct att_space_owned **space,
                    att_error_t *error)
{
    if (facts->collective < 0 || facts->collective >= ATT_COLLECTIVE_COUNT || facts->ranks < 1 ||
        facts->channels_ceiling < 0 || facts->channels_ceiling > UINT16_MAX)
        return att_fail(error, ATT_EINPUT,
                        "facts of a task are malformed (collective %d, ranks %d)",
                        facts->collective, facts->ranks);
    if (facts->ranks < 2)
        return att_fail(error, ATT_EILLEGAL, "a group of one rank has nothing to tune");

    const att_knobs_t *knobs = att_knobs_get(error);
    if (knobs == NULL)
        return -ATT_ENOENT;
    uint32_t pairs =
        facts->legal_pairs & att_knobs_pairs(knobs, facts->collective, facts->nccl_version);
    if (pairs == 0)
        return att_fail(error, ATT_EILLEGAL,
                        "NCCL's table offers no algorithm that all ranks agree on");
    pairs &= facts->connected_pairs;
    if (pairs == 0)
        return att_fail(error, ATT_EILLEGAL, "no algorithm is connected on every rank");
    if (facts->algorithms != 0)
        for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
            if (!(facts->algorithms & (1u << a)))
                pairs &= ~(uint32_t)ALL_PROTOCOLS(a);
    if (pairs == 0)
        return att_fail(error, ATT_EILLEGAL, "none of the algorithms asked for is legal here");
    int rc = pinned_pairs(facts, &pairs, error);
    if (rc != ATT_OK)
        return rc;
    if (pairs == 0)
        return att_fail(error, ATT_EILLEGAL,
                        "the algorithm or protocol forced by the user is not legal here");

    struct att_space_owned *owned = calloc(1, sizeof *owned);
    if (owned == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a space");
    owned->space = (att_space_t){.abi = ATT_STRATEGY_ABI,
                                 .size = sizeof(att_space_t),
                                 .bytes = facts->bytes,
                                 .collective = (uint32_t)facts->collective,
                                 .ranks = (uint32_t)facts->ranks,
                                 .nodes = (uint32_t)facts->nodes,
                                 .subspaces = owned->subspaces,
                                 .incumbent = facts->native};
    owned->space.incumbent.chunk_bytes = 0;

    uint32_t most_channels = att_channels_max(facts->nccl_version);
    if ((uint32_t)facts->channels_ceiling < most_channels)
        most_channels = (uint32_t)facts->channels_ceiling;
    bool channels = facts->channels_ceiling > 0 && !(facts->pinned & ATT_PIN_CHANNELS);
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
            if (!(pairs & ATT_PAIR_BIT(a, p)))
                continue;
            att_subspace_t *s = &owned->subspaces[owned->space.subspace_count++];
            s->algorithm = (int8_t)a;
            s->protocol = (int8_t)p;
            s->transport = ATT_TRANSPORT_KEEP;
            uint32_t most = channels ? channels_of(facts, a, most_channels) : 0;
            if (most > 0) {
                s->channels_min = 1;
                s->channels_max = (uint16_t)most;
                s->channels_step = 1;
            }
            chunk_range(facts, knobs, s);
            float cost = facts->cost_us[a * ATT_PROTOCOL_COUNT + p];
            s->prior_us = cost >= 0 ? cost : -1;
            add_variants(facts, knobs, owned);
        }
    qsort(owned->subspaces, owned->space.subspace_count, sizeof owned->subspaces[0], by_prior);

    if (att_space_size(&owned->space) < 2) {
        const att_subspace_t *s = &owned->subspaces[0];
        rc = att_fail(error, ATT_EILLEGAL, "a single setting is left (%s/%s, all else kept)",
                      att_algorithm_name(s->algorithm), att_protocol_name(s->protocol));
        free(owned);
        return rc;
    }
    *space = owned;
    return ATT_OK;
}

const att_space_t *att_space_view(const struct att_space_owned *space)
{
    return &space->space;
}

void att_space_destroy(struct att_space_owned *space)
{
    free(space);
}

/* Number of values min, min+step, ... <= max; one ("keep") for a knob that can only be kept. */
static uint64_t values(uint32_t min, uint32_t max, uint32_t step)
{
    if (max == 0)
        return 1;
    return max < min ? 0 : (max - min) / (step > 0 ? step : 1) + 1;
}

static uint64_t chunk_values(const att_subspace_t *s)
{
    return s->chunk_max == 0 ? 1 : 1 + values(s->chunk_min, s->chunk_max, s->chunk_step);
}

static uint64_t subspace_size(const att_subspace_t *s)
{
    return values(s->channels_min, s->channels_max, s->channels_step) *
           values(s->threads_min, s->threads_max, s->threads_step) * chunk_values(s);
}

uint64_t att_space_size(const att_space_t *space)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        size += subspace_size(&space->subspaces[i]);
    return size;
}

static uint32_t value_at(uint32_t min, uint32_t max, uint32_t step, uint64_t i)
{
    return max == 0 ? 0 : min + (uint32_t)i * (step > 0 ? step : 1);
}

att_setting_t att_space_at(const att_space_t *space, uint64_t i)
{
    const att_subspace_t *s = space->subspaces;
    for (uint64_t size; i >= (size = subspace_size(s)); s++)
        i -= size;
    uint64_t chunks = chunk_values(s), chunk = i % chunks;
    i /= chunks;
    uint64_t threads = values(s->threads_min, s->threads_max, s->threads_step);
    att_setting_t setting = {
        .algorithm = s->algorithm,
        .protocol = s->protocol,
        .transport = s->transport,
        .channels =
            (uint16_t)value_at(s->channels_min, s->channels_max, s->channels_step, i / threads),
        .threads = (uint16_t)value_at(s->threads_min, s->threads_max, s->threads_step, i % threads),
        .chunk_bytes =
            chunk == 0 ? 0 : value_at(s->chunk_min, s->chunk_max, s->chunk_step, chunk - 1)};
    return setting;
}

int att_space_contains(const att_space_t *space, att_setting_t setting)
{
    if (setting.reserved0 != 0 || setting.reserved1 != 0)
        return 0;
    for (uint32_t i = 0; i < space->subspace_count; i++)
        if (att_subspace_contains(&space->subspaces[i], setting))
            return 1;
    return 0;
}
