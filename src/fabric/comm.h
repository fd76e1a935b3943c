/*
 * comm: one rank of a communicator, and how it is made and taken down.
 *
 * Owns the arena's attachment, the team of channel threads, the plugins' contexts, and the tasks
 * that wait for the outermost group to end. Used by one thread at a time, but for abort and the
 * queries.
 */
#ifndef ATT_FABRIC_COMM_H
#define ATT_FABRIC_COMM_H

#include "fabric/arena.h"
#include "fabric/batch.h"
#include "fabric/decision.h"
#include "fabric/device.h"
#include "fabric/event.h"
#include "fabric/host.h"
#include "fabric/model.h"
#include "fabric/oracle.h"

/* What a caller wants; copied, so that a group may create it later. */
typedef struct att_comm_wish {
    char name[33]; /* of the arena */
    int ranks;
    int rank;
    int min_channels, max_channels; /* ncclConfig_t minCTAs, maxCTAs; 0 = unset */
    char comm_name[64];
    att_device_t *device;
} att_comm_wish_t;

struct ncclComm {
    uint64_t magic;
    char name[33];
    uint64_t hash;
    char comm_name[64];
    int nodes;
    att_host_layout_t layout; /* of its ranks, as NCCL would count */
    att_device_t *device;
    bool attached, has_tuner, opened_team;
    att_arena_t arena;
    att_model_t model;
    att_decider_t decider;
    att_profile_t profile;
    att_oracle_t oracle;
    att_team_t team;
    uint64_t calls;          /* tasks numbered so far */
    uint32_t splits;         /* ncclCommSplit calls so far */
    _Atomic uint32_t error;  /* ncclResult_t that every later call gets */
    _Atomic uint32_t inside; /* threads in a call on it */
    _Atomic uint32_t finalized;
    /* group of the calling thread */
    struct ncclComm *group_next;
    bool in_group;
    att_task_t *tasks;
    size_t task_count, task_capacity;
    void *stream;
};

/* Mode of this process, from ATTUNE_FABRIC_MODE. ncclInvalidUsage for another word. */
ncclResult_t att_comm_mode(att_fabric_mode_t *mode);
/* Create: blocks until all ranks are there. Init order as NCCL: profiler, connections, tuner. */
ncclResult_t att_comm_create(const att_comm_wish_t *wish, struct ncclComm **comm);
/* Release everything; writes the run's report. */
void att_comm_destroy(struct ncclComm *comm);
/* The same, after sending away threads that are inside a call. */
void att_comm_abort(struct ncclComm *comm);
/* Names of the child that this rank's colour gives; collective over the parent. ranks 0: none. */
ncclResult_t att_comm_split(struct ncclComm *parent, int color, int key, att_comm_wish_t *wish);
/* ncclSuccess, or why it cannot be used. */
ncclResult_t att_comm_check(const struct ncclComm *comm, const char *what);
ncclResult_t att_comm_add_task(struct ncclComm *comm, const att_task_t *task);

#endif
