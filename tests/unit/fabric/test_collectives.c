/*
 * Every collective, algorithm, protocol, number of channels, chunk, number of ranks and odd size,
 * in place and out of place, against sums computed here.
 */
#include "forced_tuner.h"
#include "ranks.h"

#include "attune/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 70001u /* elements of a vector */

static const int32_t GUARD = 0x5ca1ab1e;

typedef struct buffers {
    int32_t *send, *receive;
} buffers_t;

static int32_t value_of(int rank, size_t index)
{
    return (int32_t)(((size_t)rank * 7919u + index * 31u) % 1000u);
}

static int32_t sum_of(int ranks, size_t index)
{
    int32_t sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += value_of(r, index);
    return sum;
}

static int wrong(const rank_t *rank, const char *what, size_t index, int32_t got, int32_t wanted)
{
    fprintf(stderr, "%s: rank %d of %d, element %zu: %d, not %d (a %d p %d nc %d chunk %zu)\n",
            what, rank->rank, rank->count, index, got, wanted, forced.algorithm, forced.protocol,
            forced.channels, forced.chunk);
    return 1;
}

/* Checks [0, count) of `data` against base(index), and the guard behind it. */
static int check(const rank_t *rank, const char *what, const int32_t *data, size_t count,
                 size_t offset, int source)
{
    for (size_t i = 0; i < count; i++) {
        int32_t wanted =
            source < 0 ? sum_of(rank->count, offset + i) : value_of(source, offset + i);
        if (data[i] != wanted)
            return wrong(rank, what, i, data[i], wanted);
    }
    return 0;
}

static void fill(const rank_t *rank, int32_t *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = value_of(rank->rank, i);
}

static int all_reduce(rank_t *rank, buffers_t b, size_t count, int in_place)
{
    int32_t *receive = in_place ? b.send : b.receive;
    fill(rank, b.send, count);
    receive[count] = GUARD;
    ncclResult_t result =
        ncclAllReduce(b.send, receive, count, ncclInt32, ncclSum, rank->comm, NULL);
    int failed = result != ncclSuccess || receive[count] != GUARD;
    return failed + check(rank, "AllReduce", receive, count, 0, -1);
}

static int all_gather(rank_t *rank, buffers_t b, size_t count, int in_place)
{
    size_t each = count / (size_t)rank->count;
    int32_t *own = in_place ? b.receive + (size_t)rank->rank * each : b.send;
    fill(rank, own, each);
    b.receive[each * (size_t)rank->count] = GUARD;
    ncclResult_t result = ncclAllGather(own, b.receive, each, ncclInt32, rank->comm, NULL);
    int failed = result != ncclSuccess || b.receive[each * (size_t)rank->count] != GUARD;
    for (int r = 0; r < rank->count; r++)
        failed += check(rank, "AllGather", b.receive + (size_t)r * each, each, 0, r);
    return failed;
}

static int reduce_scatter(rank_t *rank, buffers_t b, size_t count, int in_place)
{
    size_t each = count / (size_t)rank->count, offset = (size_t)rank->rank * each;
    int32_t *own = in_place ? b.send + offset : b.receive;
    fill(rank, b.send, each * (size_t)rank->count);
    if (!in_place)
        own[each] = GUARD;
    ncclResult_t result =
        ncclReduceScatter(b.send, own, each, ncclInt32, ncclSum, rank->comm, NULL);
    int failed = result != ncclSuccess || (!in_place && own[each] != GUARD);
    return failed + check(rank, "ReduceScatter", own, each, offset, -1);
}

static int broadcast(rank_t *rank, buffers_t b, size_t count, int in_place)
{
    int root = (int)(count % (size_t)rank->count), failed = 0;
    int32_t *receive = in_place ? b.send : b.receive;
    memset(b.receive, 0, count * sizeof *b.receive);
    fill(rank, b.send, count);
    receive[count] = GUARD;
    if (ncclBroadcast(b.send, receive, count, ncclInt32, root, rank->comm, NULL) != ncclSuccess ||
        receive[count] != GUARD)
        failed++;
    return failed + check(rank, "Broadcast", receive, count, 0, root);
}

static int reduce(rank_t *rank, buffers_t b, size_t count, int in_place)
{
    int root = (int)((count + 1) % (size_t)rank->count);
    int32_t *receive = in_place ? b.send : b.receive;
    fill(rank, b.send, count);
    receive[count] = GUARD;
    if (ncclReduce(b.send, rank->rank == root ? receive : NULL, count, ncclInt32, ncclSum, root,
                   rank->comm, NULL) != ncclSuccess ||
        receive[count] != GUARD)
        return 1;
    return rank->rank == root ? check(rank, "Reduce", receive, count, 0, -1) : 0;
}

static void run_sizes(rank_t *rank)
{
    static const size_t sizes[] = {1, 5, 63, 1024, MOST};
    buffers_t b = {malloc((MOST + 1) * sizeof(int32_t)), malloc((MOST + 1) * sizeof(int32_t))};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            rank->failed += all_reduce(rank, b, sizes[s], in_place);
            if (forced.algorithm == ATT_ALGORITHM_TREE)
                continue;
            rank->failed += all_gather(rank, b, sizes[s], in_place);
            rank->failed += reduce_scatter(rank, b, sizes[s], in_place);
            rank->failed += broadcast(rank, b, sizes[s], in_place);
            rank->failed += reduce(rank, b, sizes[s], in_place);
        }
        if (rank->failed)
            break;
    }
    free(b.send);
    free(b.receive);
}

