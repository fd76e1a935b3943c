#include "cli/bench_driver.h"

#include "attune/setting.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* A byte that no expected value consists of, so that what a call left untouched is seen. */
#define UNTOUCHED 0xff
/* What the modelled fabric moves on every call, and how often it moves all. */
#define MODEL_PART  65536u
#define MODEL_WHOLE 50u

static const att_device_ops_t *ops_of(const att_bench_driver_t *driver)
{
    return driver->job->device.ops;
}

static void *state_of(const att_bench_driver_t *driver)
{
    return driver->job->device.state;
}

static int select_rank(const att_bench_driver_t *driver, const att_bench_rank_t *rank,
                       att_error_t *error)
{
    return ops_of(driver)->select(state_of(driver), rank->device_index, error);
}

/* What every row sends: the rank's values from element 0 on. */
static int fill_send(att_bench_driver_t *driver, att_bench_rank_t *rank, att_error_t *error)
{
    const att_bench_job_t *job = driver->job;
    const att_data_t *data = &job->sent[rank->rank];
    size_t count = job->buffer_bytes / data->element;
    char *host = driver->staging != NULL ? driver->staging : rank->send;
    att_data_write(data, host, 0, count);
    if (driver->staging == NULL)
        return ATT_OK;
    return ops_of(driver)->upload(state_of(driver), rank->send, host, count * data->element,
                                  rank->stream, error);
}

static int open_rank(att_bench_driver_t *driver, att_bench_rank_t *rank, att_error_t *error)
{
    const att_device_ops_t *ops = ops_of(driver);
    void *state = state_of(driver);
    size_t bytes = driver->job->buffer_bytes;
    int rc = select_rank(driver, rank, error);
    if (rc == 0)
        rc = ops->stream_create(state, &rank->stream, error);
    if (rc == 0)
        rc = ops->allocate(state, bytes, (void **)&rank->send, error);
    if (rc == 0)
        rc = ops->allocate(state, bytes, (void **)&rank->recv, error);
    if (rc == 0 && ops->event_create != NULL)
        rc = ops->event_create(state, &rank->start, error);
    if (rc == 0 && ops->event_create != NULL)
        rc = ops->event_create(state, &rank->stop, error);
    if (rc == 0)
        rc = fill_send(driver, rank, error);
    if (rc == 0 && driver->job->options->gemm)
        rc = att_bench_gemm_create(&driver->job->device, rank->device_index,
                                   driver->job->gemm_shape, &rank->gemm, error);
    return rc;
}

int att_bench_driver_connect(att_bench_driver_t *driver, void **comms, att_error_t *error)
{
    const att_bench_job_t *job = driver->job;
    const att_nccl_t *n = &job->nccl;
    int rc = ATT_OK;
    if (driver->index == 0)
        rc =
            att_nccl_check(n, n->get_unique_id(att_world_id(job->world)), "ncclGetUniqueId", error);
    if (rc != 0)
        return rc;
    rc = att_world_barrier(job->world);
    if (rc != 0)
        return att_world_failure(job->world, error);
    if (driver->rank_count > 1)
        rc = att_nccl_check(n, n->group_start(), "ncclGroupStart", error);
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        rc = select_rank(driver, rank, error);
        if (rc == 0)
            rc = att_nccl_check(
                n, n->comm_init_rank(&comms[i], job->ranks, *att_world_id(job->world), rank->rank),
                "ncclCommInitRank", error);
    }
    if (rc == 0 && driver->rank_count > 1)
        rc = att_nccl_check(n, n->group_end(), "ncclGroupEnd", error);
    return rc;
}

