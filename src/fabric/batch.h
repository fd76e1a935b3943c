/*
 * batch: the tasks of one group on one communicator, while they run, and the threads that run them.
 *
 * A communicator's team has one thread per channel, started when first used. A batch is posted to
 * the threads of the channels that it uses; where the caller drives only one communicator it runs
 * one channel itself. In model mode there is one "channel" that runs everything. As in NCCL all
 * tasks of a batch share the stamps of a channel.
 */
#ifndef ATT_FABRIC_BATCH_H
#define ATT_FABRIC_BATCH_H

#include "fabric/channel.h"
#include "fabric/event.h"
#include "fabric/model.h"

#include <pthread.h>

struct att_team;

typedef struct att_batch {
    struct att_team *team;
    att_task_t *tasks;
    size_t count;
    int channel_low, channel_end; /* channels in use */
    int own;                      /* channel that the caller runs, -1: none */
    att_stamp_t stamps[ATT_ARENA_CHANNELS];
    _Atomic uint32_t result; /* the first that failed */
} att_batch_t;

typedef struct att_worker {
    struct att_team *team;
    int number;
    bool started;
    pthread_t thread;
    att_channel_t channel;
    att_batch_t *batch;
    att_signal_t posted; /* batches given to it */
} att_worker_t;

typedef struct att_team {
    att_arena_t *arena;
    att_model_t *model; /* NULL: real mode */
    _Atomic bool ending;
    uint32_t posted;   /* channels given to threads so far */
    att_signal_t done; /* and those that are through; outlives every batch */
    att_worker_t workers[ATT_ARENA_CHANNELS];
} att_team_t;

void att_team_open(att_team_t *team, att_arena_t *arena, att_model_t *model);
void att_team_close(att_team_t *team);
/* Start: give the channels to their threads. `inline_one`: leave one to att_batch_finish. */
ncclResult_t att_batch_start(att_batch_t *batch, att_team_t *team, att_task_t *tasks, size_t count,
                             bool inline_one);
/* Run what is left to the caller, wait for the rest. */
ncclResult_t att_batch_finish(att_batch_t *batch);
/* What the other ranks get for a call that failed so on this one. */
ncclResult_t att_batch_others_result(ncclResult_t result);

#endif
