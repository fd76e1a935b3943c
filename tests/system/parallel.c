/*
 * parallel RANKS NODES TENSOR PIPELINE ITERATIONS: a job with three overlapping kinds of groups, as
 * a training job has them: RANKS processes on NODES virtual nodes (rank r has ATTUNE_NODE=n<r *
 * NODES / RANKS>), each in one tensor group of TENSOR neighbours, one pipeline group of PIPELINE
 * stages and one data group of the rest. Every iteration calls one AllReduce in each: 2 MiB tensor,
 * 1 MiB pipeline, 4 MiB data, with some computation between on the modelled fabric. Exit status 0
 * when every rank saw right sums in every call.
 *
 * rank = (stage * DATA + replica) * TENSOR + shard, so that with 64 ranks on 4 nodes, TENSOR 8 and
 * PIPELINE 2, tensor groups lie inside a node, data groups on nodes {0,1} or {2,3} and pipeline
 * groups on {0,2} or {1,3}.
 */
#include "fabric/nccl_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_BYTES (4u << 20)

typedef struct layout {
    int ranks, nodes, tensor, pipeline, data;
    long iterations;
} layout_t;

typedef struct member {
    const char *name;
    ncclComm_t comm;
    size_t count;
    float sum; /* expected */
} member_t;

extern void ncclFabricAdvance(ncclComm_t comm, double us) __attribute__((weak));

/* The ranks of the colour: their values are rank + 1. */
static float sum_of(const layout_t *l, int rank, int kind)
{
    float sum = 0;
    int shard = rank % l->tensor, replica = rank / l->tensor % l->data,
        stage = rank / l->tensor / l->data;
    for (int r = 0; r < l->ranks; r++) {
        int s = r % l->tensor, d = r / l->tensor % l->data, p = r / l->tensor / l->data;
        if ((kind == 0 && d == replica && p == stage) ||
            (kind == 1 && s == shard && d == replica) || (kind == 2 && s == shard && p == stage))
            sum += (float)(r + 1);
    }
    return sum;
}

static int call(member_t *m, const float *send, float *receive, long i)
{
    if (m->comm == NULL)
        return 0;
    if (ncclAllReduce(send, receive, m->count, ncclFloat32, ncclSum, m->comm, NULL) != ncclSuccess)
        return 1;
    if (receive[i % (long)m->count] == m->sum || i % 50 != 0)
        return 0;
    fprintf(stderr, "%s call %ld: %g instead of %g\n", m->name, i, (double)receive[0],
            (double)m->sum);
    return 1;
}

static int rank_main(const layout_t *l, int rank, ncclUniqueId id)
{
    char node[16];
    snprintf(node, sizeof node, "n%d", rank * l->nodes / l->ranks);
    setenv("ATTUNE_NODE", node, 1);
    ncclComm_t world;
    float *send = malloc(MOST_BYTES), *receive = malloc(MOST_BYTES);
    if (send == NULL || receive == NULL ||
        ncclCommInitRank(&world, l->ranks, id, rank) != ncclSuccess)
        return 1;
    for (size_t i = 0; i < MOST_BYTES / 4; i++)
        send[i] = (float)(rank + 1);
    int shard = rank % l->tensor, replica = rank / l->tensor % l->data,
        stage = rank / l->tensor / l->data;
    int colours[3] = {stage * l->data + replica, replica * l->tensor + shard,
                      stage * l->tensor + shard};
    member_t members[3] = {{.name = "tensor", .count = 524288},
                           {.name = "pipeline", .count = 262144},
                           {.name = "data", .count = 1048576}};
    for (int k = 0; k < 3; k++) {
        if (ncclCommSplit(world, colours[k], rank, &members[k].comm, NULL) != ncclSuccess)
            return 1;
        members[k].sum = sum_of(l, rank, k);
    }
    int failed = 0;
    for (long i = 0; i < l->iterations && !failed; i++)
        for (int k = 0; k < 3 && !failed; k++) {
            failed = call(&members[k], send, receive, i);
            if (ncclFabricAdvance != NULL)
                ncclFabricAdvance(members[k].comm, 500);
        }
    for (int k = 0; k < 3; k++)
        ncclCommDestroy(members[k].comm);
    ncclCommDestroy(world);
    free(send);
    free(receive);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: parallel RANKS NODES TENSOR PIPELINE ITERATIONS\n");
        return 2;
    }
    layout_t l = {.ranks = atoi(argv[1]),
                  .nodes = atoi(argv[2]),
                  .tensor = atoi(argv[3]),
                  .pipeline = atoi(argv[4]),
                  .iterations = atol(argv[5])};
    if (l.ranks < 2 || l.nodes < 1 || l.tensor < 2 || l.pipeline < 2 ||
        l.ranks % (l.tensor * l.pipeline) != 0) {
        fprintf(stderr, "RANKS must be a multiple of TENSOR * PIPELINE, both at least 2\n");
        return 2;
    }
    l.data = l.ranks / l.tensor / l.pipeline;
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    for (int r = 0; r < l.ranks; r++)
        if (fork() == 0)
            _exit(rank_main(&l, r, id));
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
