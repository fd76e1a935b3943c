#include "search/instance.h"

#include "base/names.h"
#include "search/options.h"
#include "search/plugin.h"
#include "search/space.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct att_instance {
    const att_strategy_t *strategy;
    struct att_option_set *options;
    att_space_t *space;
    void *state;
};

att_space_t *att_space_copy(const att_space_t *space)
{
    size_t subspaces = space->subspace_count * sizeof *space->subspaces;
    att_space_t *copy = malloc(sizeof *copy + subspaces);
    if (copy == NULL)
        return NULL;
    *copy = *space;
    copy->subspaces = (const att_subspace_t *)(copy + 1);
    memcpy(copy + 1, space->subspaces, subspaces);
    return copy;
}

static const char *reason(int code)
{
    switch (code) {
    case ATT_STRATEGY_ENOMEM:
        return "no memory";
    case ATT_STRATEGY_EOPTION:
        return "a parameter has a value that it cannot take in this space (attune plugins explains "
               "them)";
    case ATT_STRATEGY_EINVALID:
        return "it gave up";
    default:
        return "unknown code";
    }
}

static int op_failed(const att_strategy_t *strategy, const char *op, int code, att_error_t *error)
{
    return att_fail(error, code == ATT_STRATEGY_EOPTION ? ATT_EUSAGE : ATT_EPLUGIN,
                    "strategy %s failed in %s: %s (%d)", strategy->name, op, reason(code), code);
}

/* The strategy's own word on its parameters. */
static int check_options(const att_strategy_t *strategy, const struct att_option_set *options,
                         att_error_t *error)
{
    char why[ATT_STRATEGY_WHY] = "";
    if (!ATT_STRATEGY_HAS(strategy, check))
        return ATT_OK;
    int code = strategy->check(att_option_set_view(options), why, sizeof why);
    if (code == ATT_STRATEGY_OK)
        return ATT_OK;
    why[sizeof why - 1] = '\0';
    if (code != ATT_STRATEGY_EOPTION || why[0] == '\0')
        return op_failed(strategy, "check", code, error);
    for (unsigned char *c = (unsigned char *)why; *c != '\0'; c++)
        if (iscntrl(*c))
            *c = '?';
    return att_fail(error, ATT_EUSAGE, "strategy %s: %s", strategy->name, why);
}

static int find(const char *path, const char *spec, uint64_t seed, const att_strategy_t **strategy,
                struct att_option_set **options, att_error_t *error)
{
    char name[ATT_PLUGIN_NAME];
    int rc = att_spec_name(spec, name, sizeof name, error);
    if (rc == ATT_OK)
        rc = att_plugin_find(path, name, strategy, error);
    if (rc == ATT_OK)
        rc = att_option_set_parse(*strategy, spec, seed, options, error);
    if (rc != ATT_OK)
        return rc;
    rc = check_options(*strategy, *options, error);
    if (rc != ATT_OK)
        att_option_set_free(*options);
    return rc;
}

int att_instance_check(const char *path, const char *spec, att_error_t *error)
{
    const att_strategy_t *strategy;
    struct att_option_set *options;
    int rc = find(path, spec, 0, &strategy, &options, error);
    if (rc == ATT_OK)
        att_option_set_free(options);
    return rc;
}

int att_instance_create(const char *path, const char *spec, const att_space_t *space, uint64_t seed,
                        struct att_instance **out, att_error_t *error)
{
    struct att_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a search");
    int rc = find(path, spec, seed, &instance->strategy, &instance->options, error);
    if (rc != ATT_OK) {
        free(instance);
        return rc;
    }
    instance->space = att_space_copy(space);
    if (instance->space == NULL) {
        rc = att_fail(error, ATT_ENOMEM, "no memory for a search");
    } else {
        int code = instance->strategy->create(
            instance->space, att_option_set_view(instance->options), &instance->state);
        if (code != ATT_STRATEGY_OK) {
            instance->state = NULL;
            rc = op_failed(instance->strategy, "create", code, error);
        }
    }
    if (rc != ATT_OK) {
        att_option_set_free(instance->options);
        free(instance->space);
        free(instance);
        return rc;
    }
    *out = instance;
    return ATT_OK;
}

void att_instance_destroy(struct att_instance *instance)
{
    if (instance == NULL)
        return;
    instance->strategy->destroy(instance->state);
    att_option_set_free(instance->options);
    free(instance->space);
    free(instance);
}

int att_instance_sane(const att_space_t *space, const att_setting_t *settings, uint32_t most,
                      uint32_t count, att_error_t *error)
{
    if (count > most)
        return att_fail(error, ATT_EPLUGIN, "the strategy gave %u settings, asked for at most %u",
                        count, most);
    char text[ATT_SETTING_TEXT];
    for (uint32_t i = 0; i < count; i++)
        if (!att_space_contains(space, settings[i]))
            return att_fail(error, ATT_EPLUGIN,
                            "the strategy asked for %s, which is outside its space",
                            att_setting_text(settings[i], text, sizeof text));
    return ATT_OK;
}

static uint32_t samples_of(const struct att_instance *instance, const att_setting_t *setting)
{
    const att_strategy_t *s = instance->strategy;
    uint32_t samples = ATT_STRATEGY_HAS(s, samples) ? s->samples(instance->state, setting) : 0;
    return samples < ATT_STRATEGY_SAMPLES ? samples : ATT_STRATEGY_SAMPLES;
}

int att_instance_ask(struct att_instance *instance, att_setting_t *settings, uint32_t *samples,
                     uint32_t most, uint32_t *count, att_error_t *error)
{
    if (!(instance->strategy->flags & ATT_STRATEGY_BATCH) && most > 1)
        most = 1;
    uint32_t given = 0;
    int code = instance->strategy->ask(instance->state, settings, most, &given);
    if (code != ATT_STRATEGY_OK)
        return op_failed(instance->strategy, "ask", code, error);
    int rc = att_instance_sane(instance->space, settings, most, given, error);
    if (rc != ATT_OK)
        return rc;
    for (uint32_t i = 0; i < given; i++)
        samples[i] = samples_of(instance, &settings[i]);
    *count = given;
    return ATT_OK;
}

int att_instance_tell(struct att_instance *instance, const att_setting_t *setting,
                      const att_result_t *result, att_error_t *error)
{
    int code = instance->strategy->tell(instance->state, setting, result);
    return code == ATT_STRATEGY_OK ? ATT_OK : op_failed(instance->strategy, "tell", code, error);
}

uint64_t att_instance_offline_samples(const struct att_instance *instance)
{
    const att_strategy_t *s = instance->strategy;
    return ATT_STRATEGY_HAS(s, offline_samples) ? s->offline_samples(instance->state) : 0;
}

int att_instance_best(struct att_instance *instance, att_setting_t *best, att_error_t *error)
{
    att_setting_t given = ATT_SETTING_KEEP;
    int code = instance->strategy->best(instance->state, &given);
    if (code != ATT_STRATEGY_OK)
        return op_failed(instance->strategy, "best", code, error);
    if (!att_setting_is_keep(given)) {
        int rc = att_instance_sane(instance->space, &given, 1, 1, error);
        if (rc != ATT_OK)
            return rc;
    }
    *best = given;
    return ATT_OK;
}
