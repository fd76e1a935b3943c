/*
 * channel: the neighbours of one rank on one channel, and the ring and tree algorithms over them.
 *
 * Ring: rank r sends to r + 1. Tree: a binary tree, rooted at rank 0 on even channels and mirrored
 * on odd ones, so that inner nodes of one are mostly leaves of the other.
 */
#ifndef ATT_FABRIC_CHANNEL_H
#define ATT_FABRIC_CHANNEL_H

#include "fabric/task.h"
#include "fabric/wire.h"

typedef struct att_channel {
    int rank, ranks;
    bool connected;
    att_wire_t ring_in, ring_out;
    att_wire_t up_in[2], up_out;     /* contributions: from the children, to the parent */
    att_wire_t down_in, down_out[2]; /* results: from the parent, to the children */
} att_channel_t;

/* Find the wires; done once by the thread that runs the channel. */
void att_channel_connect(att_channel_t *channel, att_arena_t *arena, int number);
/* This channel's part of a task: moves the data, returns when this rank's share is done. */
ncclResult_t att_channel_run(att_channel_t *channel, att_arena_t *arena, const att_task_t *task,
                             const att_part_t *part);

#endif
