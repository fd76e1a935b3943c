/*
 * Ranks as processes and in groups: several communicators, one thread with several ranks, splits,
 * dead and leaving peers, aborts, and nothing left behind.
 */
#include "ranks.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/dev/shm/attune-test-fabric-XXXXXX";

#define COUNT 100000

static int files(void)
{
    int count = 0;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(directory);
    return count;
}

static int sum_of_ranks(rank_t *rank, ncclComm_t comm, int ranks)
{
    static _Thread_local int32_t data[COUNT];
    int32_t own = 0;
    int failed = ncclCommUserRank(comm, &own) != ncclSuccess;
    for (int i = 0; i < COUNT; i++)
        data[i] = own + i;
    failed += ncclAllReduce(data, data, COUNT, ncclInt32, ncclSum, comm, NULL) != ncclSuccess;
    for (int i = 0; i < COUNT && !failed; i++)
        failed += data[i] != ranks * (ranks - 1) / 2 + ranks * i;
    return failed;
}

static void plain(rank_t *rank)
{
    for (int k = 0; k < 5; k++)
        rank->failed += sum_of_ranks(rank, rank->comm, rank->count);
    rank->failed += files() != 0; /* unlinked once all are attached */
}

static void test_processes(void **state)
{
    for (int ranks = 1; ranks <= 8; ranks *= 2)
        assert_int_equal(run_processes(ranks, plain, NULL), 0);
    assert_int_equal(files(), 0);
}

static void test_eight_threads(void **state)
{
    assert_int_equal(run_threads(8, plain, NULL), 0);
}

/* Colours 0, 1 and none; the last rank comes first by its key. */
static void split(rank_t *rank)
{
    ncclComm_t half = NULL;
    int color = rank->rank == 4 ? NCCL_SPLIT_NOCOLOR : rank->rank % 2, own = -1, count = 0;
    rank->failed += ncclCommSplit(rank->comm, color, -rank->rank, &half, NULL) != ncclSuccess;
    if (rank->rank == 4) {
        rank->failed += half != NULL;
        return;
    }
    rank->failed += ncclCommUserRank(half, &own) != ncclSuccess || own != 1 - rank->rank / 2;
    rank->failed += ncclCommCount(half, &count) != ncclSuccess || count != 2;
    for (int k = 0; k < 3; k++) {
        rank->failed += sum_of_ranks(rank, half, 2);
    }
    rank->failed += ncclCommDestroy(half) != ncclSuccess;
}

static void test_split(void **state)
{
    assert_int_equal(run_processes(5, split, NULL), 0);
    assert_int_equal(run_threads(5, split, NULL), 0);
    assert_int_equal(files(), 0);
}

/* One thread, four ranks, two communicators, several operations in one group. */
static void test_one_thread_many_ranks(void **state)
{
    enum { RANKS = 4, SIZE = 5000 };
    ncclComm_t first[RANKS], second[RANKS];
    static int32_t data[3][RANKS][SIZE * RANKS];
    assert_int_equal(ncclCommInitAll(first, RANKS, NULL), ncclSuccess);
    assert_int_equal(ncclCommInitAll(second, RANKS, NULL), ncclSuccess);
    unsigned char uuid[16];
    int device[RANKS], units = 0;
    for (int r = 0; r < RANKS; r++) {
        int other = -1;
        ncclCommCuDevice(first[r], &device[r]);
        ncclCommCuDevice(second[r], &other);
        assert_int_equal(device[r], other); /* the same rank, the same device */
        for (int q = 0; q < r; q++)
            assert_int_not_equal(device[r], device[q]);
    }
    assert_int_equal(ncclFabricDeviceInfo(uuid, &units), 0);
    assert_int_equal(units, 32);
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 3; k++)
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < SIZE * RANKS; i++)
                    data[k][r][i] = r + i + k;
        assert_int_equal(ncclGroupStart(), ncclSuccess);
        for (int r = 0; r < RANKS; r++) {
            ncclAllReduce(data[0][r], data[0][r], SIZE, ncclInt32, ncclSum, first[r], NULL);
            ncclAllGather(data[1][r] + r * SIZE, data[1][r], SIZE, ncclInt32, second[r], NULL);
            ncclAllReduce(data[2][r], data[2][r], SIZE, ncclInt32, ncclMax, first[r], NULL);
        }
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        for (int r = 0; r < RANKS; r++) {
            for (int i = 0; i < SIZE; i++) {
                assert_int_equal(data[0][r][i], RANKS * (RANKS - 1) / 2 + RANKS * i);
                assert_int_equal(data[2][r][i], RANKS - 1 + i + 2);
            }
            for (int i = 0; i < SIZE * RANKS; i++)
                assert_int_equal(data[1][r][i], i / SIZE + i + 1);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ncclCommFinalize(first[r]), ncclSuccess);
        assert_int_equal(ncclCommDestroy(first[r]), ncclSuccess);
        assert_int_equal(ncclCommDestroy(second[r]), ncclSuccess);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rank 1 dies in the middle; the others must learn it and not wait for ever. */
