/*
 * bench_measure: one side (out-of-place or in-place) of one row of the table.
 */
#ifndef ATT_CLI_BENCH_MEASURE_H
#define ATT_CLI_BENCH_MEASURE_H

#include "cli/bench_driver.h"

typedef struct att_bench_side {
    double time_us; /* a call, mean over the timed calls and the drivers, as nccl-tests */
    double host_us; /* the same until the last of them was enqueued: the host's share, as long as
                       it does not wait for the device's queue */
    double algbw_gbs, busbw_gbs;
    bool measured;   /* this kind of call is made (--place) */
    bool checked;
    uint64_t wrong; /* elements, all ranks and checks */
} att_bench_side_t;

/* All drivers call it with the same arguments; the result is the same on all. */
int att_bench_measure(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                      bool check, att_bench_side_t *side, att_error_t *error);

#endif
