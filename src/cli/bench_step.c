#include "cli/bench_step.h"

#include "attune/mark.h"
#include "base/clock.h"
#include "cli/bench_driver.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int att_bench_delay_parse(const char *text, att_bench_delay_t *delay, att_error_t *error)
{
    unsigned long long from = 0, count = 0;
    int used = -1, used_from = -1, used_count = -1;
    *delay = (att_bench_delay_t){.wanted = 1};
    int fields = sscanf(text, "%d:%lf%n:%llu%n:%llu%n", &delay->rank, &delay->ms, &used, &from,
                        &used_from, &count, &used_count);
    size_t length = strlen(text);
    bool whole = (fields == 2 && (size_t)used == length) ||
                 (fields == 3 && (size_t)used_from == length) ||
                 (fields == 4 && (size_t)used_count == length);
    if (!whole || strchr(text, '-') != NULL || !isfinite(delay->ms) || delay->ms > 3.6e6)
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: --delay: '%.60s' is not accepted; expected "
                        "RANK:MS[:FROM[:COUNT]], for example 3:20:100",
                        text);
    delay->from = from;
    delay->count = count;
    return ATT_OK;
}

/* The hook of this process, when there is one. Looked up once communicators exist. */
static attune_mark_iteration_fn find_mark(void)
{
    const char *path = getenv("NCCL_PROFILER_PLUGIN");
    void *hook =
        path != NULL && strchr(path, '/') != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (hook == NULL)
        hook = dlopen("libattune-nccl.so", RTLD_NOW | RTLD_NOLOAD);
    return hook == NULL ? NULL : (attune_mark_iteration_fn)dlsym(hook, "attune_mark_iteration");
}

static void delay_rank(const att_bench_driver_t *driver, const att_bench_rank_t *rank, double ms)
{
    if (driver->job->virtual_time)
        driver->job->nccl.fabric_advance(rank->comm, ms * 1e3);
    else
        att_clock_sleep_ns((uint64_t)(ms * 1e6));
}

void att_bench_step(att_bench_driver_t *driver)
{
    const att_bench_job_t *job = driver->job;
    const att_bench_delay_t *delay = &job->options->delay;
    uint64_t step = driver->steps++;
    if (step == 0)
        driver->mark = find_mark();
    for (int i = 0; i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        if (driver->mark != NULL)
            driver->mark(rank->rank, step,
                         job->virtual_time ? job->nccl.fabric_now(rank->comm) : 0);
        if (delay->wanted && delay->rank == rank->rank && step >= delay->from &&
            (delay->count == 0 || step - delay->from < delay->count))
            delay_rank(driver, rank, delay->ms);
    }
}
