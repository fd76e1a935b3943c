/*
 * bench_job: what all drivers of one process share: the options, the loaded NCCL, the opened
 * device, the world that connects all drivers, and the data tables. Written before the driver
 * threads start, read-only afterwards.
 */
#ifndef ATT_CLI_BENCH_JOB_H
#define ATT_CLI_BENCH_JOB_H

#include "cli/bench_data.h"
#include "cli/bench_device.h"
#include "cli/bench_nccl.h"
#include "cli/bench_options.h"
#include "cli/bench_setting.h"
#include "cli/bench_shape.h"
#include "cli/bench_world.h"

#include <stdbool.h>

typedef struct att_bench_job {
    const att_bench_options_t *options;
    int argc;
    char **argv;
    int process; /* of options->processes */
    int ranks;   /* of the whole run */
    att_nccl_t nccl;
    att_device_t device;
    int device_count;            /* 0: no limit */
    att_gemm_shape_t gemm_shape; /* with the type that suits the device */
    bool virtual_time;           /* the fabric's clock is not the wall clock */
    struct att_world *world;
    struct att_bench_setting *setting; /* NULL without --setting and --sweep */
    /* Rows in the order in which they are run: collectives x sizes. */
    att_shape_t *rows;
    int row_count;
    size_t buffer_bytes; /* largest buffer of any row */
    /* Values of each rank, and what the operation makes of them. */
    att_data_t *sent; /* [ranks] */
    att_data_t reduced;
} att_bench_job_t;

/* Loads NCCL and the device, sets the variables that several ranks on one device need, and makes
 * the rows and tables. `world` and `setting` are the caller's. */
int att_bench_job_open(att_bench_job_t *job, const att_bench_options_t *options, int argc,
                       char **argv, int process, struct att_world *world,
                       struct att_bench_setting *setting, att_error_t *error);
void att_bench_job_close(att_bench_job_t *job);

/* Device that a rank runs on. */
int att_bench_job_device_of(const att_bench_job_t *job, int rank);
/* "# ..." lines about the run, the devices and what was set. */
void att_bench_job_print_header(const att_bench_job_t *job);

#endif
