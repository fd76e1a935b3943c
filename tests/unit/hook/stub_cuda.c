/* A libcuda.so.1 with the few functions that the hook looks up: writes down what was asked and
 * gives times of its own clock, which every recorded event moves on by 250 us. */
#include <stdlib.h>

#define API __attribute__((visibility("default")))

/* Read and set by the test. */
API int stub_records, stub_created, stub_waits, stub_capturing, stub_not_ready;
API int stub_capturing_answer; /* of cuStreamIsCapturing */
API int stub_broken;           /* captures that a question about an event has ended */

static __thread int capture_mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL; 2: relaxed */

typedef struct event {
    unsigned us;
} event_t;

static unsigned now_us;

static void count(int *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

API int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    *event = calloc(1, sizeof(event_t));
    count(&stub_created);
    return *event != NULL ? 0 : 2;
}

API int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

API int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream)
{
    ((event_t *)event)->us = __atomic_add_fetch(&now_us, 250, __ATOMIC_SEQ_CST);
    count(&stub_records);
    return 0;
}

API int cuEventQuery(void *event);
int cuEventQuery(void *event)
{
    if (stub_capturing && capture_mode != 2)
        count(&stub_broken);
    return stub_not_ready ? 600 : 0;
}

API int cuEventElapsedTime(float *ms, void *start, void *stop);
int cuEventElapsedTime(float *ms, void *start, void *stop)
{
    *ms = (float)(((event_t *)stop)->us - ((event_t *)start)->us) / 1000;
    return 0;
}

API int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    count(&stub_waits);
    return 0;
}

API int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}

API int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
    *status = stub_capturing;
    return stub_capturing_answer;
}

API int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = 1;
    return 0;
}

API int cuDeviceGetPCIBusId(char *name, int size, int device);
int cuDeviceGetPCIBusId(char *name, int size, int device)
{
    static const char *const names[] = {"0000:06:00.0", "0000:3B:00.0"};
    if (device < 0 || device > 1 || size < 13)
        return 1;
    for (int i = 0; i < 13; i++)
        name[i] = names[device][i];
    return 0;
}
