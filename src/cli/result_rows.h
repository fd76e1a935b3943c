/*
 * result rows: what nccl-tests printed, by size: text of any age (columns are found by the header
 * line: "error" or "#wrong", with or without root, with -I's statistics) and JSON, version 3.
 */
#ifndef ATT_CLI_RESULT_ROWS_H
#define ATT_CLI_RESULT_ROWS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* One side (0 out of place, 1 in place) of one size. */
typedef struct att_result_side {
    double time_us, busbw_gbs;
    double cv; /* standard deviation over mean of the iterations; negative: not given */
} att_result_side_t;

typedef struct att_result_row {
    uint64_t bytes;
    char type[16], redop[16];
    att_result_side_t side[2]; /* time_us <= 0: not measured */
} att_result_row_t;

typedef struct att_result_rows {
    att_result_row_t *rows; /* by size */
    uint32_t count;
} att_result_rows_t;

/* -ATT_EINPUT: neither format; the text names `name`. Several runs of a size are averaged. */
int att_result_rows_parse(const char *text, size_t size, const char *name, att_result_rows_t *rows,
                          att_error_t *error);
void att_result_rows_free(att_result_rows_t *rows);

#endif
