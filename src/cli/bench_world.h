/*
 * bench_world: what the drivers of one bench run share. A driver is one thread that drives one or
 * more ranks; drivers live in one process or in several that inherited the same memory file.
 *
 * The creator owns the memory file and closes it; others attach to the inherited descriptor. A
 * driver that fails marks the world, and every barrier that is waited at returns with that failure
 * instead of hanging.
 */
#ifndef ATT_CLI_BENCH_WORLD_H
#define ATT_CLI_BENCH_WORLD_H

#include "base/status.h"
#include "cli/bench_nccl.h"

#include <stdint.h>

#define ATT_WORLD_MAX_DRIVERS 1024

struct att_world;

/* The descriptor is not close-on-exec: children inherit it. */
int att_world_create(int drivers, struct att_world **world, att_error_t *error);
int att_world_attach(int descriptor, struct att_world **world, att_error_t *error);
void att_world_close(struct att_world *world); /* NULL is fine */
int att_world_descriptor(const struct att_world *world);
int att_world_drivers(const struct att_world *world);
/* NCCL's unique id, written by driver 0 before a barrier. */
att_nccl_id_t *att_world_id(struct att_world *world);

/* All drivers meet. 0, or the failure of whichever driver failed first. */
int att_world_barrier(struct att_world *world);

typedef enum att_world_fold {
    ATT_WORLD_SUM = 0,
    ATT_WORLD_MIN = 1,
    ATT_WORLD_MAX = 2
} att_world_fold_t;
/* Fold one number a driver into the same result on all; meets like a barrier (twice). */
int att_world_reduce(struct att_world *world, int driver, att_world_fold_t fold, double mine,
                     double *result);
/* Driver 0's word reaches all; meets like a barrier (twice). */
int att_world_broadcast(struct att_world *world, int driver, uint64_t *word);

/* The first failure wins; wakes everybody. status is negative. */
void att_world_fail(struct att_world *world, int status, const char *text);
/* 0, or the status of the first failure with its text. */
int att_world_failure(const struct att_world *world, att_error_t *error);

#endif
