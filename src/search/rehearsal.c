#include "search/rehearsal.h"

#include "base/clock.h"
#include "base/protocol.h"

#include <math.h>
#include <stdlib.h>

#define NATIVE_US 1150.0 /* NCCL's choice */
#define NOISE     0.03

const char *att_stage_name(att_stage_t stage)
{
    static const char *const names[ATT_STAGE_COUNT] = {
        "one subspace", "six subspaces", "all knobs kept", "every knob free", "two settings"};
    return (unsigned)stage < ATT_STAGE_COUNT ? names[stage] : "unknown";
}

static void free_knobs(att_subspace_t *u, att_stage_t stage)
{
    const uint32_t grain = att_protocol_grain(u->protocol);
    u->channels_min = u->channels_step = 1;
    u->channels_max = stage == ATT_STAGE_TWO ? 2 : 64;
    if (stage == ATT_STAGE_TWO)
        return;
    u->chunk_min = 4 * grain;
    u->chunk_max = att_protocol_chunk_most(ATT_COLLECTIVE_ALL_REDUCE, ATT_ALGORITHM_RING,
                                           u->protocol, att_protocol_buffer(u->protocol));
    u->chunk_step = grain;
    if (stage == ATT_STAGE_EVERY) {
        u->threads_min = 96;
        u->threads_max = 640;
        u->threads_step = 32;
    }
}

static void build(att_rehearsal_t *r, att_stage_t stage)
{
    bool single = stage == ATT_STAGE_ONE || stage == ATT_STAGE_TWO;
    uint32_t n = 0;
    for (int a = 1; a >= 0; a--)
        for (int p = 2; p >= 0; p--)
            for (int t = 0; t <= (stage == ATT_STAGE_EVERY); t++) {
                att_subspace_t *u = &r->subspaces[n];
                if (single && n == 1)
                    continue;
                *u = (att_subspace_t){
                    .algorithm = (int8_t)a,
                    .protocol = (int8_t)p,
                    .transport = (int8_t)(stage == ATT_STAGE_EVERY ? t : -1),
                    .prior_us = stage == ATT_STAGE_SIX ? 1000.0f + 100.0f * (float)n : -1};
                if (stage != ATT_STAGE_KEPT)
                    free_knobs(u, stage);
                n++;
            }
    r->space = (att_space_t){.abi = ATT_STRATEGY_ABI,
                             .size = sizeof r->space,
                             .bytes = 64u << 20,
                             .collective = ATT_COLLECTIVE_ALL_REDUCE,
                             .ranks = 8,
                             .nodes = 1,
                             .subspace_count = n,
                             .subspaces = r->subspaces,
                             .incumbent = ATT_SETTING_KEEP};
    if (stage != ATT_STAGE_KEPT) {
        r->space.incumbent.algorithm = 1;
        r->space.incumbent.protocol = 2;
        r->space.incumbent.channels = stage == ATT_STAGE_TWO ? 2 : 24;
    }
}

att_rehearsal_t *att_rehearsal_create(att_stage_t stage, uint64_t seed)
{
    att_rehearsal_t *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->seed = seed;
    r->most = 15;
    r->limit = ATT_REHEARSAL_MOST;
    r->best = ATT_SETTING_KEEP;
    build(r, stage);
    return r;
}

void att_rehearsal_destroy(att_rehearsal_t *r)
{
    free(r);
}

/* Smooth in octaves, best at 10 channels, chunks of 90 KiB, 256 threads; tree/ll128 is the fastest
 * pair, which NCCL's estimates do not say. */
static double duration(att_setting_t x)
{
    static const double pair[] = {1.4, 1, 1.08, 1.7, 1.25, 1.05};
    if (att_setting_is_keep(x))
        return NATIVE_US;
    double channels = x.channels > 0 ? log2(x.channels / 10.0) : 1;
    double chunk = log2((x.chunk_bytes > 0 ? x.chunk_bytes : 500000.0) / 92160.0);
    double threads = x.threads > 0 ? log2(x.threads / 256.0) : 0;
    return 1000 * pair[x.algorithm * 3 + x.protocol] * (x.transport == 1 ? 1.2 : 1) *
           (1 + 0.07 * channels * channels + 0.03 * chunk * chunk + 0.02 * channels * chunk +
            0.04 * threads * threads);
}

static double noisy(double us, uint64_t *random)
{
    double sum = -6; /* of twelve: nearly normal */
    for (int i = 0; i < 12; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*random >> 11) * 0x1p-53;
    }
    return us * (1 + NOISE * sum);
}

