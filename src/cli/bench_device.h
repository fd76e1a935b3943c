/*
 * bench_device: memory, streams, events and matrix products of the device that the collectives run
 * on, behind one table of operations. Two back ends: host memory for the host fabric, and CUDA,
 * whose libraries are loaded at run time.
 *
 * A device object may be used by several threads; `select` holds for the calling thread. A stream
 * of the host back end is NULL: the host fabric's calls return when they are done.
 */
#ifndef ATT_CLI_BENCH_DEVICE_H
#define ATT_CLI_BENCH_DEVICE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A product C = A x B, M x K by K x N. type is att_nccl_type_t FLOAT or BFLOAT16. */
typedef struct att_gemm_shape {
    int m, n, k;
    int type;
} att_gemm_shape_t;

typedef struct att_device_ops {
    const char *name;
    int host_memory; /* the program can read and write its memory directly */
    int (*open)(void **state, att_error_t *error);
    void (*close)(void *state);
    /* Number of devices; 0 means that the back end has no such limit. */
    int (*count)(void *state, int *count, att_error_t *error);
    /* Name for the header line, and multiprocessors of the device (0 unknown). */
    int (*describe)(void *state, int index, char *text, size_t size, int *units,
                    att_error_t *error);
    int (*select)(void *state, int index, att_error_t *error);
    int (*allocate)(void *state, size_t size, void **memory, att_error_t *error);
    void (*release)(void *state, void *memory);
    int (*stream_create)(void *state, void **stream, att_error_t *error);
    void (*stream_destroy)(void *state, void *stream);
    int (*synchronize)(void *state, void *stream, att_error_t *error);
    /* Host to device and back, finished on return. */
    int (*upload)(void *state, void *to, const void *from, size_t size, void *stream,
                  att_error_t *error);
    int (*download)(void *state, void *to, const void *from, size_t size, void *stream,
                    att_error_t *error);
    /* Enqueued. */
    int (*copy)(void *state, void *to, const void *from, size_t size, void *stream,
                att_error_t *error);
    int (*fill)(void *state, void *to, int byte, size_t size, void *stream, att_error_t *error);
    /* NULL in a back end whose calls are finished on return: a clock times them. */
    int (*event_create)(void *state, void **event, att_error_t *error);
    void (*event_destroy)(void *state, void *event);
    int (*event_record)(void *state, void *event, void *stream, att_error_t *error);
    /* Both events have happened. Microseconds. */
    int (*event_elapsed)(void *state, void *start, void *stop, double *us, att_error_t *error);
    /* Matrix products on a stream of their own. create runs one to have everything loaded. */
    int (*gemm_create)(void *state, att_gemm_shape_t shape, void **gemm, att_error_t *error);
    void (*gemm_destroy)(void *state, void *gemm);
    /* Start some products, their number in *products; returns when those of the call before are done. */
    int (*gemm_run)(void *state, void *gemm, unsigned *products, att_error_t *error);
} att_device_ops_t;

extern const att_device_ops_t att_device_host;
extern const att_device_ops_t att_device_cuda;

/* One opened back end. */
typedef struct att_device {
    const att_device_ops_t *ops;
    void *state;
} att_device_t;

int att_device_open(const att_device_ops_t *ops, att_device_t *device, att_error_t *error);
void att_device_close(att_device_t *device);

#endif
