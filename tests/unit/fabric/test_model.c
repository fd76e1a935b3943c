/*
 * Model mode: the clock follows the surface, noise is the same on all ranks and under the same
 * seed, the promised part of the data moves and no more, shared buffers are understood.
 */
#include "ranks.h"

#include "attune/setting.h"
#include "surface/surface.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PART  16384 /* elements of 4 bytes in 64 KiB */
#define BLOCK 50000
#define RANKS 4

static char file[] = "/tmp/attune-model-XXXXXX";
static struct att_surface *surface;

static const char pair_text[] =
    "{\"algorithm\":\"ring\",\"protocol\":\"simple\","
    "\"cost\":{\"latency_us\":20,\"bandwidth_gbs\":8},\"chunk\":{\"grain\":512,\"max\":2097152},"
    "\"native\":{\"transport\":\"p2p\",\"channels\":4,\"threads\":512,\"chunk_bytes\":524288},"
    "\"transports\":[{\"transport\":\"p2p\",\"hop_us\":2,\"channel_gbs\":5,\"overlap\":0.5,"
    "\"tail\":0.5,\"phase0\":{\"startup_us\":1,\"bandwidth_gbs\":10,\"congestion_bytes\":1e6,"
    "\"power\":1},\"phase1\":{\"startup_us\":0.001,\"bandwidth_gbs\":20,\"congestion_threads\":1e4,"
    "\"power\":1}}]}";

/* A surface with all five collectives. */
static int write_surface(void **state)
{
    static const char *const words[] = {"broadcast", "reduce", "allgather", "reducescatter",
                                        "allreduce"};
    int fd = mkstemp(file);
    FILE *out = fdopen(fd, "w");
    fprintf(out, "{\"version\":1,\"units\":{\"time\":\"microseconds\",\"bandwidth\":\"GB/s\","
                 "\"size\":\"bytes\"},\"source\":\"made up\",\"name\":\"five\",\"description\":"
                 "\"five collectives\",\"machine\":{\"ranks\":4,\"nodes\":2,\"device\":\"none\","
                 "\"device_units\":20,\"channels_ceiling\":8,\"launch_us\":4},\"noise\":0.0,"
                 "\"tasks\":[");
    for (int i = 0; i < 5; i++)
        fprintf(out, "%s{\"collective\":\"%s\",\"bytes\":1048576}", i ? "," : "", words[i]);
    fprintf(out,
            "],\"loads\":[{\"name\":\"none\",\"transport_startup\":1,\"transport_bandwidth\":1,"
            "\"transport_congestion\":1,\"protocol_startup\":1,\"protocol_bandwidth\":1,"
            "\"protocol_congestion\":1}],\"collectives\":[");
    for (int i = 0; i < 5; i++)
        fprintf(out, "%s{\"collective\":\"%s\",\"pairs\":[%s]}", i ? "," : "", words[i], pair_text);
    fprintf(out, "],\"undetermined\":[{\"constants\":\"all\",\"reason\":\"made up\"}]}\n");
    fclose(out);
    setenv("ATTUNE_FABRIC_SURFACE", file, 1);
    att_error_t error;
    if (att_surface_open(file, &surface, &error) != ATT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return 0;
}

static int clean_up(void **state)
{
    att_surface_close(surface);
    return unlink(file);
}

static double surface_us(int collective, size_t bytes)
{
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.algorithm = ATT_ALGORITHM_RING;
    setting.protocol = ATT_PROTOCOL_SIMPLE;
    return att_surface_duration_us(surface, collective, bytes, setting, 0);
}

static uint64_t stops[RANKS][3];

static void clock_body(rank_t *rank)
{
    static float data[RANKS][262144];
    float *own = data[rank->rank];
    uint64_t start = ncclFabricNow(rank->comm);
    if (rank->rank == 2)
        ncclFabricAdvance(rank->comm, 1000); /* the last to arrive */
    for (int k = 0; k < 3; k++) {
        rank->failed +=
            ncclAllReduce(own, own, 262144, ncclFloat32, ncclMax, rank->comm, NULL) != ncclSuccess;
        stops[rank->rank][k] = ncclFabricNow(rank->comm) - start;
    }
}

static void test_clock_follows_the_surface(void **state)
{
    assert_int_equal(run_threads(RANKS, clock_body, NULL), 0);
    double us = surface_us(ATT_COLLECTIVE_ALL_REDUCE, 1048576);
    assert_true(us > 100);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 3; k++) {
            double wanted = 1000 + (k + 1) * us;
            assert_true(fabs((double)stops[r][k] / 1000 - wanted) < 0.01);
        }
}