static void one_dies(rank_t *rank)
{
    rank->failed += sum_of_ranks(rank, rank->comm, rank->count);
    if (rank->rank == 1)
        kill(getpid(), SIGKILL);
    int32_t x = 1;
    ncclResult_t result = ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, rank->comm, NULL);
    rank->failed += result != ncclRemoteError;
    rank->failed +=
        ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, rank->comm, NULL) != ncclRemoteError;
}

static void test_dead_peer(void **state)
{
    double start = now();
    assert_int_equal(run_processes(3, one_dies, NULL), 1); /* the killed one */
    assert_true(now() - start < 60); /* and not the 120 s of a rank that never comes */
    assert_int_equal(files(), 0);
}

/* All die before the communicator is complete: the next one sweeps up. */
static void test_leftover_is_swept(void **state)
{
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    pid_t child = fork();
    if (child == 0) {
        ncclComm_t comm;
        alarm(1); /* kills while it waits for the other rank */
        ncclCommInitRank(&comm, 2, id, 0);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files(), 1);
    assert_int_equal(run_processes(2, plain, NULL), 0);
    assert_int_equal(files(), 0);
}

/* A rank that leaves early is missed in the next call, not in the last. */
static void one_leaves(rank_t *rank)
{
    rank->failed += sum_of_ranks(rank, rank->comm, rank->count);
    if (rank->rank == 0) {
        rank->failed += ncclCommDestroy(rank->comm) != ncclSuccess;
        rank->comm = NULL;
        return;
    }
    int32_t x = 1;
    rank->failed +=
        ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, rank->comm, NULL) != ncclRemoteError;
}

static void test_leaving_peer(void **state)
{
    assert_int_equal(run_threads(3, one_leaves, NULL), 0);
    assert_int_equal(run_processes(3, one_leaves, NULL), 0);
}

static void *abort_later(void *argument)
{
    struct timespec pause = {0, 100000000};
    nanosleep(&pause, NULL);
    ncclCommAbort(argument);
    return NULL;
}

/* A watchdog aborts a call that can never end: rank 1 never calls, until rank 0 is through. */
static void aborted(rank_t *rank)
{
    const int *ends = rank->argument;
    char byte = 0;
    if (rank->rank == 1) {
        rank->failed += read(ends[0], &byte, 1) != 1;
        return;
    }
    pthread_t watchdog;
    pthread_create(&watchdog, NULL, abort_later, rank->comm);
    int32_t x = 1;
    rank->failed +=
        ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, rank->comm, NULL) != ncclInternalError;
    pthread_join(watchdog, NULL);
    rank->comm = NULL;
    rank->failed += write(ends[1], &byte, 1) != 1;
}

static void test_abort(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(run_threads(2, aborted, ends), 0);
    assert_int_equal(run_processes(2, aborted, ends), 0);
    close(ends[0]);
    close(ends[1]);
}

static void *twice_main(void *argument)
{
    ncclComm_t comm;
    ncclUniqueId id = *(ncclUniqueId *)argument;
    return (void *)(intptr_t)ncclCommInitRank(&comm, 2, id, 0);
}

static void test_rank_twice(void **state)
{
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    pthread_t threads[2];
    void *result[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, twice_main, &id);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &result[i]);
    assert_true((intptr_t)result[0] == ncclInvalidUsage || (intptr_t)result[1] == ncclInvalidUsage);
    assert_int_not_equal((intptr_t)result[0], ncclSuccess);
    assert_int_not_equal((intptr_t)result[1], ncclSuccess);
    memset(&id, 0, sizeof id);
    assert_int_equal((intptr_t)twice_main(&id), ncclInvalidArgument);
    assert_int_equal(files(), 0);
}

static void test_no_directory(void **state)
{
    setenv("ATTUNE_FABRIC_SHM_DIR", "/nonexistent/folder", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSystemError);
    assert_non_null(strstr(ncclGetLastError(NULL), "/nonexistent/folder"));
    setenv("ATTUNE_FABRIC_SHM_DIR", folder, 1);
}

static int clean_up(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "none", 1);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    if (!mkdtemp(folder))
        return 1;
    setenv("ATTUNE_FABRIC_SHM_DIR", folder, 1);
    /* Those that fork first: they must not find other threads running. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leftover_is_swept), cmocka_unit_test(test_processes),
        cmocka_unit_test(test_dead_peer),         cmocka_unit_test(test_split),
        cmocka_unit_test(test_leaving_peer),      cmocka_unit_test(test_abort),
        cmocka_unit_test(test_eight_threads),     cmocka_unit_test(test_one_thread_many_ranks),
        cmocka_unit_test(test_rank_twice),        cmocka_unit_test(test_no_directory),
    };
    return cmocka_run_group_tests_name("fabric_processes", tests, NULL, clean_up);
}
