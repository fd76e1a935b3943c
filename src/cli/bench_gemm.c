#include "cli/bench_gemm.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

/* From the second run on the device has products before it and behind it. */
enum { RUNS_AHEAD = 2 };

struct att_bench_gemm {
    const att_device_t *device;
    int device_index;
    void *gemm;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int on, busy, stop, failed;
    int runs; /* since it was switched on, up to RUNS_AHEAD */
    att_error_t error;
    uint64_t products;
    uint64_t since_ns, on_ns;
};

static void *run(void *argument)
{
    struct att_bench_gemm *g = argument;
    att_error_t error = {""};
    int rc = g->device->ops->select(g->device->state, g->device_index, &error);
    pthread_mutex_lock(&g->lock);
    while (!g->stop && rc == 0) {
        if (!g->on) {
            g->busy = 0;
            pthread_cond_broadcast(&g->changed);
            pthread_cond_wait(&g->changed, &g->lock);
            continue;
        }
        g->busy = 1;
        pthread_mutex_unlock(&g->lock);
        unsigned products = 0;
        rc = g->device->ops->gemm_run(g->device->state, g->gemm, &products, &error);
        pthread_mutex_lock(&g->lock);
        g->products += products;
        if (g->runs < RUNS_AHEAD && ++g->runs == RUNS_AHEAD)
            pthread_cond_broadcast(&g->changed);
    }
    g->busy = 0;
    g->failed = rc;
    g->error = error;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

int att_bench_gemm_create(const att_device_t *device, int device_index, att_gemm_shape_t shape,
                          struct att_bench_gemm **gemm, att_error_t *error)
{
    struct att_bench_gemm *g = calloc(1, sizeof *g);
    if (g == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the products beside the collectives");
    g->device = device;
    g->device_index = device_index;
    int rc = device->ops->gemm_create(device->state, shape, &g->gemm, error);
    if (rc != 0) {
        free(g);
        return rc;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    if (pthread_create(&g->thread, NULL, run, g) != 0) {
        device->ops->gemm_destroy(device->state, g->gemm);
        free(g);
        return att_fail(error, ATT_ESYSTEM, "cannot start a thread for matrix products");
    }
    *gemm = g;
    return ATT_OK;
}

void att_bench_gemm_destroy(struct att_bench_gemm *gemm)
{
    if (gemm == NULL)
        return;
    pthread_mutex_lock(&gemm->lock);
    gemm->stop = 1;
    pthread_cond_broadcast(&gemm->changed);
    pthread_mutex_unlock(&gemm->lock);
    pthread_join(gemm->thread, NULL);
    gemm->device->ops->gemm_destroy(gemm->device->state, gemm->gemm);
    pthread_cond_destroy(&gemm->changed);
    pthread_mutex_destroy(&gemm->lock);
    free(gemm);
}

void att_bench_gemm_switch(struct att_bench_gemm *gemm, int on)
{
    if (gemm == NULL)
        return;
    pthread_mutex_lock(&gemm->lock);
    if (on && !gemm->on) {
        gemm->since_ns = att_clock_ns();
        gemm->runs = 0;
    }
    if (!on && gemm->on)
        gemm->on_ns += att_clock_ns() - gemm->since_ns;
    gemm->on = on;
    pthread_cond_broadcast(&gemm->changed);
    while (on ? gemm->runs < RUNS_AHEAD && gemm->failed == 0 : gemm->busy)
        pthread_cond_wait(&gemm->changed, &gemm->lock);
    pthread_mutex_unlock(&gemm->lock);
}

void att_bench_gemm_read(struct att_bench_gemm *gemm, uint64_t *products, double *seconds)
{
    pthread_mutex_lock(&gemm->lock);
    uint64_t on_ns = gemm->on_ns + (gemm->on ? att_clock_ns() - gemm->since_ns : 0);
    *products = gemm->products;
    *seconds = (double)on_ns * 1e-9;
    pthread_mutex_unlock(&gemm->lock);
}

int att_bench_gemm_failure(struct att_bench_gemm *gemm, att_error_t *error)
{
    pthread_mutex_lock(&gemm->lock);
    int failed = gemm->failed;
    if (failed != 0)
        att_fail(error, (att_status_t)-failed, "matrix products: %s", gemm->error.text);
    pthread_mutex_unlock(&gemm->lock);
    return failed;
}
