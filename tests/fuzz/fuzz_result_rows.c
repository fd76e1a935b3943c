/* Any bytes as nccl-tests output: refused with one line, or rows in order whose use does no harm.
 */
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
    for (uint32_t i = 0, end; i < rows.count; i = end) {
        end = att_result_rows_series(&rows, i);
        if (end <= i)
            abort();
        for (uint32_t k = i + 1; k < end; k++)
            if (rows.rows[k].bytes <= rows.rows[k - 1].bytes)
                abort();
        att_result_rows_t series = {.rows = rows.rows + i, .count = end - i};
        att_regression_t r;
        double effect = 0;
        att_regression_compare(&series, &series, &r);
        if (r.count != 0)
            abort();
        att_regression_cliff(&series, &effect);
    }
    att_result_rows_free(&rows);
    return 0;
}