static void run_pair(int algorithm, int protocol, size_t chunk)
{
    static const int channels[] = {1, 2, 3, 7};
    for (int ranks = 1; ranks <= 5; ranks++) {
        size_t c = (size_t)ranks % 4;
        forced = (forced_t){algorithm, protocol, channels[c], chunk};
        assert_int_equal(run_threads(ranks, run_sizes, NULL), 0);
    }
}

static void test_ring_simple(void **state)
{
    run_pair(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 4096);
    run_pair(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 0);
}

static void test_ring_ll(void **state)
{
    run_pair(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 0);
}

static void test_ring_ll128(void **state)
{
    run_pair(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL128, 3840);
}

static void test_tree(void **state)
{
    for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
        run_pair(ATT_ALGORITHM_TREE, p, 7680);
        run_pair(ATT_ALGORITHM_TREE, p, 0);
    }
}

/* Settings change from call to call on the same wires; in processes, each with its own `forced`. */
static void change_alike(rank_t *rank)
{
    buffers_t b = {malloc((MOST + 1) * sizeof(int32_t)), malloc((MOST + 1) * sizeof(int32_t))};
    for (int k = 0; k < 36 && !rank->failed; k++) {
        forced = (forced_t){k % 2, k % 3, 1 + k % 5, k % 4 ? (size_t)k * 1920 * 4 : 0};
        rank->failed += all_reduce(rank, b, 50001, k & 1);
        if (forced.algorithm == ATT_ALGORITHM_RING)
            rank->failed += all_gather(rank, b, 50001, k & 1);
    }
    free(b.send);
    free(b.receive);
}

static void test_changing(void **state)
{
    assert_int_equal(run_processes(4, change_alike, NULL), 0);
}

/* Types and operations. */
#define COUNT 1000
static void types_and_ops(rank_t *rank)
{
    float f[COUNT], max[COUNT];
    double d[COUNT];
    int8_t c[COUNT];
    _Float16 h[COUNT];
    uint16_t bf[COUNT];
    int64_t l[COUNT];
    uint8_t u[COUNT];
    for (int i = 0; i < COUNT; i++) {
        f[i] = (float)(rank->rank + i);
        d[i] = (rank->rank + 1) * 0.5;
        c[i] = (int8_t)(rank->rank - 2);
        h[i] = (_Float16)(float)(rank->rank + 1);
        bf[i] = (uint16_t)(rank->rank == 0 ? 0x3f80 : 0x4000); /* 1.0, 2.0 */
        l[i] = rank->rank == 1 ? -5000000000ll : i;
        u[i] = (uint8_t)(100 * (rank->rank + 1));
    }
    int n = rank->count, bad = 0;
    bad += ncclAllReduce(f, f, COUNT, ncclFloat32, ncclAvg, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(f, max, COUNT, ncclFloat32, ncclMax, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(d, d, COUNT, ncclFloat64, ncclProd, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(c, c, COUNT, ncclInt8, ncclMin, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(h, h, COUNT, ncclFloat16, ncclSum, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(bf, bf, COUNT, ncclBfloat16, ncclSum, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(l, l, COUNT, ncclInt64, ncclMin, rank->comm, NULL) != ncclSuccess;
    bad += ncclAllReduce(u, u, COUNT, ncclUint8, ncclAvg, rank->comm, NULL) != ncclSuccess;
    double product = 1;
    unsigned bytes = 0;
    for (int r = 0; r < n; r++) {
        product *= (r + 1) * 0.5;
        bytes += 100u * (unsigned)(r + 1);
    }
    for (int i = 0; i < COUNT; i++) {
        bad += f[i] != (float)i + (float)(n - 1) / 2 || max[i] != f[i];
        bad += d[i] != product || c[i] != -2 || (float)h[i] != (float)(n * (n + 1) / 2);
        bad += bf[i] != 0x40a0; /* 5.0 */
        bad += l[i] != -5000000000ll || u[i] != (uint8_t)((uint8_t)bytes / n);
    }
    rank->failed += bad;
}

static void test_types(void **state)
{
    for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
        for (int a = 0; a < 2; a++) {
            forced = (forced_t){a, p, 2, 0};
            assert_int_equal(run_threads(3, types_and_ops, NULL), 0);
        }
    }
}

static void bad_arguments(rank_t *rank)
{
    int32_t x = 1, y = 0;
    ncclComm_t comm = rank->comm;
    rank->failed +=
        ncclAllReduce(&x, NULL, 1, ncclInt32, ncclSum, comm, NULL) != ncclInvalidArgument;
    rank->failed +=
        ncclAllReduce(&x, &y, 1, (ncclDataType_t)99, ncclSum, comm, NULL) != ncclInvalidArgument;
    rank->failed +=
        ncclAllReduce(&x, &y, 1, ncclInt32, (ncclRedOp_t)7, comm, NULL) != ncclInvalidArgument;
    rank->failed += ncclBroadcast(&x, &y, 1, ncclInt32, 9, comm, NULL) != ncclInvalidArgument;
    rank->failed += ncclSend(&x, 1, ncclInt32, 0, comm, NULL) != ncclInvalidUsage;
    rank->failed += ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, comm, NULL) != ncclSuccess;
    rank->failed += ncclGroupEnd() != ncclInvalidUsage;
    /* and it still works */
    rank->failed += ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, comm, NULL) != ncclSuccess;
    rank->failed += y != rank->count;
}

static void test_bad_arguments(void **state)
{
    forced = (forced_t){.algorithm = -1};
    assert_int_equal(run_threads(2, bad_arguments, NULL), 0);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changing),      cmocka_unit_test(test_ring_simple),
        cmocka_unit_test(test_ring_ll),       cmocka_unit_test(test_ring_ll128),
        cmocka_unit_test(test_tree),          cmocka_unit_test(test_types),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests_name("fabric_collectives", tests, NULL, NULL);
}
