/*
 * opposed RANKS BYTES CALLS US [BUCKETS [LAST]]: AllGather of BYTES a rank on the modelled fabric,
 * with 1 ms of computation after each call, 1.5 ms when the call took less than US microseconds:
 * what makes the collective faster slows the step, as when its channels take the compute's
 * multiprocessors. With BUCKETS so many calls follow each other at once, and then comes the
 * computation for all of them; the last one has LAST bytes. Exit status 0 when every call
 * succeeded.
 */
#include "fabric/nccl_abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank_main(int ranks, int rank, size_t bytes, long calls, double fast_us, long buckets,
                     size_t last, ncclUniqueId id)
{
    double compute_us = 0;
    ncclComm_t comm;
    size_t most = bytes > last ? bytes : last;
    char *send = calloc(1, most), *receive = calloc((size_t)ranks, most);
    if (send == NULL || receive == NULL || ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        return 1;
    for (long i = 0; i < calls; i++) {
        bool ends = (i + 1) % buckets == 0;
        uint64_t before_ns = ncclFabricNow(comm);
        if (ncclAllGather(send, receive, ends ? last : bytes, ncclInt8, comm, NULL) != ncclSuccess)
            return 1;
        double us = (double)(ncclFabricNow(comm) - before_ns) / 1000;
        compute_us += us < fast_us ? 1500 : 1000;
        if (!ends)
            continue;
        ncclFabricAdvance(comm, compute_us);
        compute_us = 0;
    }
    ncclCommDestroy(comm);
    free(send);
    free(receive);
    return 0;
}

int main(int argc, char **argv)
{
    int enough = argc >= 5 && argc <= 7, ranks = enough ? atoi(argv[1]) : 0;
    long bytes = enough ? atol(argv[2]) : 0, calls = enough ? atol(argv[3]) : 0;
    long buckets = argc >= 6 ? atol(argv[5]) : 1, last = argc == 7 ? atol(argv[6]) : bytes;
    double fast_us = enough ? atof(argv[4]) : 0;
    ncclUniqueId id;
    if (ranks < 2 || bytes < 1 || calls < 1 || buckets < 1 || last < 1 || !(fast_us > 0)) {
        fprintf(stderr, "usage: opposed RANKS BYTES CALLS US [BUCKETS [LAST]]\n");
        return 2;
    }
    if (ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    for (int r = 0; r < ranks; r++)
        if (fork() == 0)
            _exit(rank_main(ranks, r, (size_t)bytes, calls, fast_us, buckets, (size_t)last, id));
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
