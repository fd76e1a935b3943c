/* odd: misbehaves at a chosen place in a chosen way; as the well-behaved one with how=good. It does
 * not take the number 13. */
#include "../misbehave.h"
#include "body.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOW, PLACE, REAL, FLAG, WORD, COUNT };

static const att_parameter_t parameters[COUNT] = {
    {"how", ATT_PARAMETER_CHOICE, 0, "good",
     "good|crash|hang|exit|leave|error|outside|many|malformed", "what it does"},
    {"place", ATT_PARAMETER_CHOICE, 0, "ask", "create|check|ask|tell|best|destroy",
     "where it does it"},
    {"real", ATT_PARAMETER_REAL, 0, "0.5", NULL, "a number"},
    {"flag", ATT_PARAMETER_BOOL, 0, "0", NULL, "a flag"},
    {"word", ATT_PARAMETER_STRING, 0, "", NULL, "any text"},
};

struct odd {
    struct body body;
    const char *how, *place;
    int told;
};

static int answer(const char *how)
{
    misbehave(how);
    return strcmp(how, "error") == 0 ? ATT_STRATEGY_EINVALID : ATT_STRATEGY_OK;
}

static int at(const struct odd *o, const char *place)
{
    return strcmp(o->place, place) == 0;
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (o[REAL].real == 13) /* the reason has two lines: only one is to be shown */
        return att_option_refuse(&o[REAL], "any\nbut 13", why, size);
    return strcmp(o[PLACE].text, "check") == 0 ? answer(o[HOW].text) : ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    struct odd *o = calloc(1, sizeof *o);
    o->body.space = space;
    o->how = options->options[HOW].text;
    o->place = options->options[PLACE].text;
    int rc = at(o, "create") ? answer(o->how) : ATT_STRATEGY_OK;
    if (rc != ATT_STRATEGY_OK)
        free(o);
    else
        *state = o;
    return rc;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct odd *o = state;
    int rc = body_ask(&o->body, settings, max, count);
    if (!at(o, "ask"))
        return rc;
    if (strcmp(o->how, "outside") == 0)
        settings[0].channels = 5000;
    if (strcmp(o->how, "malformed") == 0)
        settings[0].algorithm = 99;
    if (strcmp(o->how, "many") == 0)
        *count = max + 1;
    return answer(o->how);
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct odd *o = state;
    (void)setting;
    o->told += result->sample_count > 0 && isfinite(result->samples_us[0]);
    return at(o, "tell") ? answer(o->how) : ATT_STRATEGY_OK;
}

static int best(void *state, att_setting_t *setting)
{
    struct odd *o = state;
    *setting = o->told ? body_setting(o->body.space) : ATT_SETTING_KEEP;
    if (at(o, "best") && strcmp(o->how, "outside") == 0)
        *setting = (att_setting_t){.algorithm = 6, .protocol = 0};
    return at(o, "best") ? answer(o->how) : ATT_STRATEGY_OK;
}

static void destroy(void *state)
{
    struct odd *o = state;
    if (o != NULL && at(o, "destroy"))
        answer(o->how);
    free(o);
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {.abi = ATT_STRATEGY_ABI,
                                                            .size = sizeof(att_strategy_t),
                                                            .name = "odd",
                                                            .version = "1",
                                                            .description = "misbehaves",
                                                            .parameters = parameters,
                                                            .parameter_count = COUNT,
                                                            .flags = ATT_STRATEGY_BATCH,
                                                            .create = create,
                                                            .ask = ask,
                                                            .tell = tell,
                                                            .best = best,
                                                            .destroy = destroy,
                                                            .check = check};
