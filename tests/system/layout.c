/*
 * layout N NODES CALLS BYTES [LAYOUT [TIMES]]: N processes that call AllReduce on the host fabric,
 * as if they ran on NODES nodes: rank r has ATTUNE_NODE=n<node>, so that its hook joins that node's
 * segment. LAYOUT says which: "block" (default; r * NODES / N), "robin" (r mod NODES), or how many
 * ranks each node has, as 7+8. TIMES communicators are made one after the other, each destroyed
 * before the next, with CALLS calls in each. Exit status 0 when every rank saw right sums. For
 * tests of groups over several agents.
 */
#include "fabric/nccl_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct job {
    int ranks, nodes, times;
    long calls;
    size_t count;
    const char *layout;
} job_t;

static int node_of(const job_t *job, int rank)
{
    if (strcmp(job->layout, "robin") == 0)
        return rank % job->nodes;
    if (strcmp(job->layout, "block") == 0)
        return rank * job->nodes / job->ranks;
    const char *at = job->layout;
    for (int node = 0; *at != '\0'; node++) {
        char *end;
        rank -= (int)strtol(at, &end, 10);
        if (rank < 0)
            return node;
        at = *end == '+' ? end + 1 : end;
    }
    return 0;
}

static int use(const job_t *job, int rank, ncclUniqueId id, const float *send, float *receive)
{
    ncclComm_t comm;
    if (ncclCommInitRank(&comm, job->ranks, id, rank) != ncclSuccess)
        return 1;
    int wrong = 0;
    for (long c = 0; c < job->calls; c++) {
        if (ncclAllReduce(send, receive, job->count, ncclFloat32, ncclSum, comm, NULL) !=
            ncclSuccess)
            return 2;
        wrong |= receive[c % (long)job->count] != (float)(job->ranks * (job->ranks + 1) / 2);
    }
    ncclCommDestroy(comm);
    return wrong;
}

static int rank_main(const job_t *job, int rank, const ncclUniqueId *ids)
{
    char node[16];
    snprintf(node, sizeof node, "n%d", node_of(job, rank));
    setenv("ATTUNE_NODE", node, 1);
    float *send = malloc(job->count * sizeof *send),
          *receive = malloc(job->count * sizeof *receive);
    if (send == NULL || receive == NULL)
        return 1;
    for (size_t i = 0; i < job->count; i++)
        send[i] = (float)(rank + 1);
    int failed = 0;
    for (int t = 0; t < job->times && !failed; t++)
        failed = use(job, rank, ids[t], send, receive);
    free(send);
    free(receive);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    job_t job = {.ranks = atoi(argv[1]),
                 .nodes = atoi(argv[2]),
                 .calls = atol(argv[3]),
                 .count = (size_t)atol(argv[4]) / 4,
                 .layout = argc > 5 ? argv[5] : "block",
                 .times = argc > 6 ? atoi(argv[6]) : 1};
    ncclUniqueId ids[16];
    if (job.ranks < 2 || job.nodes < 1 || job.count < 1 || job.times < 1 || job.times > 16)
        return 2;
    for (int t = 0; t < job.times; t++)
        if (ncclGetUniqueId(&ids[t]) != ncclSuccess)
            return 1;
    for (int r = 0; r < job.ranks; r++)
        if (fork() == 0)
            exit(rank_main(&job, r, ids)); /* with the hook's end */
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
