#include "cli/bench_measure.h"

#include "base/bandwidth.h"
#include "base/clock.h"

#include <string.h>

static int meet(att_bench_driver_t *driver, att_error_t *error)
{
    int rc = att_world_barrier(driver->job->world);
    return rc == 0 ? ATT_OK : att_world_failure(driver->job->world, error);
}

static int fold(att_bench_driver_t *driver, att_world_fold_t how, double mine, double *result,
                att_error_t *error)
{
    int rc = att_world_reduce(driver->job->world, driver->index, how, mine, result);
    return rc == 0 ? ATT_OK : att_world_failure(driver->job->world, error);
}

static int prepare(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                   att_error_t *error)
{
    int rc = meet(driver, error);
    if (rc == 0)
        rc = att_bench_driver_prepare(driver, shape, in_place, error);
    return rc == 0 ? meet(driver, error) : rc;
}

/* Compare the result of the call that was made last. */
static int compare(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                   uint64_t *wrong, att_error_t *error)
{
    uint64_t found;
    int rc = meet(driver, error);
    if (rc == 0)
        rc = att_bench_driver_wrong(driver, shape, in_place, &found, error);
    if (rc == 0)
        *wrong += found;
    return rc;
}

static int checked_call(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                        uint64_t *wrong, att_error_t *error)
{
    int rc = prepare(driver, shape, in_place, error);
    if (rc == 0)
        rc = att_bench_driver_call(driver, shape, in_place, error);
    if (rc == 0)
        rc = att_bench_driver_wait(driver, error);
    return rc == 0 ? compare(driver, shape, in_place, wrong, error) : rc;
}

static int timed_calls(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                       double *mean_us, double *host_us, att_error_t *error)
{
    const att_bench_options_t *o = driver->job->options;
    int rc = ATT_OK;
    uint64_t start = att_bench_driver_now(driver), host_start = att_clock_ns();
    for (int i = 0; rc == 0 && i < o->iterations; i++) {
        att_bench_driver_compute(driver, o->compute_us);
        att_bench_step(driver);
        rc = att_bench_driver_call(driver, shape, in_place, error);
        if (rc == 0 && o->sync_every)
            rc = att_bench_driver_wait(driver, error);
    }
    *host_us = (double)(att_clock_ns() - host_start) / 1000.0 / o->iterations;
    if (rc == 0)
        rc = att_bench_driver_wait(driver, error);
    uint64_t stop = att_bench_driver_now(driver);
    if (rc == 0)
        *mean_us = (double)(stop - start) / 1000.0 / o->iterations;
    if (rc == 0 && driver->job->nccl.fabric)
        *mean_us -= o->compute_us;
    return rc;
}

static int warm_and_time(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                         double *mean_us, double *host_us, att_error_t *error)
{
    int rc = att_bench_driver_gemm(driver, true, error);
    for (int i = 0; rc == 0 && i < driver->job->options->warmup; i++)
        rc = att_bench_driver_call(driver, shape, in_place, error);
    if (rc == 0)
        rc = att_bench_driver_wait(driver, error);
    if (rc == 0)
        rc = meet(driver, error);
    if (rc == 0)
        rc = timed_calls(driver, shape, in_place, mean_us, host_us, error);
    int off = att_bench_driver_gemm(driver, false, rc == 0 ? error : NULL);
    return rc != 0 ? rc : off;
}

/* An out-of-place call gives the same result every time: the last timed one is compared as it is.
 * In-place calls of some collectives feed on their own results: a fresh one is made. */
static int last_check(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                      uint64_t *wrong, att_error_t *error)
{
    int rc = in_place ? checked_call(driver, shape, true, wrong, error)
                      : compare(driver, shape, false, wrong, error);
    for (int i = 1; rc == 0 && i < driver->job->options->check; i++)
        rc = checked_call(driver, shape, in_place, wrong, error);
    return rc;
}

int att_bench_measure(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                      bool check, att_bench_side_t *side, att_error_t *error)
{
    uint64_t wrong = 0;
    double mine = 0, mean, host = 0, mean_host, total_wrong;
    memset(side, 0, sizeof *side);
    int rc = check ? checked_call(driver, shape, in_place, &wrong, error)
                   : prepare(driver, shape, in_place, error);
    if (rc == 0)
        rc = meet(driver, error);
    if (rc == 0)
        rc = warm_and_time(driver, shape, in_place, &mine, &host, error);
    if (rc == 0 && check)
        rc = last_check(driver, shape, in_place, &wrong, error);
    if (rc == 0)
        rc = fold(driver, ATT_WORLD_SUM, mine, &mean, error);
    if (rc == 0)
        rc = fold(driver, ATT_WORLD_SUM, host, &mean_host, error);
    if (rc == 0)
        rc = fold(driver, ATT_WORLD_SUM, (double)wrong, &total_wrong, error);
    if (rc != 0)
        return rc;
    side->time_us = mean / att_world_drivers(driver->job->world);
    side->host_us = mean_host / att_world_drivers(driver->job->world);
    side->algbw_gbs = att_algorithm_gbs(shape->bytes, side->time_us);
    side->busbw_gbs = side->algbw_gbs * att_bus_factor(shape->collective, shape->ranks);
    side->measured = true;
    side->checked = check;
    side->wrong = (uint64_t)total_wrong;
    return ATT_OK;
}
