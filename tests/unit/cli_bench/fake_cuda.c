/*
 * fake_cuda: libcudart and libcublas on host memory, for tests of the driver's CUDA back end on
 * machines without a GPU. Two devices. Everything happens at once; pointers, streams and events
 * that were not created here, or belong to another device than the thread's, are refused, as are
 * calls that would synchronise the device. Elapsed time of two events is 1 ms a recording between
 * them.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INVALID 1
#define MAGIC   0x637564u

struct thing {
    uint32_t magic;
    int device;
    uint64_t stamp;
};

static _Thread_local int device;
static _Thread_local uint64_t recordings;

static int good(const void *thing)
{
    const struct thing *t = thing;
    return t != NULL && t->magic == MAGIC && t->device == device;
}

/* libcublas is a copy of this file, with a `device` of its own. */
static int alive(const void *thing)
{
    return thing != NULL && ((const struct thing *)thing)->magic == MAGIC;
}

static int create(void **thing)
{
    struct thing *t = calloc(1, sizeof *t);
    t->magic = MAGIC;
    t->device = device;
    *thing = t;
    return 0;
}

static int destroy(void *thing)
{
    if (!good(thing))
        return INVALID;
    ((struct thing *)thing)->magic = 0;
    free(thing);
    return 0;
}

int cudaGetDeviceCount(int *count)
{
    *count = 2;
    return 0;
}

int cudaSetDevice(int index)
{
    device = index;
    return index >= 0 && index < 2 ? 0 : INVALID;
}

int cudaGetDevice(int *index)
{
    *index = device;
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int index)
{
    *value = 20;
    return attribute == 16 ? 0 : INVALID; /* multiprocessors */
}

int cudaDeviceGetPCIBusId(char *text, int length, int index)
{
    snprintf(text, (size_t)length, "0000:0%d:00.0", index);
    return 0;
}

int cudaMalloc(void **memory, size_t size)
{
    *memory = malloc(size);
    return *memory != NULL ? 0 : 2;
}

int cudaFree(void *memory)
{
    free(memory);
    return 0;
}

int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream)
{
    if (!good(stream) || kind != 4)
        return INVALID;
    memcpy(to, from, size);
    return 0;
}

int cudaMemsetAsync(void *to, int byte, size_t size, void *stream)
{
    if (!good(stream))
        return INVALID;
    memset(to, byte, size);
    return 0;
}

int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    return flags == 1 ? create(stream) : INVALID; /* non-blocking */
}

int cudaStreamDestroy(void *stream)
{
    return destroy(stream);
}

int cudaStreamSynchronize(void *stream)
{
    return good(stream) ? 0 : INVALID;
}

int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    return create(event);
}

int cudaEventDestroy(void *event)
{
    return destroy(event);
}

int cudaEventRecord(void *event, void *stream)
{
    if (!good(event) || !good(stream))
        return INVALID;
    ((struct thing *)event)->stamp = ++recordings;
    return 0;
}

int cudaEventSynchronize(void *event)
{
    return good(event) ? 0 : INVALID;
}

int cudaEventElapsedTime(float *ms, void *start, void *stop)
{
    const struct thing *a = start, *b = stop;
    if (a->magic != MAGIC || b->magic != MAGIC || a->stamp == 0 || b->stamp <= a->stamp)
        return INVALID;
    *ms = (float)(b->stamp - a->stamp);
    return 0;
}

const char *cudaGetErrorString(int error)
{
    return error == 0 ? "no error" : "invalid argument";
}

int cublasCreate_v2(void **handle)
{
    return create(handle);
}

int cublasDestroy_v2(void *handle)
{
    return alive(handle) ? destroy(handle) : INVALID;
}

int cublasSetStream_v2(void *handle, void *stream)
{
    return alive(handle) && alive(stream) ? 0 : INVALID;
}

int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                 int ldb, const void *beta, void *c, int c_type, int ldc, int compute,
                 int algorithm)
{
    int element = a_type == 14 ? 2 : 4;
    if (!alive(handle) || transpose_a != 0 || transpose_b != 0 || a_type != b_type ||
        a_type != c_type || lda != m || ldb != k || ldc != m || compute != 68 || algorithm != -1 ||
        *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f)
        return INVALID;
    memset(c, 0, (size_t)m * (size_t)n * (size_t)element); /* the whole matrix is there */
    return 0;
}
