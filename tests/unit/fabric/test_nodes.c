/*
 * Nodes: ranks whose NCCL_HOSTID differ are on different nodes for tuner, profiler and model, also
 * in groups that hold a part of them. The plugins are part of this program.
 */
#include "fabric/host.h"
#include "fabric/nccl_abi.h"
#include "fabric/plugin_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 8

/* What the plugins of one rank were told, in memory that the ranks' processes share. */
typedef struct told {
    int tuner_ranks, tuner_nodes, fewest, most;
    int profiler_ranks, profiler_nodes;
} told_t;
static told_t *told; /* of each rank */
static int self;

static ncclResult_t tuner_init(void **context, uint64_t id, size_t ranks, size_t nodes,
                               ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                               ncclTunerConstants_t *constants)
{
    told[self].tuner_ranks = (int)ranks;
    told[self].tuner_nodes = (int)nodes;
    told[self].fewest = domains->minRanksPerNvlDomain;
    told[self].most = domains->maxRanksPerNvlDomain;
    return domains->nNvlDomains == (int)nodes ? ncclSuccess : ncclInternalError;
}

static ncclResult_t tuner_ask(void *context, int function, size_t bytes, int operations,
                              float **table, int algorithms, int protocols, int registered,
                              int *channels)
{
    return ncclSuccess;
}

static ncclResult_t tuner_end(void *context)
{
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    .name = "nodes", .init = tuner_init, .getCollInfo = tuner_ask, .finalize = tuner_end};

static ncclResult_t profiler_init(void **context, uint64_t id, int *mask, const char *name,
                                  int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
    told[self].profiler_ranks = ranks;
    told[self].profiler_nodes = nodes;
    return ncclInternalError; /* goes on without */
}

__attribute__((visibility("default")))
const ncclProfiler_v6_t ncclProfiler_v6 = {.name = "nodes", .init = profiler_init};

/* Rank r of `ranks` in a process of its own whose NCCL_HOSTID is hosts[r]; the number that failed.
 * `color` of a rank, when given, makes a second communicator, which the plugins then told about. */
static int run(const char *const *hosts, int ranks, const int *colors)
{
    ncclUniqueId id;
    int failed = ncclGetUniqueId(&id) != ncclSuccess;
    memset(told, 0, RANKS * sizeof *told);
    fflush(NULL);
    for (int r = 0; r < ranks; r++) {
        if (fork() != 0)
            continue;
        self = r;
        if (hosts[r] != NULL)
            setenv("NCCL_HOSTID", hosts[r], 1);
        ncclComm_t comm, part = NULL;
        int32_t one = 1, sum = 0;
        int wrong = ncclCommInitRank(&comm, ranks, id, r) != ncclSuccess;
        if (!wrong && colors != NULL)
            wrong = ncclCommSplit(comm, colors[r], r, &part, NULL) != ncclSuccess;
        if (!wrong)
            wrong = ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL) != ncclSuccess ||
                    sum != ranks;
        _exit(wrong);
    }
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    return failed;
}

static void expect(int rank, int ranks, int nodes, int fewest, int most)
{
    const told_t *t = &told[rank];
    assert_int_equal(t->tuner_ranks, ranks);
    assert_int_equal(t->profiler_ranks, ranks);
    assert_int_equal(t->tuner_nodes, nodes);
    assert_int_equal(t->profiler_nodes, nodes);
    assert_int_equal(t->fewest, fewest);
    assert_int_equal(t->most, most);
}

static void test_one_host(void **state)
{
    const char *const hosts[RANKS] = {NULL};
    assert_int_equal(run(hosts, 3, NULL), 0);
    for (int r = 0; r < 3; r++)
        expect(r, 3, 1, 3, 3);
}

static void test_host_ids(void **state)
{
    const char *const hosts[RANKS] = {"b", "a", "c", "a", "b", "a"};
    assert_int_equal(run(hosts, 6, NULL), 0);
    for (int r = 0; r < 6; r++)
        expect(r, 6, 3, 1, 3);
}

static void test_parts_of_a_job(void **state)
{
    const char *const hosts[RANKS] = {"a", "a", "b", "b"};
    const int inside[RANKS] = {0, 0, 1, 1}, across[RANKS] = {0, 1, 0, 1};
    assert_int_equal(run(hosts, 4, inside), 0);
    for (int r = 0; r < 4; r++)
        expect(r, 2, 1, 2, 2);
    assert_int_equal(run(hosts, 4, across), 0);
    for (int r = 0; r < 4; r++)
        expect(r, 2, 2, 1, 1);
}

/* A surface of one node for eight ranks. */
static void test_model(void **state)
{
    const char *const here[RANKS] = {NULL};
    const char *const hosts[RANKS] = {"a", "a", "a", "a", "b", "b", "b", "b"};
    setenv("ATTUNE_FABRIC_MODE", "model", 1);
    setenv("ATTUNE_FABRIC_SURFACE", "a40-pcie-8-allreduce", 1);
    assert_int_equal(run(here, RANKS, NULL), 0);
    expect(5, RANKS, 1, 8, 8);
    assert_int_equal(run(hosts, RANKS, NULL), RANKS); /* not the machine of the surface */
    setenv("ATTUNE_FABRIC_ANY_RANKS", "1", 1);
    assert_int_equal(run(hosts, RANKS, NULL), 0);
    expect(5, RANKS, 2, 4, 4);
    unsetenv("ATTUNE_FABRIC_ANY_RANKS");
    unsetenv("ATTUNE_FABRIC_MODE");
}

static void test_layout(void **state)
{
    uint64_t hashes[129];
    for (int r = 0; r < 129; r++)
        hashes[r] = (uint64_t)(r % 16 + 1); /* round robin */
    att_host_layout_t layout = att_host_layout(hashes, 129);
    assert_int_equal(layout.nodes, 16);
    assert_int_equal(layout.fewest, 8);
    assert_int_equal(layout.most, 9);
    layout = att_host_layout(hashes, 1);
    assert_int_equal(layout.nodes, 1);
    assert_int_equal(layout.fewest, 1);
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
    unsetenv("NCCL_HOSTID");
    told =
        mmap(NULL, RANKS * sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),       cmocka_unit_test(test_host_ids),
        cmocka_unit_test(test_parts_of_a_job), cmocka_unit_test(test_model),
        cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests_name("fabric_nodes", tests, NULL, NULL);
}
