/*
 * device: the GPU, or its counterpart of the host fabric, that a rank uses. Asked of libraries that
 * the process has loaded already; unknown without them.
 */
#ifndef ATT_HOOK_DEVICE_H
#define ATT_HOOK_DEVICE_H

#include "base/segment.h"
#include "hook/abi/nccl.h"

#include <stdbool.h>

typedef struct att_device {
    bool fabric; /* the host fabric answered */
    att_clock_kind_t clock_kind;
    uint32_t units;    /* multiprocessors or their counterpart, 0 unknown */
    uint8_t uuid[16];  /* all zero unknown */
    uint64_t clock_id; /* equal: kernel stamps are on one clock; 0 unknown */
} att_device_t;

/* The current device of the calling thread (NCCL calls its plugins with the communicator's device
 * current). node_id makes the clock of the host fabric one per node. */
att_device_t att_device_current(att_nccl_logger_fn logger, const uint8_t node_id[16]);

#endif
