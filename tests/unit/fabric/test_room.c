/* Shared memory that runs out in the middle of a call, at each of its reservations in turn: the
 * call ends on every rank, whatever its other channels and the other ranks are waiting for. */
#include "forced_tuner.h"
#include "ranks.h"

#include "attune/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3
#define COUNT 65536u
#define LIMIT 60 /* seconds; SIGALRM ends a test that hangs */

static atomic_int left = INT_MAX; /* reservations that still find room */
static atomic_int refused;        /* ranks whose call failed */
static pthread_barrier_t together;

/* In place of the C library's, also for the fabric. */
__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    (void)fd, (void)offset, (void)bytes;
    return atomic_fetch_sub(&left, 1) > 0 ? 0 : ENOSPC;
}

static void call_once(rank_t *rank)
{
    int room = *(const int *)rank->argument;
    float *data = calloc(COUNT, sizeof *data);
    pthread_barrier_wait(&together);
    if (rank->rank == 0)
        atomic_store(&left, room);
    pthread_barrier_wait(&together);
    ncclResult_t result = ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, rank->comm, NULL);
    pthread_barrier_wait(&together);
    int used = room - atomic_load(&left);
    if (result != ncclSuccess)
        atomic_fetch_add(&refused, 1);
    pthread_barrier_wait(&together);
    /* One that was through before another found no room is not to blame. */
    rank->failed += (atomic_load(&refused) == 0) != (used <= room);
    pthread_barrier_wait(&together);
    atomic_store(&refused, 0);
    atomic_store(&left, INT_MAX);
    ncclCommAbort(rank->comm);
    rank->comm = NULL;
    free(data);
    if (rank->rank == 0)
        *(int *)rank->argument = used;
}

static void out_of_room(int algorithm)
{
    forced = (forced_t){.algorithm = algorithm, .protocol = ATT_PROTOCOL_SIMPLE, .channels = 4};
    int needed = INT_MAX;
    alarm(LIMIT);
    assert_int_equal(run_threads(RANKS, call_once, &needed), 0);
    assert_in_range(needed, 2, 1000);
    for (int room = 0; room < needed; room++) {
        int given = room;
        assert_int_equal(run_threads(RANKS, call_once, &given), 0);
    }
    alarm(0);
}

static void test_ring(void **state)
{
    (void)state;
    out_of_room(ATT_ALGORITHM_RING);
}

static void test_tree(void **state)
{
    (void)state;
    out_of_room(ATT_ALGORITHM_TREE);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring), cmocka_unit_test(test_tree)};
    pthread_barrier_init(&together, NULL, RANKS);
    return cmocka_run_group_tests_name("fabric_room", tests, NULL, NULL);
}
