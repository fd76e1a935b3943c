/* body: the ops of a small well-behaved strategy, for plugins that are bad in one way only. It asks
 * for the first setting of the first subspace, twice. */
#ifndef ATT_TEST_BODY_H
#define ATT_TEST_BODY_H

#include "attune/strategy.h"

#include <stdlib.h>

struct body {
    const att_space_t *space;
    int asked;
};

static inline att_setting_t body_setting(const att_space_t *space)
{
    const att_subspace_t *u = &space->subspaces[0];
    return (att_setting_t){.algorithm = u->algorithm,
                           .protocol = u->protocol,
                           .transport = u->transport,
                           .channels = u->channels_min,
                           .threads = u->threads_min};
}

static inline int body_create(const att_space_t *space, const att_options_t *options, void **state)
{
    (void)options;
    struct body *b = calloc(1, sizeof *b);
    b->space = space;
    *state = b;
    return ATT_STRATEGY_OK;
}

static inline int body_ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct body *b = state;
    (void)max;
    *count = b->asked++ < 2;
    settings[0] = body_setting(b->space);
    return ATT_STRATEGY_OK;
}

static inline int body_tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    (void)state, (void)setting, (void)result;
    return ATT_STRATEGY_OK;
}

static inline int body_best(void *state, att_setting_t *setting)
{
    (void)state;
    *setting = ATT_SETTING_KEEP;
    return ATT_STRATEGY_OK;
}

#define BODY(NAME)                                                                                 \
    .abi = ATT_STRATEGY_ABI, .size = sizeof(att_strategy_t), .name = NAME, .version = "1",         \
    .description = "test", .flags = ATT_STRATEGY_BATCH, .create = body_create, .ask = body_ask,    \
    .tell = body_tell, .best = body_best, .destroy = free

#endif
