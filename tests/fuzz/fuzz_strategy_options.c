/* "NAME:key=value,..." of any bytes is refused with a text, or gives one value a parameter. */
#include "search/options.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const att_parameter_t parameters[] = {
    {"trials", ATT_PARAMETER_INT, 0, "60", NULL, "number"},
    {"share", ATT_PARAMETER_REAL, 0, "0.5", NULL, "fraction"},
    {"again", ATT_PARAMETER_BOOL, 0, "1", NULL, "flag"},
    {"variant", ATT_PARAMETER_CHOICE, 0, "paper", "paper|code", "which"},
    {"note", ATT_PARAMETER_STRING, 0, "", NULL, "text"},
};
#define PARAMETERS (sizeof parameters / sizeof *parameters)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const att_strategy_t strategy = {.abi = ATT_STRATEGY_ABI,
                                            .size = sizeof(att_strategy_t),
                                            .name = "fuzz",
                                            .parameters = parameters,
                                            .parameter_count = PARAMETERS};
    struct att_option_set *set = NULL;
    att_error_t error = {""};
    char name[64], *spec = malloc(size + 1);
    if (spec == NULL)
        abort();
    memcpy(spec, data, size);
    spec[size] = '\0';
    if (att_spec_name(spec, name, sizeof name, &error) == 0 &&
        att_option_set_parse(&strategy, spec, 1, &set, &error) == 0) {
        const att_options_t *options = att_option_set_view(set);
        if (options->option_count != PARAMETERS)
            abort();
        for (uint32_t i = 0; i < PARAMETERS; i++)
            if (options->options[i].text == NULL)
                abort();
        if (options->options[3].integer < 0 || options->options[3].integer > 1)
            abort();
        att_option_set_free(set);
    } else if (error.text[0] == '\0') {
        abort();
    }
    free(spec);
    return 0;
}
