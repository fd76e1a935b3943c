/* suite.json of any bytes: refused with one line, or lists with names that fit. */
#include "cli/sim_suite.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = NULL;
    att_error_t error = {""};
    if (att_sim_suite_parse((const char *)data, size, &document, &error) != ATT_OK) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return 0;
    }
    const json_t *surfaces = json_object_get(document, "surfaces");
    if (json_array_size(surfaces) == 0 || json_array_size(surfaces) > ATT_SIM_SUITE_MOST ||
        json_array_size(json_object_get(document, "strategies")) > ATT_SIM_STRATEGIES)
        abort();
    for (size_t i = 0; i < json_array_size(surfaces); i++) {
        const json_t *name = json_object_get(json_array_get(surfaces, i), "surface");
        if (!json_is_string(name) || strlen(json_string_value(name)) >= ATT_SIM_SUITE_NAME)
            abort();
    }
    json_decref(document);
    return 0;
}
