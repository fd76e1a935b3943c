#include "cli/bench_variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_CACHE_VERSION ATT_NCCL_VERSION(2, 29, 7)

static const char *const variables[] = {"NCCL_NTHREADS", "NCCL_LL128_NTHREADS"};

void att_bench_variants_allow(void)
{
    char list[4096];
    const char *there = getenv("NCCL_NO_CACHE");
    snprintf(list, sizeof list, "%s%s%s,%s", there != NULL ? there : "",
             there != NULL && there[0] != '\0' ? "," : "", variables[0], variables[1]);
    setenv("NCCL_NO_CACHE", list, 1);
}

static int meet(att_bench_driver_t *driver, att_error_t *error)
{
    return att_world_barrier(driver->job->world) == 0
               ? ATT_OK
               : att_world_failure(driver->job->world, error);
}

/* One thread of each process writes the environment, while nobody reads it. */
static void set_variables(const att_bench_driver_t *driver, uint32_t threads)
{
    char text[16];
    if (driver->index % driver->job->options->threads != 0)
        return;
    snprintf(text, sizeof text, "%u", threads);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (threads > 0)
            setenv(variables[i], text, 1);
        else
            unsetenv(variables[i]);
}

int att_bench_variants_check(const att_bench_job_t *job, att_error_t *error)
{
    const att_nccl_t *n = &job->nccl;
    char version[24];
    if (n->fabric)
        return att_fail(error, ATT_EUNSUPPORTED,
                        "--threads-list: the host fabric has no thread blocks; leave it out");
    if (n->version < NO_CACHE_VERSION)
        return att_fail(error, ATT_EUNSUPPORTED,
                        "--threads-list: NCCL %s reads NCCL_NTHREADS once a process; 2.29.7 or "
                        "later is needed",
                        att_nccl_version_text(n->version, version, sizeof version));
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]) != NULL)
            return att_fail(error, ATT_EUSAGE, "--threads-list: %s is set; unset it", variables[i]);
    return ATT_OK;
}

int att_bench_variants_open(att_bench_driver_t *driver, const uint32_t *threads, int count,
                            att_bench_variants_t *variants, att_error_t *error)
{
    size_t ranks = (size_t)driver->rank_count;
    att_bench_variants_t made = {.count = 1, .threads = threads};
    int rc = ATT_OK;
    made.comms = calloc(((size_t)count + 1) * ranks, sizeof *made.comms);
    if (made.comms == NULL)
        rc = att_fail(error, ATT_ENOMEM, "no memory for communicators");
    for (size_t i = 0; rc == 0 && i < ranks; i++)
        made.comms[i] = driver->ranks[i].comm;
    for (int v = 0; rc == 0 && v < count; v++) {
        rc = meet(driver, error);
        if (rc == 0)
            set_variables(driver, threads[v]);
        if (rc == 0)
            rc = meet(driver, error);
        if (rc == 0)
            rc = att_bench_driver_connect(driver, made.comms + (size_t)(v + 1) * ranks, error);
        if (rc == 0)
            made.count++;
    }
    if (rc == 0 && count > 0)
        rc = meet(driver, error);
    if (count > 0)
        set_variables(driver, 0);
    *variants = made;
    return rc;
}

void att_bench_variants_use(att_bench_driver_t *driver, const att_bench_variants_t *variants,
                            uint32_t threads)
{
    int number = 0;
    for (int v = 1; v < variants->count; v++)
        if (variants->threads[v - 1] == threads)
            number = v;
    for (int i = 0; i < driver->rank_count; i++)
        driver->ranks[i].comm = variants->comms[number * driver->rank_count + i];
}

void att_bench_variants_close(att_bench_driver_t *driver, att_bench_variants_t *variants)
{
    if (variants->comms == NULL)
        return;
    att_bench_variants_use(driver, variants, 0);
    for (int i = driver->rank_count; i < variants->count * driver->rank_count; i++)
        driver->job->nccl.comm_destroy(variants->comms[i]);
    free(variants->comms);
    variants->comms = NULL;
}