/* Virtual times of three calls on each rank, of processes. */
static void noise_body(rank_t *rank)
{
    uint64_t(*times)[3] = rank->argument;
    float data[1024] = {0};
    for (int k = 0; k < 3; k++) {
        uint64_t start = ncclFabricNow(rank->comm);
        ncclAllReduce(data, data, 1024, ncclFloat32, ncclMax, rank->comm, NULL);
        times[rank->rank][k] = ncclFabricNow(rank->comm) - start;
    }
}

static void test_noise(void **state)
{
    size_t size = 3 * RANKS * 3 * sizeof(uint64_t);
    uint64_t(*times)[RANKS][3] =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setenv("ATTUNE_FABRIC_NOISE", "0.05", 1);
    for (int run = 0; run < 3; run++) { /* the third under another seed */
        setenv("ATTUNE_FABRIC_SEED", run < 2 ? "7" : "8", 1);
        assert_int_equal(run_processes(RANKS, noise_body, times[run]), 0);
    }
    unsetenv("ATTUNE_FABRIC_NOISE");
    unsetenv("ATTUNE_FABRIC_SEED");
    double us = surface_us(ATT_COLLECTIVE_ALL_REDUCE, 4096);
    for (int k = 0; k < 3; k++) {
        for (int r = 0; r < RANKS; r++)
            assert_true(times[0][r][k] == times[0][0][k]);
        assert_true(times[0][0][k] == times[1][0][k]);
        assert_true(times[0][0][k] != times[2][0][k]);
        assert_true(fabs((double)times[0][0][k] / 1000 - us) < 0.5 * us);
    }
    assert_true(times[0][0][0] != times[0][0][1]);
    munmap(times, size);
}

static int32_t value_of(int rank, int index)
{
    return (int32_t)((rank + 1) * 1000 + index % 997);
}

static int expect(const rank_t *rank, const char *what, const int32_t *got, int source, int offset,
                  int from, int to)
{
    for (int i = from; i < to; i++) {
        int32_t wanted = 0;
        for (int r = 0; source < 0 && r < rank->count; r++)
            wanted += value_of(r, offset + i);
        if (source >= 0)
            wanted = value_of(source, offset + i);
        if (got[i] != wanted) {
            fprintf(stderr, "%s: rank %d, element %d: %d, not %d\n", what, rank->rank, i, got[i],
                    wanted);
            return 1;
        }
    }
    return 0;
}

static int untouched(const rank_t *rank, const int32_t *got, int from, int to)
{
    for (int i = from; i < to; i++)
        if (got[i] != -1) {
            fprintf(stderr, "rank %d: element %d was moved\n", rank->rank, i);
            return 1;
        }
    return 0;
}

