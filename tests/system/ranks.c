/*
 * ranks N NODES CALLS BYTES [PAUSE_US [busy]]: N processes that call AllReduce on the host fabric,
 * as if they ran on NODES nodes: rank r has ATTUNE_NODE=n<r * NODES / N>, so that its hook joins
 * that node's segment. PAUSE_US passes between two calls, asleep or busy (a core taken the whole
 * time). Exit status 0 when every rank saw right sums. For tests of groups over several agents.
 *
 * With RANKS_TARGET=<rank>:<file> in the environment the process id of that rank is in the file
 * before any rank begins (ATTUNE_FAULT_TARGET, base/step.h). With RANKS_ONCE a call of half the
 * size comes first, as what a job exchanges while it starts. With RANKS_SIZES=<n> the calls are of
 * 1 to n elements in turn: so many tasks. With RANKS_NODE=<k> the nodes are nk and up.
 */
#include "base/clock.h"
#include "fabric/nccl_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long pause_us;
static int busy;

static long number(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL ? strtol(value, NULL, 10) : 0;
}

static void pass_time(void)
{
    uint64_t until = att_clock_ns() + (uint64_t)pause_us * 1000;
    if (!busy && pause_us > 0)
        att_clock_sleep_ns((uint64_t)pause_us * 1000);
    while (busy && att_clock_ns() < until)
        continue;
}

static int rank_main(int rank, int ranks, int nodes, long calls, size_t count, ncclUniqueId id)
{
    char node[16];
    snprintf(node, sizeof node, "n%ld", number("RANKS_NODE") + rank * nodes / ranks);
    setenv("ATTUNE_NODE", node, 1);
    ncclComm_t comm;
    float *send = malloc(count * sizeof *send), *receive = malloc(count * sizeof *receive);
    if (send == NULL || receive == NULL || ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        return 1;
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        send[i] = (float)(rank + 1);
    if (getenv("RANKS_ONCE") != NULL &&
        ncclAllReduce(send, receive, count / 2, ncclFloat32, ncclSum, comm, NULL) != ncclSuccess)
        return 2;
    long sizes = number("RANKS_SIZES");
    for (long c = 0; c < calls; c++) {
        size_t size = sizes > 0 ? (size_t)(c % sizes) + 1 : count;
        if (ncclAllReduce(send, receive, size, ncclFloat32, ncclSum, comm, NULL) != ncclSuccess)
            return 2;
        pass_time();
        wrong |= receive[(size_t)c % size] != (float)(ranks * (ranks + 1) / 2);
    }
    ncclCommDestroy(comm);
    free(send);
    free(receive);
    return wrong;
}

static int write_target(const char *target, const pid_t *pids, int ranks)
{
    int rank = atoi(target);
    const char *file = strchr(target, ':');
    char draft[1024];
    if (file == NULL || rank < 0 || rank >= ranks)
        return -1;
    snprintf(draft, sizeof draft, "%s.new", ++file);
    FILE *stream = fopen(draft, "w");
    if (stream == NULL)
        return -1;
    fprintf(stream, "%d\n", (int)pids[rank]);
    return fclose(stream) == 0 ? rename(draft, file) : -1;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    pause_us = argc > 5 ? atol(argv[5]) : 0;
    busy = argc > 6 && strcmp(argv[6], "busy") == 0;
    int ranks = atoi(argv[1]), nodes = atoi(argv[2]);
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    const char *target = getenv("RANKS_TARGET");
    pid_t pids[256];
    int gate[2];
    if (ranks < 1 || ranks > 256 || pipe(gate) != 0)
        return 2;
    for (int r = 0; r < ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            char end;
            close(gate[1]);
            if (read(gate[0], &end, 1) != 0)
                _exit(1);
            close(gate[0]);
            _exit(rank_main(r, ranks, nodes, atol(argv[3]), (size_t)atol(argv[4]) / 4, id));
        }
    }
    if (target != NULL && write_target(target, pids, ranks) != 0) {
        perror("RANKS_TARGET");
        return 2;
    }
    close(gate[1]); /* they begin */
    close(gate[0]);
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
