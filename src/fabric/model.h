/*
 * model: collectives whose duration comes from a surface instead of the machine.
 *
 * A call starts when the last rank arrives, by the virtual clocks of the ranks' devices, and ends
 * after what the surface says for the setting and load, times noise and drift:
 *   duration * (1 + noise * g) * (1 + drift * t), g from a normal distribution seeded by (seed,
 *   ordinal of the communicator on rank 0's device, call), t the virtual time in seconds
 * Data: the first 64 KiB of each rank's block (AllReduce, Broadcast, Reduce: of the vector) move on
 * every call; all of it when the call's number is a multiple of 50, the first call included. What a
 * buffer shared by several ranks of one process already holds is not copied again.
 *
 * Environment: ATTUNE_FABRIC_SURFACE, _LOAD (none), _SEED (1), _NOISE (the surface's), _DRIFT (0),
 * _ANY_RANKS=1 (allow another number of ranks than the surface was made for).
 */
#ifndef ATT_FABRIC_MODEL_H
#define ATT_FABRIC_MODEL_H

#include "fabric/arena.h"
#include "fabric/device.h"
#include "fabric/movement.h"
#include "fabric/task.h"

struct att_surface;

#define ATT_MODEL_WHOLE 50 /* every so many calls all data move */

/* What the environment says, read once per process. */
typedef struct att_model_setup {
    const struct att_surface *surface;
    const char *surface_name;
    const char *load_name;
    int load;
    uint64_t seed;
    double noise;
    double drift;
    bool any_ranks;
} att_model_setup_t;

/* One rank's part in a modelled communicator. */
typedef struct att_model {
    const att_model_setup_t *setup;
    att_arena_t *arena;
    att_device_t *device;
    att_movement_t movement;
    const att_task_t *task; /* in hand */
} att_model_t;

/* ncclInvalidUsage when a variable or the surface is not good. */
ncclResult_t att_model_setup(const att_model_setup_t **setup);
ncclResult_t att_model_open(att_model_t *model, const att_model_setup_t *setup, att_arena_t *arena,
                            att_device_t *device);
/* Run one task: moves data and the virtual clock. Stamps: own arrival and common end, ns. */
ncclResult_t att_model_run(att_model_t *model, const att_task_t *task, uint64_t *start_ns,
                           uint64_t *stop_ns);
/* The factor on the duration of a call (exposed for its test). */
double att_model_noise(double noise, uint64_t seed, uint64_t ordinal, uint64_t call);

#endif
