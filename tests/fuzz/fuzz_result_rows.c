/* Any bytes as nccl-tests output: refused with one line, or rows in order whose use does no harm. */
#include "cli/regression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_result_rows_t rows;
    att_error_t error = {""};
    if (att_result_rows_parse((const char *)data, size, "input", &rows, &error) != ATT_OK) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return 0;
    }
    for (uint32_t i = 1; i < rows.count; i++)
        if (rows.rows[i].bytes <= rows.rows[i - 1].bytes)
            abort();
    att_regression_t r;
    double effect = 0;
    att_regression_compare(&rows, &rows, &r);
    if (r.count != 0)
        abort();
    att_regression_cliff(&rows, &effect);
    att_result_rows_free(&rows);
    return 0;
}
