/*
 * device: what a rank runs on: an identity, a number of units (the counterpart of SMs) and, in
 * model mode, a virtual clock.
 *
 * There is no cudaSetDevice here, so a device belongs to a thread: the first rank of a communicator
 * that a thread creates runs on the thread's device 0, the second (ncclCommInitAll, or several
 * inits in one group) on its device 1, and so on; the next communicator again starts at 0. A
 * process that hosts one rank thus has one device for all its communicators.
 */
#ifndef ATT_FABRIC_DEVICE_H
#define ATT_FABRIC_DEVICE_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct att_device {
    struct att_device *next;  /* of the same thread */
    struct att_device *older; /* of the process */
    uint8_t uuid[16];
    int number; /* what ncclCommCuDevice answers */
    int units;
    _Atomic uint64_t clock_ns;      /* model: virtual time */
    _Atomic uint64_t communicators; /* created on it so far */
} att_device_t;

/* The calling thread's next device for a communicator with this hash. Never freed: a device may be
 * asked for after its communicators are gone. NULL: out of memory. */
att_device_t *att_device_take(uint64_t hash);
/* Make it the answer to ncclFabricDeviceInfo for this thread and, later, others. */
void att_device_use(att_device_t *device);
/* NULL when there is none yet. */
att_device_t *att_device_current(void);
/* Random id of this process. */
uint64_t att_device_process(void);

#endif