/* All five collectives; `call` counts on. Only multiples of 50 move everything. */
static void data_body(rank_t *rank)
{
    enum { TOTAL = BLOCK * RANKS };
    int32_t *send = malloc(TOTAL * sizeof *send), *receive = malloc(TOTAL * sizeof *receive);
    for (int i = 0; i < TOTAL; i++)
        send[i] = value_of(rank->rank, i);
    for (int call = 0; call < 53 && !rank->failed; call++) {
        int moved = call % 50 ? PART : BLOCK, failed = 0, function = (call + 4) % 5;
        memset(receive, 0xff, TOTAL * sizeof *receive);
        switch (function) {
        case ATT_COLLECTIVE_ALL_REDUCE:
            failed += ncclAllReduce(send, receive, BLOCK, ncclInt32, ncclSum, rank->comm, NULL);
            failed += expect(rank, "AllReduce", receive, -1, 0, 0, moved);
            failed += untouched(rank, receive, moved, BLOCK);
            break;
        case ATT_COLLECTIVE_ALL_GATHER:
            failed += ncclAllGather(send, receive, BLOCK, ncclInt32, rank->comm, NULL);
            for (int r = 0; r < rank->count; r++) {
                failed += expect(rank, "AllGather", receive + r * BLOCK, r, 0, 0, moved);
                failed += untouched(rank, receive + r * BLOCK, moved, BLOCK);
            }
            break;
        case ATT_COLLECTIVE_REDUCE_SCATTER:
            failed += ncclReduceScatter(send, receive, BLOCK, ncclInt32, ncclSum, rank->comm, NULL);
            failed += expect(rank, "ReduceScatter", receive, -1, rank->rank * BLOCK, 0, moved);
            break;
        case ATT_COLLECTIVE_BROADCAST:
            failed += ncclBroadcast(send, receive, BLOCK, ncclInt32, 1, rank->comm, NULL);
            failed += expect(rank, "Broadcast", receive, 1, 0, 0, moved);
            break;
        default:
            failed += ncclReduce(send, receive, BLOCK, ncclInt32, ncclSum, 2, rank->comm, NULL);
            if (rank->rank == 2)
                failed += expect(rank, "Reduce", receive, -1, 0, 0, moved);
            else
                failed += untouched(rank, receive, 0, BLOCK);
        }
        rank->failed += failed;
    }
    free(send);
    free(receive);
}

static void test_data(void **state)
{
    assert_int_equal(run_threads(RANKS, data_body, NULL), 0);
}

static void test_data_of_processes(void **state)
{
    assert_int_equal(run_processes(RANKS, data_body, NULL), 0);
}

/* The first call of a communicator moves everything: each collective, in place and not. */
static void whole_body(rank_t *rank)
{
    enum { TOTAL = BLOCK * RANKS };
    int function = ((int *)rank->argument)[0], in_place = ((int *)rank->argument)[1];
    int32_t *send = malloc(TOTAL * sizeof *send), *receive = malloc(TOTAL * sizeof *receive);
    for (int i = 0; i < TOTAL; i++)
        send[i] = value_of(rank->rank, i);
    int32_t *own = send + rank->rank * BLOCK, *result = in_place ? send : receive;
    ncclComm_t comm = rank->comm;
    switch (function) {
    case ATT_COLLECTIVE_ALL_REDUCE:
        rank->failed += ncclAllReduce(send, result, BLOCK, ncclInt32, ncclSum, comm, NULL) != 0;
        rank->failed += expect(rank, "AllReduce", result, -1, 0, 0, BLOCK);
        break;
    case ATT_COLLECTIVE_ALL_GATHER:
        rank->failed += ncclAllGather(own, result, BLOCK, ncclInt32, comm, NULL) != 0;
        for (int r = 0; r < rank->count; r++)
            rank->failed += expect(rank, "AllGather", result + r * BLOCK, r, r * BLOCK, 0, BLOCK);
        break;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        result = in_place ? own : receive;
        rank->failed += ncclReduceScatter(send, result, BLOCK, ncclInt32, ncclSum, comm, NULL) != 0;
        rank->failed += expect(rank, "ReduceScatter", result, -1, rank->rank * BLOCK, 0, BLOCK);
        break;
    case ATT_COLLECTIVE_BROADCAST:
        rank->failed += ncclBroadcast(send, result, BLOCK, ncclInt32, 3, comm, NULL) != 0;
        rank->failed += expect(rank, "Broadcast", result, 3, 0, 0, BLOCK);
        break;
    default:
        rank->failed += ncclReduce(send, result, BLOCK, ncclInt32, ncclSum, 1, comm, NULL) != 0;
        if (rank->rank == 1)
            rank->failed += expect(rank, "Reduce", result, -1, 0, 0, BLOCK);
    }
    free(send);
    free(receive);
}

static void test_whole(void **state)
{
    for (int function = 0; function < ATT_COLLECTIVE_COUNT; function++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            int argument[2] = {function, in_place};
            assert_int_equal(run_threads(RANKS, whole_body, argument), 0);
        }
    }
}