static int tell(const att_rehearsal_t *r, struct att_search *search, const att_setting_t *setting,
                uint32_t samples, uint32_t number, uint64_t *random, att_error_t *error)
{
    double us[ATT_STRATEGY_SAMPLES], sum = 0;
    att_outcome_t outcome = r->every > 0 && number % r->every == 0 ? r->outcome : ATT_OUTCOME_OK;
    uint32_t n = samples == 0 ? 5 : samples;
    if (outcome != ATT_OUTCOME_OK && outcome != ATT_OUTCOME_SLOW)
        n = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += us[i] = noisy(duration(*setting) * (outcome == ATT_OUTCOME_SLOW ? 4 : 1), random);
    double mean = n > 0 ? sum / n : 0;
    att_result_t result = {.abi = ATT_STRATEGY_ABI,
                           .size = sizeof result,
                           .outcome = outcome,
                           .sample_count = n,
                           .samples_us = us,
                           .median_us = mean,
                           .mean_us = mean,
                           .stddev_us = n > 1 ? NOISE * mean : 0,
                           .baseline_median_us = NATIVE_US,
                           .baseline_count = 16,
                           .calls = n + 1};
    return att_search_tell(search, setting, &result, error);
}

/* The answer of the strategy, timed. */
static int answer(att_rehearsal_t *r, struct att_search *search, att_setting_t *settings,
                  uint32_t *count, att_error_t *error)
{
    uint32_t left = r->limit - r->count;
    uint64_t begin_ns = att_clock_ns();
    int rc = att_search_ask(search, left < r->most ? left : r->most, error);
    while (rc == ATT_OK && (rc = att_search_poll(search, settings, count, error)) == 0)
        att_clock_sleep_ns(20000);
    double us = (double)(att_clock_ns() - begin_ns) * 1e-3;
    r->asks++;
    r->asks_us += us;
    r->slowest_us = us > r->slowest_us ? us : r->slowest_us;
    return rc < 0 ? rc : ATT_OK;
}

static int play(att_rehearsal_t *r, struct att_search *search, att_error_t *error)
{
    uint64_t random = r->seed;
    while (r->count < r->limit) {
        att_setting_t settings[64];
        uint32_t count = 0;
        int rc = answer(r, search, settings, &count, error);
        if (rc != ATT_OK)
            return rc;
        if (count == 0) {
            r->finished = true;
            break;
        }
        uint32_t first = r->count;
        for (uint32_t i = 0; i < count; i++)
            r->asked[r->count++] = settings[i];
        if (r->leave_open && r->count >= r->limit)
            return ATT_OK;
        for (uint32_t i = 0; i < count && rc == ATT_OK; i++) {
            uint32_t k = r->backwards ? count - 1 - i : i;
            rc = tell(r, search, &settings[k], att_search_samples(search, k), first + k, &random,
                      error);
        }
        if (rc != ATT_OK)
            return rc;
    }
    /* A failed tell shows in the next answer. */
    att_setting_t settings[64];
    uint32_t count;
    int rc = r->finished ? ATT_OK : answer(r, search, settings, &count, error);
    return rc != ATT_OK ? rc : att_search_best(search, &r->best, error);
}

int att_rehearsal_run(att_rehearsal_t *r, struct att_strategy_host *host, att_error_t *error)
{
    struct att_search *search;
    int rc = att_search_begin(host, r->spec, &r->space, r->seed, &search, error);
    if (rc != ATT_OK)
        return rc;
    rc = play(r, search, error);
    att_search_end(search);
    return rc;
}

double att_rehearsal_gap(const att_rehearsal_t *r)
{
    double least = NATIVE_US;
    for (uint32_t i = 0; i < r->space.subspace_count; i++) {
        const att_subspace_t *u = &r->subspaces[i];
        uint32_t threads_step = u->threads_step > 0 ? u->threads_step : 1;
        for (uint32_t n = u->channels_min; n <= u->channels_max; n++)
            for (uint32_t t = u->threads_min; t <= u->threads_max; t += threads_step)
                for (double chunk = 0; chunk <= u->chunk_max; chunk = fmax(chunk, 2000) * 1.05) {
                    att_setting_t x = {.algorithm = u->algorithm,
                                       .protocol = u->protocol,
                                       .transport = u->transport,
                                       .channels = (uint16_t)n,
                                       .threads = (uint16_t)t,
                                       .chunk_bytes = (uint32_t)chunk};
                    least = fmin(least, duration(x));
                }
    }
    return duration(r->best) / least - 1;
}

uint32_t att_rehearsal_difference(const att_rehearsal_t *a, const att_rehearsal_t *b)
{
    uint32_t i = 0;
    while (i < a->count && i < b->count && att_setting_equal(a->asked[i], b->asked[i]))
        i++;
    return i;
}
