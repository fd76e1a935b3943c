/*
 * result rows: what nccl-tests or attune bench measured, by size: text of any age (columns are
 * found by the header line: "error" or "#wrong", with or without root, with -I's statistics) and
 * JSON (nccl-tests: version 3).
 */
#ifndef ATT_CLI_RESULT_ROWS_H
#define ATT_CLI_RESULT_ROWS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* One side (0 out of place, 1 in place) of one size. */
typedef struct att_result_side {
    double time_us, busbw_gbs;
    double cv;    /* standard deviation over mean of the iterations; negative: not given */
    double error; /* standard error of time_us over it, from cv or from rounds; negative: unknown */
} att_result_side_t;

typedef struct att_result_row {
    uint64_t bytes;
    char collective[24]; /* "allreduce", or the program's word; "" unknown */
    char type[16], redop[16];
    att_result_side_t side[2]; /* time_us <= 0: not measured */
} att_result_row_t;

typedef struct att_result_rows {
    att_result_row_t *rows; /* by collective, type, operation, then size */
    uint32_t count;
    int ranks;                 /* 0 unknown */
    uint32_t iterations;       /* that a time is the mean of; 0 unknown */
    char clock[16];            /* "wall", "modelled"; "" unknown */
    char nccl[24], device[96]; /* "" unknown */
} att_result_rows_t;

/* -ATT_EINPUT: neither format; the text names `name`. Several runs of a size are averaged. */
int att_result_rows_parse(const char *text, size_t size, const char *name, att_result_rows_t *rows,
                          att_error_t *error);
/* Rows i up to here differ in size only. */
uint32_t att_result_rows_series(const att_result_rows_t *rows, uint32_t i);
/* Control characters become '?': for a text of a file that goes to a terminal. */
void att_result_text_clean(char *text);
/* Of "[0x07] NVIDIA A100" the name; what sits nowhere is a name already. */
const char *att_result_device(const char *device);

void att_result_rows_free(att_result_rows_t *rows);

#endif