int att_bench_driver_open(const att_bench_job_t *job, int index, att_bench_driver_t *driver,
                          att_error_t *error)
{
    memset(driver, 0, sizeof *driver);
    driver->job = job;
    driver->index = index;
    driver->rank_count = job->options->ranks_per_thread;
    driver->ranks = calloc((size_t)driver->rank_count, sizeof *driver->ranks);
    if (driver->ranks == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %d ranks", driver->rank_count);
    if (!ops_of(driver)->host_memory) {
        driver->staging = malloc(job->buffer_bytes > 0 ? job->buffer_bytes : 1);
        if (driver->staging == NULL)
            return att_fail(error, ATT_ENOMEM, "no memory for a buffer of %zu bytes",
                            job->buffer_bytes);
    }
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        rank->rank = index * driver->rank_count + i;
        rank->device_index = att_bench_job_device_of(job, rank->rank);
        rc = open_rank(driver, rank, error);
    }
    void **comms = calloc((size_t)driver->rank_count, sizeof *comms);
    if (rc == 0 && comms == NULL)
        rc = att_fail(error, ATT_ENOMEM, "no memory for %d ranks", driver->rank_count);
    if (rc == 0)
        rc = att_bench_driver_connect(driver, comms, error);
    for (int i = 0; comms != NULL && i < driver->rank_count; i++)
        driver->ranks[i].comm = comms[i];
    free(comms);
    return rc;
}

static void close_rank(att_bench_driver_t *driver, att_bench_rank_t *rank)
{
    const att_device_ops_t *ops = ops_of(driver);
    void *state = state_of(driver);
    select_rank(driver, rank, NULL);
    att_bench_gemm_destroy(rank->gemm);
    if (ops->event_destroy != NULL) {
        ops->event_destroy(state, rank->start);
        ops->event_destroy(state, rank->stop);
    }
    ops->release(state, rank->send);
    ops->release(state, rank->recv);
    ops->stream_destroy(state, rank->stream);
}

static void free_lists(att_bench_driver_t *driver)
{
    free(driver->ranks);
    free(driver->staging);
    driver->ranks = NULL;
    driver->staging = NULL;
}

void att_bench_driver_close(att_bench_driver_t *driver)
{
    for (int i = 0; driver->ranks != NULL && i < driver->rank_count; i++) {
        if (driver->ranks[i].comm != NULL)
            driver->job->nccl.comm_destroy(driver->ranks[i].comm);
        close_rank(driver, &driver->ranks[i]);
    }
    free_lists(driver);
}

/* Abort first: a kernel that waits for a peer that is gone ends only by it. What it leaves on the
 * GPU is not waited for; the process's end takes care of it. */
void att_bench_driver_abandon(att_bench_driver_t *driver)
{
    for (int i = 0; driver->ranks != NULL && i < driver->rank_count; i++) {
        if (driver->ranks[i].comm != NULL)
            driver->job->nccl.comm_abort(driver->ranks[i].comm);
        if (ops_of(driver)->host_memory)
            close_rank(driver, &driver->ranks[i]);
    }
    free_lists(driver);
}

/* Where an in-place call of this rank reads, in the receive buffer. */
static char *in_place_send(const att_bench_rank_t *rank, const att_shape_t *shape)
{
    return rank->recv + att_shape_send_offset(shape, rank->rank) * shape->element;
}

static char *result_of(const att_bench_rank_t *rank, const att_shape_t *shape, bool in_place)
{
    return rank->recv + (in_place ? att_shape_recv_offset(shape, rank->rank) * shape->element : 0);
}

int att_bench_driver_prepare(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                             att_error_t *error)
{
    const att_device_ops_t *ops = ops_of(driver);
    void *state = state_of(driver);
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        rc = select_rank(driver, rank, error);
        if (rc == 0)
            rc = ops->fill(state, rank->recv, UNTOUCHED, shape->bytes, rank->stream, error);
        if (rc == 0 && in_place)
            rc = ops->copy(state, in_place_send(rank, shape), rank->send,
                           shape->send_count * shape->element, rank->stream, error);
        if (rc == 0)
            rc = ops->synchronize(state, rank->stream, error);
    }
    return rc;
}

