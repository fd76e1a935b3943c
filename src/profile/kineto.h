/*
 * kineto: the words that PyTorch's profiler uses for NCCL collectives, which Holistic Trace
 * Analysis and others look for (Kineto's ParamCommsCallName and its like; HTA 0.5.0).
 */
#ifndef ATT_PROFILE_KINETO_H
#define ATT_PROFILE_KINETO_H

#include <stdint.h>

/* "allreduce", "_allgather_base", ...; never NULL. */
const char *att_kineto_collective(int collective);
/* ncclDataType_t: "Float"; bytes that nobody knows the type of are "Byte". */
const char *att_kineto_dtype(int datatype);
uint32_t att_kineto_dtype_bytes(int datatype);
/* As NCCL names its device code: "AllReduce", "RING", "LL128". */
const char *att_kineto_function(int collective);
const char *att_kineto_algorithm(int algorithm);
const char *att_kineto_protocol(int protocol);
/* Elements that a rank puts in and gets out, of the tuner's bytes. */
void att_kineto_elements(int collective, uint64_t bytes, uint32_t ranks, int datatype, uint64_t *in,
                         uint64_t *out);

#endif
