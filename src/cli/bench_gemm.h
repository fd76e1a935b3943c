/*
 * bench_gemm: matrix products that keep a rank's device busy beside its collectives. One thread per
 * rank starts one product after the other while it is switched on.
 */
#ifndef ATT_CLI_BENCH_GEMM_H
#define ATT_CLI_BENCH_GEMM_H

#include "base/status.h"
#include "cli/bench_device.h"

#include <stdint.h>

struct att_bench_gemm;

/* Prepares the matrices and the thread, switched off. `device` must outlive it. */
int att_bench_gemm_create(const att_device_t *device, int device_index, att_gemm_shape_t shape,
                          struct att_bench_gemm **gemm, att_error_t *error);
/* Stops the thread. NULL is fine. */
void att_bench_gemm_destroy(struct att_bench_gemm *gemm);
/* On returns when the device is at work on products, off when none is being started any more. NULL
 * is fine. */
void att_bench_gemm_switch(struct att_bench_gemm *gemm, int on);
/* Products started while on, and for how long it was on. */
void att_bench_gemm_read(struct att_bench_gemm *gemm, uint64_t *products, double *seconds);
/* 0, or what stopped the thread. */
int att_bench_gemm_failure(struct att_bench_gemm *gemm, att_error_t *error);

#endif