static void test_whole_of_processes(void **state)
{
    for (int function = 0; function < ATT_COLLECTIVE_COUNT; function++) {
        int argument[2] = {function, 1};
        assert_int_equal(run_processes(RANKS, whole_body, argument), 0);
    }
}

/* All ranks of the process gather into one buffer, each from its own part of it or from elsewhere.
 */
static void shared_body(rank_t *rank)
{
    static int32_t all[BLOCK * RANKS], blocks[RANKS][BLOCK];
    int32_t *own = rank->argument ? all + rank->rank * BLOCK : blocks[rank->rank];
    for (int i = 0; i < BLOCK; i++)
        own[i] = value_of(rank->rank, i);
    for (int call = 0; call < 3; call++) {
        rank->failed += ncclAllGather(own, all, BLOCK, ncclInt32, rank->comm, NULL) != ncclSuccess;
        for (int r = 0; r < rank->count; r++)
            rank->failed += expect(rank, "shared", all + r * BLOCK, r, 0, 0, BLOCK);
        int32_t x = 0; /* nobody writes again before all have looked */
        rank->failed +=
            ncclAllReduce(&x, &x, 1, ncclInt32, ncclMax, rank->comm, NULL) != ncclSuccess;
    }
}

static void test_shared_buffers(void **state)
{
    int in_place = 1;
    assert_int_equal(run_threads(RANKS, shared_body, NULL), 0);
    assert_int_equal(run_threads(RANKS, shared_body, &in_place), 0);
}

/* One thread drives all ranks; a lone rank could not get through a barrier. */
static void test_one_thread(void **state)
{
    ncclComm_t comms[RANKS];
    static int32_t data[RANKS][BLOCK];
    assert_int_equal(ncclCommInitAll(comms, RANKS, NULL), ncclSuccess);
    unsigned char uuid[16];
    int units = 0;
    assert_int_equal(ncclFabricDeviceInfo(uuid, &units), 0);
    assert_int_equal(units, 20);
    for (int call = 0; call < 4; call++) {
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++) {
            data[r][0] = r + call;
            ncclAllReduce(data[r], data[r], BLOCK, ncclInt32, ncclSum, comms[r], NULL);
        }
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(data[r][0], 6 + 4 * call);
    }
    uint64_t now = ncclFabricNow(comms[0]);
    for (int r = 0; r < RANKS; r++) {
        assert_true(ncclFabricNow(comms[r]) == now);
        ncclCommDestroy(comms[r]);
    }
}

static void mismatch_body(rank_t *rank)
{
    float *data = calloc(262144, sizeof *data);
    ncclResult_t first = ncclAllReduce(data, data, 262144, ncclFloat32, ncclMax, rank->comm, NULL);
    ncclResult_t second = ncclAllReduce(data, data, 262144, ncclFloat32, ncclMax, rank->comm, NULL);
    rank->failed += first != ncclSuccess || second != ncclInternalError;
    free(data);
}

static void test_mismatch(void **state)
{
    setenv("ATTUNE_FABRIC_INJECT_MISMATCH", "3:1", 1);
    assert_int_equal(run_threads(RANKS, mismatch_body, NULL), 0);
    assert_non_null(strstr(ncclGetLastError(NULL), "mismatch at call 1"));
    unsetenv("ATTUNE_FABRIC_INJECT_MISMATCH");
}

static void nothing(rank_t *rank)
{
}

static void test_other_ranks_are_refused(void **state)
{
    assert_int_equal(run_threads(3, nothing, NULL), 3);
    assert_non_null(strstr(ncclGetLastError(NULL), "is for 4 ranks"));
}

int main(void)
{
    setenv("ATTUNE_FABRIC_MODE", "model", 1);
    setenv("NCCL_TUNER_PLUGIN", "none", 1);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_whole_of_processes),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_data_of_processes),
        cmocka_unit_test(test_clock_follows_the_surface),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_shared_buffers),
        cmocka_unit_test(test_one_thread),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_other_ranks_are_refused),
    };
    return cmocka_run_group_tests_name("fabric_model", tests, write_surface, clean_up);
}
