/*
 * CUDA: libcudart and libcublas are loaded at run time (12 or 13); the few prototypes are declared
 * here with the numbers of driver_types.h and cublas_api.h.
 *
 * Streams do not synchronise with the default stream and nothing here synchronises the device:
 * with several ranks on one GPU a rank that waited for all streams would wait for its peers'
 * kernels, which wait for it.
 */
#include "cli/bench_device.h"

#include "cli/bench_nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CUDA_MEMCPY_DEFAULT = 4,         /* cudaMemcpyDefault */
    CUDA_STREAM_NON_BLOCKING = 1,    /* cudaStreamNonBlocking */
    CUDA_EVENT_BLOCKING_SYNC = 1,    /* cudaEventBlockingSync */
    CUDA_EVENT_DISABLE_TIMING = 2,   /* cudaEventDisableTiming */
    CUDA_ATTR_MULTIPROCESSORS = 16,  /* cudaDevAttrMultiProcessorCount */
    CUBLAS_NO_TRANSPOSE = 0,         /* CUBLAS_OP_N */
    CUBLAS_TYPE_FLOAT = 0,           /* CUDA_R_32F */
    CUBLAS_TYPE_BFLOAT16 = 14,       /* CUDA_R_16BF */
    CUBLAS_COMPUTE_FLOAT = 68,       /* CUBLAS_COMPUTE_32F */
    CUBLAS_ALGORITHM_HEURISTIC = -1, /* CUBLAS_GEMM_DEFAULT */
};

struct cuda {
    void *runtime, *cublas;
    int (*get_device_count)(int *);
    int (*set_device)(int);
    int (*get_device)(int *);
    int (*device_get_attribute)(int *, int, int);
    int (*device_get_pci_bus_id)(char *, int, int);
    int (*allocate)(void **, size_t);
    int (*release)(void *);
    int (*memcpy_async)(void *, const void *, size_t, int, void *);
    int (*memset_async)(void *, int, size_t, void *);
    int (*stream_create)(void **, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_synchronize)(void *);
    int (*event_create)(void **, unsigned);
    int (*event_destroy)(void *);
    int (*event_record)(void *, void *);
    int (*event_synchronize)(void *);
    int (*event_elapsed)(float *, void *, void *);
    const char *(*error_string)(int);

    pthread_mutex_t cublas_lock; /* drivers create their products at the same time */
    int (*cublas_create)(void **);
    int (*cublas_destroy)(void *);
    int (*cublas_set_stream)(void *, void *);
    int (*cublas_gemm)(void *, int, int, int, int, int, const void *, const void *, int, int,
                       const void *, int, int, const void *, void *, int, int, int, int);
};

/* Products between two events. One or two are over before a thread has woken up: the device would run
 * dry or not as the host's threads happen to fall, and what runs beside would change its pace. */
enum { GEMM_BATCH = 16 };

struct cuda_gemm {
    att_gemm_shape_t shape;
    void *cublas, *stream;
    void *a, *b, *c;
    void *done[2]; /* events after the last two batches */
    unsigned batches;
};

static int check(const struct cuda *cuda, int result, const char *what, att_error_t *error)
{
    if (result == 0)
        return ATT_OK;
    return att_fail(error, ATT_ESYSTEM, "%s: %s (CUDA error %d)", what, cuda->error_string(result),
                    result);
}

static int check_cublas(int result, const char *what, att_error_t *error)
{
    if (result == 0)
        return ATT_OK;
    return att_fail(error, ATT_ESYSTEM, "%s: cuBLAS status %d", what, result);
}

static void *open_first(const char *const *names, char *tried, size_t size)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL)
            return library;
        if (i == 0)
            snprintf(tried, size, "%s", dlerror());
    }
    return NULL;
}

struct symbol {
    const char *name;
    void **slot;
};

static int load_symbols(void *library, const struct symbol *table, size_t count,
                        const char *library_name, att_error_t *error)
{
    for (size_t i = 0; i < count; i++) {
        *table[i].slot = dlsym(library, table[i].name);
        if (*table[i].slot == NULL)
            return att_fail(error, ATT_EVERSION, "%s has no %s", library_name, table[i].name);
    }
    return ATT_OK;
}

