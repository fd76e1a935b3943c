/*
 * event: CUDA events and streams through the driver that the process has loaded (libcuda.so.1),
 * never linked and never loaded by attune. Streams and events are the driver's handles, which are
 * the runtime's too.
 */
#ifndef ATT_HOOK_EVENT_H
#define ATT_HOOK_EVENT_H

#include <stdbool.h>

typedef struct att_event_driver {
    int (*create)(void **event, unsigned flags);
    int (*destroy)(void *event);
    int (*record)(void *event, void *stream);
    int (*query)(void *event); /* 0 done, ATT_EVENT_NOT_READY */
    int (*elapsed)(float *ms, void *start, void *stop);
    int (*wait)(void *stream, void *event, unsigned flags);
    int (*capturing)(void *stream, int *status); /* 0 not capturing */
    int (*capture_mode)(int *mode);              /* of this thread: in the new one, out the old */
} att_event_driver_t;

enum { ATT_EVENT_NOT_READY = 600 /* CUDA_ERROR_NOT_READY */ };
enum { ATT_EVENT_RELAXED = 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */ };
enum { ATT_EVENT_NO_TIMING = 2 /* CU_EVENT_DISABLE_TIMING */ };

/* NULL when no driver is loaded (yet), or lacks a function. */
const att_event_driver_t *att_event_driver(void);

/* Is a CUDA driver there at all? */
bool att_event_driver_is_loaded(void);

/* Is the stream recording into a CUDA graph? True also when the driver cannot tell. */
bool att_event_capturing(const att_event_driver_t *driver, void *stream);

#endif
