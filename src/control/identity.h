/*
 * identity: what makes a task of another run the same as one of this run.
 */
#ifndef ATT_CONTROL_IDENTITY_H
#define ATT_CONTROL_IDENTITY_H

#include "base/segment.h"
#include "control/device.h"

typedef struct att_identity {
    uint32_t nccl_version;
    char device[ATT_DEVICE_TEXT];
    uint32_t collective, ranks, nodes;
    uint64_t bytes;
} att_identity_t;

/* Of a task on the device and NCCL of one of its lanes. */
att_identity_t att_identity_of(const att_segment_memory_t *memory, const att_segment_task_t *task,
                               uint32_t lane);

#endif
