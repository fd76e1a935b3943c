/*
 * movement: how a modelled collective moves its data: as little copying as keeps it true.
 *
 * Normally through stages in the arena, 64 KiB of every block a round, one barrier a round; a stage
 * is written again two rounds later, when all have left the round in between. When all data are to
 * move and all ranks are threads of one process, each rank reads the others' buffers directly
 * instead. What is already in place (a receive buffer shared by several ranks, or holding the
 * sender's block) is not copied again.
 */
#ifndef ATT_FABRIC_MOVEMENT_H
#define ATT_FABRIC_MOVEMENT_H

#include "fabric/arena.h"
#include "fabric/task.h"

typedef struct att_movement {
    att_arena_t *arena;
    int parity;      /* of the next round */
    size_t reserved; /* bytes of each of this rank's stages */
    /* of the task in hand */
    const att_task_t *task;
    size_t block;                      /* bytes of one rank's block, or of the vector */
    size_t offset;                     /* of the piece in hand */
    size_t piece;                      /* bytes */
    void (*all_there)(void *argument); /* run once, by the last rank to come */
    void *argument;
} att_movement_t;

ncclResult_t att_movement_open(att_movement_t *movement, att_arena_t *arena);
/* Move the first `moved` bytes of each block. When it returns, this rank's result is there and its
 * buffers are no longer looked at. */
ncclResult_t att_movement_run(att_movement_t *movement, const att_task_t *task, size_t moved,
                              void (*all_there)(void *argument), void *argument);

#endif
