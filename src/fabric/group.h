/*
 * group: what a thread gathers between ncclGroupStart and the outermost ncclGroupEnd, and the
 * launch.
 *
 * At the end: communicators that are to be created are created, a thread each; then, communicator
 * by communicator in the order of commHash, all decisions are made (getCollInfo), then all layouts
 * (getChunkSize), then everything is launched; the call returns when all of it is done.
 */
#ifndef ATT_FABRIC_GROUP_H
#define ATT_FABRIC_GROUP_H

#include "fabric/comm.h"

/* A collective as the API gets it. */
typedef struct att_call {
    int function;
    const char *name; /* of the API function */
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    struct ncclComm *comm;
    void *stream;
} att_call_t;

ncclResult_t att_group_start(void);
ncclResult_t att_group_end(void);
/* Decide, launch nothing; the costs of all decisions, in microseconds. */
ncclResult_t att_group_simulate(float *estimate_us);
/* Create now, or at the end of the group. */
ncclResult_t att_group_create(const att_comm_wish_t *wish, ncclComm_t *comm);
ncclResult_t att_group_call(const att_call_t *call);
/* Is the calling thread inside a group? */
bool att_group_open(void);

#endif
