#include "fixture.h"

#include "base/clock.h"

#include <stdlib.h>

struct att_space_owned *fixture_space(int six)
{
    att_space_facts_t f = {.collective = ATT_COLLECTIVE_ALL_REDUCE,
                           .bytes = 80u << 20,
                           .ranks = 8,
                           .nodes = 1,
                           .connected_pairs = ~0u,
                           .channels_ceiling = 64,
                           .has_chunk = 1,
                           .native = {.algorithm = ATT_ALGORITHM_RING,
                                      .protocol = ATT_PROTOCOL_SIMPLE,
                                      .transport = ATT_TRANSPORT_KEEP,
                                      .channels = 24}};
    f.legal_pairs = six ? 0x3f : ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE);
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        f.cost_us[i] = -1;
    struct att_space_owned *space;
    if (att_space_build(&f, &space, NULL) != ATT_OK)
        abort();
    return space;
}

att_result_t fixture_result(const double *sample_us)
{
    return (att_result_t){.abi = ATT_STRATEGY_ABI,
                          .size = sizeof(att_result_t),
                          .outcome = ATT_OUTCOME_OK,
                          .sample_count = 1,
                          .samples_us = sample_us,
                          .median_us = *sample_us,
                          .mean_us = *sample_us,
                          .baseline_median_us = 100,
                          .baseline_count = 8,
                          .calls = 2};
}

int fixture_answer(struct att_search *search, att_setting_t *settings, uint32_t *count,
                   att_error_t *error)
{
    int rc;
    while ((rc = att_search_poll(search, settings, count, error)) == 0)
        att_clock_sleep_ns(1000000);
    return rc;
}
