/*
 * bench_data: what the ranks send, and what they must receive.
 *
 * The values of a rank repeat after ATT_DATA_PERIOD elements, a prime, so that data which arrives
 * at the wrong place is seen unless it is off by a multiple of it. They are small integers whose
 * sums are exact in the data type (products: powers of two), so that results are compared for
 * equality; only an average over a number of ranks that is no power of two has a tolerance.
 */
#ifndef ATT_CLI_BENCH_DATA_H
#define ATT_CLI_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

#define ATT_DATA_PERIOD 65521u

/* ATT_DATA_PERIOD elements of one rank, or of a reduction over all ranks. */
typedef struct att_data {
    int type; /* att_nccl_type_t */
    int op;   /* att_nccl_op_t, -1: values of one rank */
    int ranks;
    size_t element; /* bytes */
    void *values;
} att_data_t;

/* Values that `rank` of `ranks` sends, suited to `op`. 0 or -ATT_ENOMEM. */
int att_data_of_rank(att_data_t *data, int type, int op, int ranks, int rank);
/* What `op` makes of all ranks' values. */
int att_data_reduced(att_data_t *data, int type, int op, int ranks);
void att_data_free(att_data_t *data);

/* Write elements first .. first + count - 1 of the endless sequence to `to`. */
void att_data_write(const att_data_t *data, void *to, size_t first, size_t count);
/* How many of `count` elements differ from elements first .. of the sequence. */
uint64_t att_data_wrong(const att_data_t *data, const void *got, size_t first, size_t count);

#endif
