/*
 * script: asks for the settings that `play` lists, "channels/chunk" separated by '+', in the first
 * subspace, one at a time; then it is finished. It fails when a result does not have the outcome
 * letter given behind the setting (o, t, i, l, s; none: any).
 */
#include "body.h"

#include <stdio.h>
#include <string.h>

static const att_parameter_t parameters[] = {
    {"play", ATT_PARAMETER_STRING, 0, "1/0", NULL, "channels/chunk[outcome]+..."},
    {"batch", ATT_PARAMETER_BOOL, 0, "0", NULL, "all at once"},
    {"want", ATT_PARAMETER_INT, 0, "0", NULL, "samples a trial; 0: no wish"}};

struct script {
    const att_space_t *space;
    const char *at;
    int batch;
    uint32_t want;
    att_setting_t settings[64];
    char outcomes[64];
    int asked, told;
};

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    struct script *s = calloc(1, sizeof *s);
    s->space = space;
    s->at = options->options[0].text;
    s->batch = (int)options->options[1].integer;
    s->want = (uint32_t)options->options[2].integer;
    *state = s;
    return ATT_STRATEGY_OK;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct script *s = state;
    for (*count = 0; *count < (s->batch ? max : 1) && s->at != NULL;) {
        unsigned channels, chunk;
        int n = 0;
        if (sscanf(s->at, "%u/%u%n", &channels, &chunk, &n) != 2)
            return ATT_STRATEGY_EOPTION;
        att_setting_t x = body_setting(s->space);
        x.channels = (uint16_t)channels;
        x.chunk_bytes = chunk;
        s->outcomes[s->asked] = s->at[n] == '+' ? 0 : s->at[n];
        s->settings[s->asked++] = x;
        settings[(*count)++] = x;
        s->at = strchr(s->at, '+');
        s->at = s->at != NULL ? s->at + 1 : NULL;
    }
    return ATT_STRATEGY_OK;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct script *s = state;
    for (int i = 0; i < s->asked; i++)
        if (att_setting_equal(s->settings[i], *setting)) {
            char expected = s->outcomes[i];
            return expected == 0 || expected == "otils"[result->outcome] ? ATT_STRATEGY_OK
                                                                         : ATT_STRATEGY_EINVALID;
        }
    return ATT_STRATEGY_EINVALID;
}

/* Pretends to have learnt from three recorded samples before each question. */
static uint64_t offline_samples(void *state)
{
    const struct script *s = state;
    return 3 * (uint64_t)s->asked;
}

static uint32_t samples(void *state, const att_setting_t *setting)
{
    const struct script *s = state;
    return setting->channels == 8 ? s->want : 0;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {.abi = ATT_STRATEGY_ABI,
                                                            .size = sizeof(att_strategy_t),
                                                            .name = "script",
                                                            .version = "1",
                                                            .description = "asks what it is told",
                                                            .parameters = parameters,
                                                            .parameter_count = 3,
                                                            .flags = ATT_STRATEGY_BATCH,
                                                            .create = create,
                                                            .ask = ask,
                                                            .tell = tell,
                                                            .best = body_best,
                                                            .destroy = free,
                                                            .offline_samples = offline_samples,
                                                            .samples = samples};
