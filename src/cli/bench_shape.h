/*
 * bench_shape: element counts and places of one collective at one size, by nccl-tests' rules
 * (src/all_reduce.cu, all_gather.cu, reduce_scatter.cu, broadcast.cu, reduce.cu there: AllGather
 * and ReduceScatter split the size over the ranks and round each part down to 16 bytes).
 */
#ifndef ATT_CLI_BENCH_SHAPE_H
#define ATT_CLI_BENCH_SHAPE_H

#include "cli/bench_nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct att_shape {
    int collective; /* att_collective_t */
    int type;       /* att_nccl_type_t */
    int op;         /* att_nccl_op_t */
    int root;
    int ranks;
    size_t element;    /* bytes */
    size_t count;      /* the call's count argument: the "count" column */
    size_t send_count; /* elements of a rank's send buffer */
    size_t recv_count;
    size_t bytes; /* the "size" column; what NCCL's tuner counts too */
} att_shape_t;

att_shape_t att_shape_make(int collective, uint64_t bytes, int type, int op, int root, int ranks);

/* Where an in-place call of `rank` sends from and receives to, in elements of one buffer. */
size_t att_shape_send_offset(const att_shape_t *shape, int rank);
size_t att_shape_recv_offset(const att_shape_t *shape, int rank);

bool att_shape_reduces(const att_shape_t *shape); /* has an operation */
bool att_shape_has_root(const att_shape_t *shape);
/* Every rank needs every other: the last to arrive rules how long it takes. */
bool att_shape_is_symmetric(const att_shape_t *shape);
/* Name in nccl-tests' spelling ("AllReduce"). */
const char *att_shape_title(const att_shape_t *shape);

/* Make the call. Returns NCCL's result. */
int att_shape_call(const att_shape_t *shape, const att_nccl_t *nccl, const void *send, void *recv,
                   void *comm, void *stream);

#endif
