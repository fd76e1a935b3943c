/*
 * bench_variant: communicators that differ in the threads a block has, which NCCL fixes when it
 * makes one (NCCL_NTHREADS, NCCL_LL128_NTHREADS; graph/tuning.cc, 2.30). NCCL caches the variables
 * unless NCCL_NO_CACHE names them before its first look (2.29.7 and later).
 *
 * Owns the further communicators; the driver's own one stands for "keep".
 */
#ifndef ATT_CLI_BENCH_VARIANT_H
#define ATT_CLI_BENCH_VARIANT_H

#include "cli/bench_driver.h"

typedef struct att_bench_variants {
    int count;               /* "keep" included, which is number 0 */
    const uint32_t *threads; /* [count - 1], borrowed */
    void **comms;            /* [count][driver->rank_count] */
} att_bench_variants_t;

/* Let NCCL read the variables anew for each communicator. Before NCCL is loaded. */
void att_bench_variants_allow(void);
/* -ATT_EUNSUPPORTED on NCCL before 2.29.7 and on the host fabric, which has no blocks; -ATT_EUSAGE
 * when the variables are set. */
int att_bench_variants_check(const att_bench_job_t *job, att_error_t *error);
/* Collective, after the check: one communicator for each value. */
int att_bench_variants_open(att_bench_driver_t *driver, const uint32_t *threads, int count,
                            att_bench_variants_t *variants, att_error_t *error);
/* The driver's next calls use the communicator with these threads (0: its own). */
void att_bench_variants_use(att_bench_driver_t *driver, const att_bench_variants_t *variants,
                            uint32_t threads);
/* Collective; the driver has its own communicator again. */
void att_bench_variants_close(att_bench_driver_t *driver, att_bench_variants_t *variants);

#endif
