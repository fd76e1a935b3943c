/*
 * bench_driver: one thread and the ranks that it drives. Owns their communicators, streams,
 * buffers and matrix products.
 *
 * Memory operations happen only while no call is in flight on any rank (callers put barriers
 * around them): on a GPU that several ranks share they could otherwise wait for a peer's kernel.
 */
#ifndef ATT_CLI_BENCH_DRIVER_H
#define ATT_CLI_BENCH_DRIVER_H

#include "attune/mark.h"
#include "cli/bench_gemm.h"
#include "cli/bench_job.h"

typedef struct att_bench_rank {
    int rank;
    int device_index;
    void *comm;
    void *stream;
    char *send, *recv;
    void *start, *stop; /* events; NULL where the device has none */
    struct att_bench_gemm *gemm;
} att_bench_rank_t;

typedef struct att_bench_driver {
    const att_bench_job_t *job;
    int index; /* of all drivers of the run; 0 prints */
    att_bench_rank_t *ranks;
    int rank_count;
    char *staging;  /* host copy of a receive buffer; NULL where memory is the host's */
    uint64_t calls; /* made by each rank so far */
    uint64_t steps; /* timed ones */
    attune_mark_iteration_fn mark; /* the hook's, or NULL */
} att_bench_driver_t;

/* Collective: all drivers of the run call it. */
int att_bench_driver_open(const att_bench_job_t *job, int index, att_bench_driver_t *driver,
                          att_error_t *error);
void att_bench_driver_close(att_bench_driver_t *driver);
/* After a failure: aborts the communicators and waits for nothing. */
void att_bench_driver_abandon(att_bench_driver_t *driver);

/* Collective: a further communicator of all ranks, one handle a rank of this driver in comms
 * [rank_count]; the caller destroys them. */
int att_bench_driver_connect(att_bench_driver_t *driver, void **comms, att_error_t *error);

/* Put the rows' input into the send buffers (once), or into the receive buffer for in-place. */
int att_bench_driver_prepare(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                             att_error_t *error);
/* Enqueue one call on every rank of the driver. */
int att_bench_driver_call(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                          att_error_t *error);
/* Wait for everything enqueued. */
int att_bench_driver_wait(att_bench_driver_t *driver, att_error_t *error);
/* Wrong elements after a call on prepared buffers. */
int att_bench_driver_wrong(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                           uint64_t *wrong, att_error_t *error);
/* Nanoseconds of the clock that times calls: the fabric's on the host fabric, else the wall's. */
uint64_t att_bench_driver_now(const att_bench_driver_t *driver);
/* Let compute pass on the host fabric's clock. */
void att_bench_driver_compute(att_bench_driver_t *driver, double us);
/* Switch the products beside the calls on or off. */
int att_bench_driver_gemm(att_bench_driver_t *driver, bool on, att_error_t *error);

#endif