static void cuda_close(void *state)
{
    /* The libraries stay loaded: NCCL's threads may still hold on to them. */
    free(state);
}

static int cuda_open(void **state, att_error_t *error)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so", NULL};
    struct cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the CUDA back end");
    char tried[256] = "";
    cuda->runtime = open_first(names, tried, sizeof tried);
    if (cuda->runtime == NULL) {
        free(cuda);
        return att_fail(error, ATT_ENOENT,
                        "this NCCL needs a GPU, and the CUDA runtime cannot be loaded: %s", tried);
    }
    const struct symbol table[] = {
        {"cudaGetDeviceCount", (void **)&cuda->get_device_count},
        {"cudaSetDevice", (void **)&cuda->set_device},
        {"cudaGetDevice", (void **)&cuda->get_device},
        {"cudaDeviceGetAttribute", (void **)&cuda->device_get_attribute},
        {"cudaDeviceGetPCIBusId", (void **)&cuda->device_get_pci_bus_id},
        {"cudaMalloc", (void **)&cuda->allocate},
        {"cudaFree", (void **)&cuda->release},
        {"cudaMemcpyAsync", (void **)&cuda->memcpy_async},
        {"cudaMemsetAsync", (void **)&cuda->memset_async},
        {"cudaStreamCreateWithFlags", (void **)&cuda->stream_create},
        {"cudaStreamDestroy", (void **)&cuda->stream_destroy},
        {"cudaStreamSynchronize", (void **)&cuda->stream_synchronize},
        {"cudaEventCreateWithFlags", (void **)&cuda->event_create},
        {"cudaEventDestroy", (void **)&cuda->event_destroy},
        {"cudaEventRecord", (void **)&cuda->event_record},
        {"cudaEventSynchronize", (void **)&cuda->event_synchronize},
        {"cudaEventElapsedTime", (void **)&cuda->event_elapsed},
        {"cudaGetErrorString", (void **)&cuda->error_string},
    };
    int rc = load_symbols(cuda->runtime, table, sizeof table / sizeof table[0], "libcudart", error);
    if (rc != 0) {
        free(cuda);
        return rc;
    }
    pthread_mutex_init(&cuda->cublas_lock, NULL);
    *state = cuda;
    return ATT_OK;
}

static int cuda_count(void *state, int *count, att_error_t *error)
{
    struct cuda *cuda = state;
    int found = 0;
    int result = cuda->get_device_count(&found);
    if (result != 0)
        return att_fail(error, ATT_ENOENT,
                        "this NCCL needs a GPU, and CUDA sees none: %s (cudaGetDeviceCount: %d); "
                        "attune run --fabric real -- attune bench ... takes the host fabric",
                        cuda->error_string(result), result);
    if (found < 1)
        return att_fail(error, ATT_ENOENT, "this NCCL needs a GPU and CUDA sees none");
    *count = found;
    return ATT_OK;
}

static int cuda_describe(void *state, int index, char *text, size_t size, int *units,
                         att_error_t *error)
{
    struct cuda *cuda = state;
    char bus[32];
    int rc = check(cuda, cuda->device_get_pci_bus_id(bus, sizeof bus, index),
                   "cudaDeviceGetPCIBusId", error);
    if (rc == 0)
        rc = check(cuda, cuda->device_get_attribute(units, CUDA_ATTR_MULTIPROCESSORS, index),
                   "cudaDeviceGetAttribute", error);
    if (rc == 0)
        snprintf(text, size, "[%s] GPU with %d multiprocessors", bus, *units);
    return rc;
}

static int cuda_select(void *state, int index, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->set_device(index), "cudaSetDevice", error);
}

static int cuda_allocate(void *state, size_t size, void **memory, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->allocate(memory, size > 0 ? size : 1), "cudaMalloc", error);
}

static void cuda_release(void *state, void *memory)
{
    struct cuda *cuda = state;
    if (memory != NULL)
        cuda->release(memory);
}

static int cuda_stream_create(void *state, void **stream, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->stream_create(stream, CUDA_STREAM_NON_BLOCKING),
                 "cudaStreamCreateWithFlags", error);
}

static void cuda_stream_destroy(void *state, void *stream)
{
    struct cuda *cuda = state;
    if (stream != NULL)
        cuda->stream_destroy(stream);
}

