/* paper.json of any bytes: refused with one line, or rows whose sizes are whole numbers. */
#include "cli/paper_rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = NULL;
    att_error_t error = {""};
    if (att_paper_rows_parse((const char *)data, size, &document, &error) != ATT_OK) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return 0;
    }
    const json_t *rows = json_object_get(document, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double bytes = json_number_value(json_object_get(row, "bytes"));
        if (!json_is_string(json_object_get(row, "kind")) || !(bytes >= 0 && bytes < 1e16))
            abort();
    }
    json_decref(document);
    return 0;
}
