/*
 * datatype: sizes, NCCL's words, and the reduction of two vectors for each type and operation.
 */
#ifndef ATT_FABRIC_DATATYPE_H
#define ATT_FABRIC_DATATYPE_H

#include "fabric/nccl_abi.h"

#include <stdbool.h>

/* Bytes of one element, 0 for a type that the fabric does not know. */
size_t att_datatype_size(ncclDataType_t type);
/* NCCL's own spelling ("ncclFloat32"), "Unknown" for the rest (uint8 included, as in 2.30.7). */
const char *att_datatype_name(ncclDataType_t type);
/* False for the 8-bit floats: they can be moved, not reduced. */
bool att_datatype_reducible(ncclDataType_t type);

/* target[i] = a[i] op b[i]. target may be a or b. Average is a sum until it is scaled. */
void att_datatype_reduce(void *target, const void *a, const void *b, size_t count,
                         ncclDataType_t type, ncclRedOp_t op);
/* target[i] /= ranks: the last step of an average. */
void att_datatype_scale(void *target, size_t count, ncclDataType_t type, int ranks);

#endif