static int cuda_synchronize(void *state, void *stream, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->stream_synchronize(stream), "cudaStreamSynchronize", error);
}

static int cuda_copy(void *state, void *to, const void *from, size_t size, void *stream,
                     att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->memcpy_async(to, from, size, CUDA_MEMCPY_DEFAULT, stream),
                 "cudaMemcpyAsync", error);
}

static int cuda_move(void *state, void *to, const void *from, size_t size, void *stream,
                     att_error_t *error)
{
    int rc = cuda_copy(state, to, from, size, stream, error);
    return rc != 0 ? rc : cuda_synchronize(state, stream, error);
}

static int cuda_fill(void *state, void *to, int byte, size_t size, void *stream, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->memset_async(to, byte, size, stream), "cudaMemsetAsync", error);
}

static int cuda_event_create(void *state, void **event, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->event_create(event, 0), "cudaEventCreateWithFlags", error);
}

static void cuda_event_destroy(void *state, void *event)
{
    struct cuda *cuda = state;
    if (event != NULL)
        cuda->event_destroy(event);
}

static int cuda_event_record(void *state, void *event, void *stream, att_error_t *error)
{
    struct cuda *cuda = state;
    return check(cuda, cuda->event_record(event, stream), "cudaEventRecord", error);
}

static int cuda_event_elapsed(void *state, void *start, void *stop, double *us, att_error_t *error)
{
    struct cuda *cuda = state;
    float ms;
    int rc = check(cuda, cuda->event_elapsed(&ms, start, stop), "cudaEventElapsedTime", error);
    if (rc == 0)
        *us = (double)ms * 1000.0;
    return rc;
}

static int load_cublas(struct cuda *cuda, att_error_t *error)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
    char tried[256] = "";
    cuda->cublas = open_first(names, tried, sizeof tried);
    if (cuda->cublas == NULL)
        return att_fail(error, ATT_ENOENT, "--gemm needs cuBLAS, which cannot be loaded: %s",
                        tried);
    const struct symbol table[] = {
        {"cublasCreate_v2", (void **)&cuda->cublas_create},
        {"cublasDestroy_v2", (void **)&cuda->cublas_destroy},
        {"cublasSetStream_v2", (void **)&cuda->cublas_set_stream},
        {"cublasGemmEx", (void **)&cuda->cublas_gemm},
    };
    return load_symbols(cuda->cublas, table, sizeof table / sizeof table[0], "libcublas", error);
}

static void cuda_gemm_destroy(void *state, void *gemm)
{
    struct cuda *cuda = state;
    struct cuda_gemm *g = gemm;
    if (g == NULL)
        return;
    if (g->stream != NULL)
        cuda->stream_synchronize(g->stream);
    for (int i = 0; i < 2; i++)
        cuda_event_destroy(state, g->done[i]);
    cuda_release(state, g->a);
    cuda_release(state, g->b);
    cuda_release(state, g->c);
    if (g->cublas != NULL)
        cuda->cublas_destroy(g->cublas);
    cuda_stream_destroy(state, g->stream);
    free(g);
}

/* Column-major C (m x n) = A (m x k) B (k x n), fp32 accumulation. */
static int cuda_gemm_enqueue(struct cuda *cuda, struct cuda_gemm *g, att_error_t *error)
{
    static const float one = 1.0f, zero = 0.0f;
    int type = g->shape.type == ATT_NCCL_BFLOAT16 ? CUBLAS_TYPE_BFLOAT16 : CUBLAS_TYPE_FLOAT;
    return check_cublas(cuda->cublas_gemm(g->cublas, CUBLAS_NO_TRANSPOSE, CUBLAS_NO_TRANSPOSE,
                                          g->shape.m, g->shape.n, g->shape.k, &one, g->a, type,
                                          g->shape.m, g->b, type, g->shape.k, &zero, g->c, type,
                                          g->shape.m, CUBLAS_COMPUTE_FLOAT,
                                          CUBLAS_ALGORITHM_HEURISTIC),
                        "cublasGemmEx", error);
}

