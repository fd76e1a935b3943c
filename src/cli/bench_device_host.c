/* Host memory: the back end for the host fabric. */
#include "cli/bench_device.h"

#include "cli/bench_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct host_gemm {
    att_gemm_shape_t shape;
    float *a, *b, *c;
};

static int host_open(void **state, att_error_t *error)
{
    *state = NULL;
    return ATT_OK;
}

static void host_close(void *state)
{
}

static int host_count(void *state, int *count, att_error_t *error)
{
    *count = 0;
    return ATT_OK;
}

static int host_describe(void *state, int index, char *text, size_t size, int *units,
                         att_error_t *error)
{
    snprintf(text, size, "host memory, %ld cores", sysconf(_SC_NPROCESSORS_ONLN));
    *units = 0;
    return ATT_OK;
}

static int host_select(void *state, int index, att_error_t *error)
{
    return ATT_OK;
}

static int host_allocate(void *state, size_t size, void **memory, att_error_t *error)
{
    int rc = posix_memalign(memory, 4096, size > 0 ? size : 1);
    if (rc != 0)
        return att_fail(error, ATT_ENOMEM, "no memory for a buffer of %zu bytes", size);
    /* Touch it: page faults do not belong into the first timed call. */
    memset(*memory, 0, size);
    return ATT_OK;
}

static void host_release(void *state, void *memory)
{
    free(memory);
}

static int host_stream_create(void *state, void **stream, att_error_t *error)
{
    *stream = NULL;
    return ATT_OK;
}

static void host_stream_destroy(void *state, void *stream)
{
}

static int host_synchronize(void *state, void *stream, att_error_t *error)
{
    return ATT_OK;
}

static int host_move(void *state, void *to, const void *from, size_t size, void *stream,
                     att_error_t *error)
{
    memcpy(to, from, size);
    return ATT_OK;
}

static int host_fill(void *state, void *to, int byte, size_t size, void *stream, att_error_t *error)
{
    memset(to, byte, size);
    return ATT_OK;
}

static void host_gemm_destroy(void *state, void *gemm)
{
    struct host_gemm *g = gemm;
    if (g == NULL)
        return;
    free(g->a);
    free(g->b);
    free(g->c);
    free(g);
}

static int host_gemm_create(void *state, att_gemm_shape_t shape, void **gemm, att_error_t *error)
{
    if (shape.type != ATT_NCCL_FLOAT)
        return att_fail(error, ATT_EUNSUPPORTED, "--gemm on the host multiplies float only, not %s",
                        att_nccl_type_name(shape.type));
    struct host_gemm *g = calloc(1, sizeof *g);
    if (g == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the matrix product");
    g->shape = shape;
    size_t a = (size_t)shape.m * (size_t)shape.k, b = (size_t)shape.k * (size_t)shape.n;
    g->a = malloc(a * sizeof(float));
    g->b = malloc(b * sizeof(float));
    g->c = malloc((size_t)shape.m * (size_t)shape.n * sizeof(float));
    if (g->a == NULL || g->b == NULL || g->c == NULL) {
        host_gemm_destroy(state, g);
        return att_fail(error, ATT_ENOMEM, "no memory for a %dx%dx%d product", shape.m, shape.n,
                        shape.k);
    }
    for (size_t i = 0; i < a; i++)
        g->a[i] = (float)(i % 7) - 3.0f;
    for (size_t i = 0; i < b; i++)
        g->b[i] = (float)(i % 5) - 2.0f;
    *gemm = g;
    return ATT_OK;
}

/* Row by row of B, so that the inner loop is a vectorised multiply-add over contiguous memory. */
static int host_gemm_run(void *state, void *gemm, unsigned *products, att_error_t *error)
{
    struct host_gemm *g = gemm;
    *products = 1;
    size_t n = (size_t)g->shape.n;
    for (int i = 0; i < g->shape.m; i++) {
        float *restrict row = g->c + (size_t)i * n;
        memset(row, 0, n * sizeof(float));
        for (int k = 0; k < g->shape.k; k++) {
            float factor = g->a[(size_t)i * (size_t)g->shape.k + (size_t)k];
            const float *restrict b = g->b + (size_t)k * n;
            for (size_t j = 0; j < n; j++)
                row[j] += factor * b[j];
        }
    }
    return ATT_OK;
}

const att_device_ops_t att_device_host = {
    .name = "host",
    .host_memory = 1,
    .open = host_open,
    .close = host_close,
    .count = host_count,
    .describe = host_describe,
    .select = host_select,
    .allocate = host_allocate,
    .release = host_release,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .synchronize = host_synchronize,
    .upload = host_move,
    .download = host_move,
    .copy = host_move,
    .fill = host_fill,
    .gemm_create = host_gemm_create,
    .gemm_destroy = host_gemm_destroy,
    .gemm_run = host_gemm_run,
};
