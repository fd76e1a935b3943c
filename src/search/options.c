#include "search/options.h"

#include "base/nearest.h"
#include "search/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct att_option_set {
    att_options_t options;
    att_option_t values[ATT_PLUGIN_PARAMETERS];
    char *text; /* the words that values[].text point into */
};

static int name_length(const char *spec)
{
    return (int)strcspn(spec, ":");
}

int att_spec_name(const char *spec, char *name, unsigned size, att_error_t *error)
{
    if (spec == NULL || spec[0] == '\0' || spec[0] == ':')
        return att_fail(error, ATT_EUSAGE, "no strategy named (NAME[:key=value,...])");
    int length = name_length(spec);
    for (int i = 0; i < length; i++)
        if (!islower((unsigned char)spec[i]) && !isdigit((unsigned char)spec[i]) && spec[i] != '_')
            return att_fail(error, ATT_EUSAGE, "strategy \"%.*s\": a name has only a-z, 0-9 and _",
                            length, spec);
    if ((unsigned)length >= size)
        return att_fail(error, ATT_EUSAGE, "strategy \"%.*s\": name longer than %u characters",
                        length, spec, size - 1);
    memcpy(name, spec, (size_t)length);
    name[length] = '\0';
    return ATT_OK;
}

const char *att_parameter_accepts(const att_parameter_t *parameter, char *text, unsigned size)
{
    switch (parameter->type) {
    case ATT_PARAMETER_INT:
        snprintf(text, size, "integer");
        break;
    case ATT_PARAMETER_REAL:
        snprintf(text, size, "number");
        break;
    case ATT_PARAMETER_BOOL:
        snprintf(text, size, "0 or 1");
        break;
    case ATT_PARAMETER_CHOICE:
        snprintf(text, size, "one of %s", parameter->choices);
        break;
    default:
        snprintf(text, size, "text");
        break;
    }
    return text;
}

static int choice_index(const char *choices, const char *word)
{
    size_t length = strlen(word);
    int index = 0;
    for (const char *at = choices;; index++) {
        size_t this_length = strcspn(at, "|");
        if (length > 0 && this_length == length && memcmp(at, word, length) == 0)
            return index;
        if (at[this_length] == '\0')
            return -1;
        at += this_length + 1;
    }
}

int att_option_parse(const att_parameter_t *parameter, const char *text, att_option_t *value,
                     att_error_t *error)
{
    char *end = NULL;
    bool good = false;
    errno = 0;
    switch (parameter->type) {
    case ATT_PARAMETER_INT: {
        long long number = strtoll(text, &end, 10);
        good = end != text && *end == '\0' && errno == 0;
        value->integer = number;
        value->real = (double)number;
        break;
    }
    case ATT_PARAMETER_REAL: {
        double number = strtod(text, &end);
        good = end != text && *end == '\0' && errno == 0 && isfinite(number);
        value->real = number;
        break;
    }
    case ATT_PARAMETER_BOOL:
        good = strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
        value->integer = text[0] == '1';
        break;
    case ATT_PARAMETER_CHOICE: {
        int index = choice_index(parameter->choices, text);
        good = index >= 0;
        value->integer = index;
        break;
    }
    case ATT_PARAMETER_STRING:
        good = true;
        break;
    default:
        break;
    }
    if (!good) {
        char accepts[256];
        att_nearest_t nearest;
        bool choice = parameter->type == ATT_PARAMETER_CHOICE;
        return att_fail(error, ATT_EUSAGE, "parameter %s: \"%s\" is not accepted%s (%s)",
                        parameter->name, text,
                        choice ? att_nearest_choice(&nearest, text, parameter->choices) : "",
                        att_parameter_accepts(parameter, accepts, sizeof accepts));
    }
    return ATT_OK;
}

static int unknown_parameter(const att_strategy_t *strategy, const char *key, att_error_t *error)
{
    char known[320] = "";
    size_t n = 0;
    att_nearest_t nearest;
    att_nearest_init(&nearest, key);
    for (uint32_t i = 0; i < strategy->parameter_count; i++)
        att_nearest_offer(&nearest, strategy->parameters[i].name);
    for (uint32_t i = 0; i < strategy->parameter_count && n < sizeof known - 1; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              strategy->parameters[i].name);
    if (strategy->parameter_count == 0)
        return att_fail(error, ATT_EUSAGE, "strategy %s: no parameter \"%s\" (it takes none)",
                        strategy->name, key);
    return att_fail(error, ATT_EUSAGE, "strategy %s: no parameter \"%s\"%s (it takes %s)",
                    strategy->name, key, att_nearest_hint(&nearest), known);
}

static int parse_words(const att_strategy_t *strategy, struct att_option_set *set,
                       att_error_t *error)
{
    bool given[ATT_PLUGIN_PARAMETERS] = {false};
    char *rest = set->text;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(word, '=');
        if (equals == NULL || equals == word)
            return att_fail(error, ATT_EUSAGE, "strategy %s: \"%s\" is not key=value",
                            strategy->name, word);
        *equals = '\0';
        uint32_t i = 0;
        while (i < strategy->parameter_count && strcmp(strategy->parameters[i].name, word) != 0)
            i++;
        if (i == strategy->parameter_count)
            return unknown_parameter(strategy, word, error);
        if (given[i])
            return att_fail(error, ATT_EUSAGE, "strategy %s: parameter %s is given twice",
                            strategy->name, word);
        given[i] = true;
        att_error_t why;
        if (att_option_parse(&strategy->parameters[i], equals + 1, &set->values[i], &why) != ATT_OK)
            return att_fail(error, ATT_EUSAGE, "strategy %s: %s", strategy->name, why.text);
        set->values[i].text = equals + 1;
    }
    return ATT_OK;
}

int att_option_set_parse(const att_strategy_t *strategy, const char *spec, uint64_t seed,
                         struct att_option_set **out, att_error_t *error)
{
    struct att_option_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the parameters of %s", strategy->name);
    set->options = (att_options_t){.abi = ATT_STRATEGY_ABI,
                                   .size = sizeof set->options,
                                   .seed = seed,
                                   .option_count = strategy->parameter_count,
                                   .options = set->values};
    for (uint32_t i = 0; i < strategy->parameter_count; i++) {
        const att_parameter_t *p = &strategy->parameters[i];
        set->values[i].name = p->name;
        set->values[i].text = p->default_text;
        /* att_plugin_load has checked that defaults parse. */
        (void)att_option_parse(p, p->default_text, &set->values[i], NULL);
    }
    const char *words = spec + name_length(spec);
    int rc = ATT_OK;
    if (*words == ':') {
        set->text = strdup(words + 1);
        rc = set->text == NULL
                 ? att_fail(error, ATT_ENOMEM, "no memory for the parameters of %s", strategy->name)
                 : parse_words(strategy, set, error);
    }
    if (rc != ATT_OK) {
        att_option_set_free(set);
        return rc;
    }
    *out = set;
    return ATT_OK;
}

const att_options_t *att_option_set_view(const struct att_option_set *set)
{
    return &set->options;
}

void att_option_set_free(struct att_option_set *set)
{
    if (set == NULL)
        return;
    free(set->text);
    free(set);
}