int att_bench_driver_call(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                          att_error_t *error)
{
    const att_nccl_t *n = &driver->job->nccl;
    int rc = ATT_OK;
    if (driver->rank_count > 1)
        rc = att_nccl_check(n, n->group_start(), "ncclGroupStart", error);
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        rc = select_rank(driver, rank, error);
        if (rc == 0)
            rc = att_nccl_check(
                n,
                att_shape_call(shape, n, in_place ? in_place_send(rank, shape) : rank->send,
                               result_of(rank, shape, in_place), rank->comm, rank->stream),
                att_shape_title(shape), error);
    }
    if (rc == 0 && driver->rank_count > 1)
        rc = att_nccl_check(n, n->group_end(), "ncclGroupEnd", error);
    driver->calls++;
    return rc;
}

int att_bench_driver_wait(att_bench_driver_t *driver, att_error_t *error)
{
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        rc = select_rank(driver, &driver->ranks[i], error);
        if (rc == 0)
            rc = ops_of(driver)->synchronize(state_of(driver), driver->ranks[i].stream, error);
    }
    return rc;
}

/* Elements of a block that the last call moved. The modelled fabric moves all of a block on every
 * 50th call of a communicator, the first included, and its first 64 KiB on the others
 * (src/fabric/model.h). */
static size_t moved(const att_bench_driver_t *driver, const att_shape_t *shape, size_t block)
{
    size_t part = MODEL_PART / shape->element;
    bool whole = !driver->job->virtual_time || (driver->calls - 1) % MODEL_WHOLE == 0;
    return whole || block < part ? block : part;
}

/* Compare a rank's result with what it must be. `got` is in host memory. */
static uint64_t wrong_of(const att_bench_driver_t *driver, const att_shape_t *shape, int rank,
                         const char *got)
{
    const att_bench_job_t *job = driver->job;
    size_t block = moved(driver, shape, shape->count);
    uint64_t wrong = 0;
    switch (shape->collective) {
    case ATT_COLLECTIVE_ALL_GATHER:
        for (int source = 0; source < shape->ranks; source++)
            wrong += att_data_wrong(&job->sent[source],
                                    got + (size_t)source * shape->count * shape->element, 0, block);
        return wrong;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return att_data_wrong(&job->reduced, got, (size_t)rank * shape->count, block);
    case ATT_COLLECTIVE_BROADCAST:
        return att_data_wrong(&job->sent[shape->root], got, 0, block);
    case ATT_COLLECTIVE_REDUCE:
        return rank == shape->root ? att_data_wrong(&job->reduced, got, 0, block) : 0;
    default:
        return att_data_wrong(&job->reduced, got, 0, block);
    }
}

int att_bench_driver_wrong(att_bench_driver_t *driver, const att_shape_t *shape, bool in_place,
                           uint64_t *wrong, att_error_t *error)
{
    int rc = ATT_OK;
    uint64_t found = 0;
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        att_bench_rank_t *rank = &driver->ranks[i];
        const char *got = result_of(rank, shape, in_place);
        if (driver->staging != NULL) {
            rc = select_rank(driver, rank, error);
            if (rc == 0)
                rc = ops_of(driver)->download(state_of(driver), driver->staging, got,
                                              shape->recv_count * shape->element, rank->stream,
                                              error);
            got = driver->staging;
        }
        if (rc == 0)
            found += wrong_of(driver, shape, rank->rank, got);
    }
    *wrong = found;
    return rc;
}

uint64_t att_bench_driver_now(const att_bench_driver_t *driver)
{
    const att_nccl_t *n = &driver->job->nccl;
    return n->fabric ? n->fabric_now(driver->ranks[0].comm) : att_clock_ns();
}

void att_bench_driver_compute(att_bench_driver_t *driver, double us)
{
    const att_nccl_t *n = &driver->job->nccl;
    for (int i = 0; n->fabric && us > 0 && i < driver->rank_count; i++)
        n->fabric_advance(driver->ranks[i].comm, us);
}

int att_bench_driver_gemm(att_bench_driver_t *driver, bool on, att_error_t *error)
{
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < driver->rank_count; i++) {
        struct att_bench_gemm *gemm = driver->ranks[i].gemm;
        if (gemm == NULL)
            continue;
        att_bench_gemm_switch(gemm, on);
        rc = att_bench_gemm_failure(gemm, error);
    }
    return rc;
}
