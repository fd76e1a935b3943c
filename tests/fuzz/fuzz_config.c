/* A value of any bytes for any option is refused with a text, or comes back from its own text. */
#include "base/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static att_config_t config, again;
    static char first[8192], second[8192];
    att_error_t error = {""};
    if (size < 1 || size > 4096)
        return 0;
    const att_option_row_t *row = &att_option_rows[data[0] % att_option_row_count];
    char *value = malloc(size);
    if (value == NULL)
        abort();
    memcpy(value, data + 1, size - 1);
    value[size - 1] = '\0';
    if (att_config_init(&config, &error) != 0 || att_config_init(&again, &error) != 0)
        abort();
    if (att_config_set(&config, row->flag, value, "--flag", &error) != 0) {
        if (error.text[0] == '\0')
            abort();
    } else {
        att_config_text(&config, row, first, sizeof first);
        if (att_config_set(&again, row->flag, first, "--flag", &error) != 0 ||
            strcmp(first, att_config_text(&again, row, second, sizeof second)) != 0)
            abort();
    }
    att_config_free(&config);
    att_config_free(&again);
    free(value);
    return 0;
}
