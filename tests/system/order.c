/*
 * order RANKS COUNT CALLS [bfloat16]: AllReduce sums of COUNT floats, or bfloat16, that depend on
 * the order of additions (magnitudes from 2^-12 to 2^12, both signs, and 1e8, 1, -1e8, 1 turning
 * over the ranks), CALLS times the same. Prints how many different results there were, compared bit
 * by bit over all ranks, and a digest of the first:
 *
 *     calls 4000 different 1 first 0x1c6e...
 *
 * Exit status 0 when every call succeeded and all ranks had the same bits.
 */
#include "fabric/nccl_abi.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_DIFFERENT 64

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static float value_of(size_t i, int rank, uint64_t *state)
{
    static const float cancelling[] = {1e8f, 1, -1e8f, 1};
    float mantissa = 1 + (float)(next(state) % 8388608) / 8388608;
    float value = ldexpf(mantissa, (int)(next(state) % 25) - 12);
    value = next(state) % 2 ? value : -value;
    return i % 4 == 0 ? cancelling[(i / 4 + (size_t)rank) % 4] : value;
}

static void fill(unsigned char *values, size_t count, size_t width, int rank)
{
    uint64_t state = (uint64_t)rank + 1;
    for (size_t i = 0; i < count; i++) {
        float value = value_of(i, rank, &state);
        unsigned char bytes[sizeof value];
        memcpy(bytes, &value, sizeof value);
        /* the upper half of a little-endian float is a bfloat16 */
        memcpy(values + i * width, bytes + sizeof value - width, width);
    }
}

/* FNV-1a over the bits. */
static uint64_t digest_of(const unsigned char *bytes, size_t size)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3u;
    return digest;
}

static int rank_main(int ranks, int rank, size_t count, long calls, ncclDataType_t type,
                     ncclUniqueId id, uint64_t *digests)
{
    ncclComm_t comm;
    const size_t width = type == ncclFloat32 ? 4 : 2;
    unsigned char *send = malloc(count * width), *receive = malloc(count * width);
    if (send == NULL || receive == NULL || ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        return 1;
    fill(send, count, width, rank);
    for (long i = 0; i < calls; i++) {
        if (ncclAllReduce(send, receive, count, type, ncclSum, comm, NULL) != ncclSuccess)
            return 1;
        digests[i] = digest_of(receive, count * width);
    }
    ncclCommDestroy(comm);
    free(send);
    free(receive);
    return 0;
}

static int print(int ranks, long calls, const uint64_t *digests)
{
    uint64_t seen[MOST_DIFFERENT];
    int different = 0;
    for (long i = 0; i < calls; i++) {
        for (int r = 1; r < ranks; r++)
            if (digests[r * calls + i] != digests[i]) {
                fprintf(stderr, "call %ld: ranks 0 and %d have different bits\n", i, r);
                return 1;
            }
        int at = 0;
        while (at < different && seen[at] != digests[i])
            at++;
        if (at == different && different < MOST_DIFFERENT)
            seen[different++] = digests[i];
    }
    printf("calls %ld different %d first 0x%016" PRIx64 "\n", calls, different, digests[0]);
    return 0;
}

int main(int argc, char **argv)
{
    int half = argc == 5 && strcmp(argv[4], "bfloat16") == 0, good = argc == 4 || half;
    int ranks = good ? atoi(argv[1]) : 0;
    long count = good ? atol(argv[2]) : 0, calls = good ? atol(argv[3]) : 0;
    if (ranks < 3 || count < 1 || calls < 1) {
        fprintf(stderr,
                "usage: order RANKS COUNT CALLS [bfloat16] (from 3 ranks on order can matter)\n");
        return 2;
    }
    uint64_t *digests = mmap(NULL, (size_t)ranks * (size_t)calls * sizeof *digests,
                             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ncclUniqueId id;
    if (digests == MAP_FAILED || ncclGetUniqueId(&id) != ncclSuccess)
        return 1;
    for (int r = 0; r < ranks; r++)
        if (fork() == 0)
            _exit(rank_main(ranks, r, (size_t)count, calls, half ? ncclBfloat16 : ncclFloat32, id,
                            digests + (size_t)r * (size_t)calls));
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed || print(ranks, calls, digests);
}