/* Small integers: exact in both types, and not zeros, which a GPU multiplies with less power. */
static int upload_matrix(void *state, void *matrix, size_t count, int type, void *stream,
                         att_error_t *error)
{
    size_t size = att_nccl_type_size(type);
    char *host = malloc(count * size);
    if (host == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a matrix");
    uint32_t random = 12345;
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        float value = (float)(int)(random >> 28) - 7.5f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16);
        if (size == 4)
            memcpy(host + i * 4, &bits, 4);
        else
            memcpy(host + i * 2, &upper, 2);
    }
    int rc = cuda_move(state, matrix, host, count * size, stream, error);
    free(host);
    return rc;
}

static int cuda_gemm_prepare(struct cuda *cuda, struct cuda_gemm *g, att_error_t *error)
{
    size_t element = att_nccl_type_size(g->shape.type);
    size_t m = (size_t)g->shape.m, n = (size_t)g->shape.n, k = (size_t)g->shape.k;
    int rc = cuda_stream_create(cuda, &g->stream, error);
    if (rc == 0)
        rc = cuda_allocate(cuda, m * k * element, &g->a, error);
    if (rc == 0)
        rc = cuda_allocate(cuda, k * n * element, &g->b, error);
    if (rc == 0)
        rc = cuda_allocate(cuda, m * n * element, &g->c, error);
    if (rc == 0)
        rc = upload_matrix(cuda, g->a, m * k, g->shape.type, g->stream, error);
    if (rc == 0)
        rc = upload_matrix(cuda, g->b, k * n, g->shape.type, g->stream, error);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = check(
            cuda,
            cuda->event_create(&g->done[i], CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING),
            "cudaEventCreateWithFlags", error);
    if (rc == 0)
        rc = check_cublas(cuda->cublas_create(&g->cublas), "cublasCreate", error);
    if (rc == 0)
        rc = check_cublas(cuda->cublas_set_stream(g->cublas, g->stream), "cublasSetStream", error);
    if (rc == 0)
        rc = cuda_gemm_enqueue(cuda, g, error);
    if (rc == 0)
        rc = cuda_synchronize(cuda, g->stream, error);
    return rc;
}

static int cuda_gemm_create(void *state, att_gemm_shape_t shape, void **gemm, att_error_t *error)
{
    struct cuda *cuda = state;
    if (shape.type != ATT_NCCL_FLOAT && shape.type != ATT_NCCL_BFLOAT16)
        return att_fail(error, ATT_EUNSUPPORTED, "--gemm multiplies float or bfloat16, not %s",
                        att_nccl_type_name(shape.type));
    pthread_mutex_lock(&cuda->cublas_lock);
    int rc = cuda->cublas_gemm == NULL ? load_cublas(cuda, error) : ATT_OK;
    pthread_mutex_unlock(&cuda->cublas_lock);
    if (rc != 0)
        return rc;
    struct cuda_gemm *g = calloc(1, sizeof *g);
    if (g == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the matrix product");
    g->shape = shape;
    rc = cuda_gemm_prepare(cuda, g, error);
    if (rc != 0) {
        cuda_gemm_destroy(state, g);
        return rc;
    }
    *gemm = g;
    return ATT_OK;
}

static int cuda_gemm_run(void *state, void *gemm, unsigned *products, att_error_t *error)
{
    struct cuda *cuda = state;
    struct cuda_gemm *g = gemm;
    int rc = ATT_OK;
    for (*products = 0; rc == 0 && *products < GEMM_BATCH; ++*products)
        rc = cuda_gemm_enqueue(cuda, g, error);
    if (rc == 0)
        rc = check(cuda, cuda->event_record(g->done[g->batches % 2], g->stream), "cudaEventRecord",
                   error);
    if (rc == 0 && g->batches++ > 0)
        rc = check(cuda, cuda->event_synchronize(g->done[g->batches % 2]), "cudaEventSynchronize",
                   error);
    return rc;
}

const att_device_ops_t att_device_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .count = cuda_count,
    .describe = cuda_describe,
    .select = cuda_select,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .synchronize = cuda_synchronize,
    .upload = cuda_move,
    .download = cuda_move,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_elapsed = cuda_event_elapsed,
    .gemm_create = cuda_gemm_create,
    .gemm_destroy = cuda_gemm_destroy,
    .gemm_run = cuda_gemm_run,
};
