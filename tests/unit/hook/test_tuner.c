/* The tuner half: what it writes into NCCL's table, channels and chunks, and when. */
#include "fake_nccl.h"
#include "isolated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define ALL_REDUCE ATT_COLLECTIVE_ALL_REDUCE
#define ALL_GATHER ATT_COLLECTIVE_ALL_GATHER

static att_setting_t setting(int algorithm, int protocol, int channels, uint32_t chunk)
{
    att_setting_t s = ATT_SETTING_KEEP;
    s.algorithm = (int8_t)algorithm;
    s.protocol = (int8_t)protocol;
    s.channels = (uint16_t)channels;
    s.chunk_bytes = chunk;
    return s;
}

ISOLATED(without_an_agent_it_changes_nothing)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    CHECK_EQUAL(fake_mask, ATT_EVENT_COLL_API);
    float table[ATT_PAIR_COUNT];
    for (int i = 0; i < 1000; i++) {
        int channels = 0;
        memcpy(table, comm.costs, sizeof table);
        CHECK_EQUAL(fake_ask(&comm, ALL_REDUCE, 1 << 20, table, 7, &channels), 0);
        CHECK_EQUAL(memcmp(table, comm.costs, sizeof table), 0);
        CHECK_EQUAL(channels, 0);
        size_t chunk = 12345;
        comm.plugin->tuner6->get_chunk_size(comm.tuner, ALL_REDUCE, 4096, 1, 2, 1, &chunk);
        CHECK_EQUAL(chunk, 12345);
    }
    att_record_t record;
    CHECK(!agent_record(&record));
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&agent_memory()->processes[0].decisions), 1000);
    CHECK_EQUAL(atomic_load(&agent_memory()->members[0].state), ATT_ENTRY_RETIRED);
}

ISOLATED(ranks_switch_at_the_same_call)
{
    fake_comm_t comms[4];
    for (int r = 0; r < 4; r++)
        fake_init(&comms[r], &fake_linked, 6, 0xabc, 4, r);
    for (int r = 0; r < 4; r++)
        fake_call(&comms[r], ALL_REDUCE, 4096, 100);
    agent_memory();
    uint32_t task = agent_task(ALL_REDUCE, 4096);
    CHECK_EQUAL(agent_memory()->tasks[task].legal_pairs, 0x3f);
    CHECK(agent_memory()->tasks[task].cost_us[5] == 40.0f);
    CHECK(agent_memory()->tasks[task].cost_us[6] == -1.0f);
    const att_setting_t list[] = {setting(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 4, 0),
                                  setting(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL128, 0, 0),
                                  setting(ATT_ALGORITHM_KEEP, ATT_PROTOCOL_KEEP, 3, 0)};
    agent_commit(task, 3, list, 3, 2);
    for (int r = 3; r >= 0; r--) {
        for (int call = 1; call < 9; call++) {
            fake_op_t op = fake_call(&comms[r], ALL_REDUCE, 4096, 100);
            int step = call < 3 ? 0 : call < 5 ? 1 : call < 7 ? 2 : 3;
            static const int expected[][3] = {{1, 2, 16}, {0, 0, 4}, {1, 1, 16}, {1, 2, 3}};
            CHECK_EQUAL(op.algorithm, expected[step][0]);
            CHECK_EQUAL(op.protocol, expected[step][1]);
            CHECK_EQUAL(op.channels, expected[step][2]);
        }
    }
    for (int r = 0; r < 4; r++)
        fake_destroy(&comms[r]);
}

/* Tables of seven and of six rows, guarded on both sides; only live cells may change. */
static void guarded_tables(int abi)
{
    fake_comm_t comm;
    setenv("ATTUNE_GRAPHS", "no", 1);
    fake_init(&comm, &fake_linked, abi, 0xabc, 2, 0);
    agent_memory();
    for (int rows = 6; rows <= 7; rows++) {
        float guarded[ATT_PAIR_COUNT + 16];
        float *table = guarded + 8;
        const size_t bytes = (size_t)rows << 12;
        for (int tune = 0; tune < 2; tune++) {
            for (int i = 0; i < ATT_PAIR_COUNT + 16; i++)
                guarded[i] = 7.0f; /* looks legal where it must not be read */
            for (int i = 0; i < rows * 3; i++)
                table[i] = i % 2 == 0 ? 5.0f : -1.0f;
            int channels = 0;
            CHECK_EQUAL(fake_ask(&comm, ALL_REDUCE, bytes, table, rows, &channels), 0);
            uint32_t task = agent_task(ALL_REDUCE, bytes);
            CHECK_EQUAL(agent_memory()->tasks[task].legal_pairs, rows == 7 ? 0x155555 : 0x15555);
            int written = 0;
            for (int i = -8; i < ATT_PAIR_COUNT + 8; i++) {
                float before = i < 0 || i >= rows * 3 ? 7.0f : i % 2 == 0 ? 5.0f : -1.0f;
                if (table[i] != before) {
                    written++;
                    CHECK_EQUAL(i, 12);
                    CHECK(table[i] == 0.0f);
                }
            }
            CHECK_EQUAL(written, tune);
            CHECK_EQUAL(channels, tune * 2);
            if (tune == 0) {
                att_setting_t to = setting(ATT_ALGORITHM_NVLS, ATT_PROTOCOL_LL, 2, 0);
                agent_commit(task, 1, &to, 1, 1);
            }
        }
    }
    float all_ignore[ATT_PAIR_COUNT];
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        all_ignore[i] = -1.0f;
    int channels = 0;
    CHECK_EQUAL(fake_ask(&comm, ALL_REDUCE, 64, all_ignore, 7, &channels), 0);
    CHECK_EQUAL(channels, 0);
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        CHECK(all_ignore[i] == -1.0f);
    /* Collectives that NCCL may have one day. */
    CHECK_EQUAL(fake_ask(&comm, 5, 64, all_ignore, 7, &channels), 0);
    CHECK_EQUAL(fake_ask(&comm, -1, 64, all_ignore, 7, &channels), 0);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&agent_memory()->processes[0].simulated), 3);
}

ISOLATED(never_outside_the_table_or_on_ignore)
{
    guarded_tables(6);
}

ISOLATED(nor_with_abi_5)
{
    guarded_tables(5);
}

ISOLATED(nor_with_abi_4)
{
    guarded_tables(4);
}

ISOLATED(nor_with_abi_3)
{
    guarded_tables(3);
}

/* ABI 2 has no table: nothing is answered. */
ISOLATED(abi_2_answers_nothing)
{
    void *context = NULL;
    CHECK_EQUAL(ncclTunerPlugin_v2.init(2, 1, fake_logger, &context), 0);
    CHECK(strstr(fake_log_text, "no cost table") != NULL);
    int algorithm = -1, protocol = -1, channels = 0;
    CHECK_EQUAL(ncclTunerPlugin_v2.get_coll_info(context, ALL_REDUCE, 1 << 20, 1, 1, 1, &algorithm,
                                                 &protocol, &channels),
                0);
    CHECK_EQUAL(algorithm, -1);
    CHECK_EQUAL(protocol, -1);
    CHECK_EQUAL(channels, 0);
    CHECK_EQUAL(ncclTunerPlugin_v2.destroy(context), 0);
}

/* Profiler 4 does not tell which calls go into a graph: without the user's word nothing is done. */
ISOLATED(nothing_where_capture_is_not_told)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 4, 0xabc, 2, 0);
    CHECK(strstr(fake_log_text, "--no-graphs") != NULL);
    CHECK_EQUAL(fake_mask, 0);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&agent_memory()->header.task_count), 0);
}

/* Hosts of different vendors: rank 1 thinks that Ring/LL is 20 % cheaper between 32 and 256 KiB. */
ISOLATED(cost_tables_that_disagree)
{
    fake_comm_t comms[2];
    for (int r = 0; r < 2; r++)
        fake_init(&comms[r], &fake_linked, 6, 0xabc, 2, r);
    agent_memory();
    for (size_t bytes = 4096; bytes <= 64u << 20; bytes *= 2) {
        float table[2][ATT_PAIR_COUNT];
        int channels[2];
        for (int tuned = 0; tuned < 2; tuned++) {
            for (int r = 0; r < 2; r++) {
                memcpy(table[r], comms[r].costs, sizeof table[r]);
                if (r == 1 && bytes >= 32768 && bytes <= 262144)
                    table[r][ATT_ALGORITHM_RING * 3 + ATT_PROTOCOL_LL] = 0.8f * 40.0f;
                float before[ATT_PAIR_COUNT];
                memcpy(before, table[r], sizeof before);
                channels[r] = 0;
                CHECK_EQUAL(fake_ask(&comms[r], ALL_REDUCE, bytes, table[r], 7, &channels[r]), 0);
                if (!tuned) /* nobody has decided: each table stays as NCCL made it */
                    CHECK(memcmp(before, table[r], sizeof before) == 0 && channels[r] == 0);
                else
                    CHECK(table[r][ATT_ALGORITHM_TREE * 3 + ATT_PROTOCOL_LL128] == 0.0f &&
                          channels[r] == 6);
            }
            att_setting_t to = setting(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL128, 6, 0);
            if (!tuned)
                agent_commit(agent_task(ALL_REDUCE, bytes), 1, &to, 1, 1);
        }
    }
    for (int r = 0; r < 2; r++)
        fake_destroy(&comms[r]);
}

/* No local fallback: what cannot be applied must not launch. */
ISOLATED(what_cannot_be_applied_fails)
{
    fake_comm_t comm, old;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_init(&old, &fake_linked, 5, 0xdef, 2, 0);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fake_call(&old, ALL_REDUCE, 8192, 100);
    agent_memory();
    att_setting_t illegal = setting(ATT_ALGORITHM_PAT, ATT_PROTOCOL_SIMPLE, 2, 0);
    uint32_t task = agent_task(ALL_REDUCE, 4096);
    agent_commit(task, 1, &illegal, 1, 1);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(comm.result, ATT_NCCL_SYSTEM_ERROR);
    uint32_t lane;
    CHECK_EQUAL(agent_lanes(task, &lane), 1);
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[lane].refused), 1);
    /* Tuner ABI 5 has no chunks. */
    att_setting_t chunk = setting(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 2, 65536);
    agent_commit(agent_task(ALL_REDUCE, 8192), 1, &chunk, 1, 1);
    fake_call(&old, ALL_REDUCE, 8192, 100);
    CHECK_EQUAL(old.result, ATT_NCCL_SYSTEM_ERROR);
    fake_destroy(&comm);
    fake_destroy(&old);
}

static size_t chunk_of(fake_comm_t *comm, int algorithm, int protocol)
{
    size_t chunk = 131072;
    comm->plugin->tuner6->get_chunk_size(comm->tuner, ALL_REDUCE, 4096, algorithm, protocol, 1,
                                         &chunk);
    return chunk;
}

ISOLATED(chunks_keep_to_grain_and_limits)
{
    static const struct {
        int algorithm, protocol;
        uint32_t asked;
        size_t expected;
    } cases[] = {
        {ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 262144, 262144},
        {ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 262143, 261632},
        {ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 1, 512},
        {ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 100, 96},
        {ATT_ALGORITHM_RING, ATT_PROTOCOL_LL, 15, 16},
        {ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL128, 131072, 130560},
        {ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL128, 1000, 1920},
        {ATT_ALGORITHM_NVLS, ATT_PROTOCOL_SIMPLE, 262144, 131072}, /* never above NCCL's own */
        {ATT_ALGORITHM_NVLS, ATT_PROTOCOL_SIMPLE, 65536, 65536},
        {ATT_ALGORITHM_NVLS_TREE, ATT_PROTOCOL_SIMPLE, 262144, 131072},
        {ATT_ALGORITHM_COLLNET_CHAIN, ATT_PROTOCOL_SIMPLE, 262144, 131072},
        {ATT_ALGORITHM_COLLNET_DIRECT, ATT_PROTOCOL_SIMPLE, 262144, 131072},
    };
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        comm.costs[i] = 50.0f + (float)i;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 4096 + 512 * i;
        fake_call(&comm, ALL_REDUCE, bytes, 100);
        agent_memory();
        att_setting_t to = setting(cases[i].algorithm, cases[i].protocol, 0, cases[i].asked);
        agent_commit(agent_task(ALL_REDUCE, bytes), 1, &to, 1, 1);
        fake_begin(&comm);
        fake_enqueue(&comm, ALL_REDUCE, bytes / 4, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        CHECK_EQUAL(comm.ops[0].algorithm, cases[i].algorithm);
        CHECK_EQUAL(chunk_of(&comm, cases[i].algorithm, cases[i].protocol), cases[i].expected);
        CHECK_EQUAL(chunk_of(&comm, cases[i].algorithm, cases[i].protocol), cases[i].expected);
        /* Not what was decided: NCCL's own. */
        CHECK_EQUAL(chunk_of(&comm, ATT_ALGORITHM_PAT, cases[i].protocol), 131072);
        CHECK_EQUAL(chunk_of(&comm, cases[i].algorithm, 3), 131072);
        fake_end(&comm);
    }
    fake_destroy(&comm);
}

/* Two decisions that getChunkSize cannot tell apart keep NCCL's chunk; others are told apart. */
ISOLATED(a_batch_of_two_keeps_nccls_chunk)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fake_call(&comm, ALL_REDUCE, 8192, 100);
    fake_call(&comm, ALL_GATHER, 4096, 100);
    agent_memory();
    att_setting_t ring = setting(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 0, 65536);
    att_setting_t tree = setting(ATT_ALGORITHM_TREE, ATT_PROTOCOL_SIMPLE, 0, 32768);
    agent_commit(agent_task(ALL_REDUCE, 4096), 1, &ring, 1, 1);
    agent_commit(agent_task(ALL_GATHER, 8192), 1, &ring, 1, 1);
    /* The other AllReduce keeps NCCL's pair, which might be the same one. */
    fake_begin(&comm);
    fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    fake_enqueue(&comm, ALL_REDUCE, 2048, false);
    fake_enqueue(&comm, ALL_GATHER, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    fake_end(&comm);
    CHECK_EQUAL(comm.ops[0].chunk, 524288);
    CHECK_EQUAL(comm.ops[1].chunk, 524288);
    CHECK_EQUAL(comm.ops[2].chunk, 65536);
    /* In the other order too. */
    fake_begin(&comm);
    fake_enqueue(&comm, ALL_REDUCE, 2048, false);
    fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    fake_end(&comm);
    CHECK_EQUAL(comm.ops[0].chunk, 524288);
    CHECK_EQUAL(comm.ops[1].chunk, 524288);
    /* Told apart by the pair. */
    agent_commit(agent_task(ALL_REDUCE, 8192), 3, &tree, 1, 1);
    fake_begin(&comm);
    fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    fake_enqueue(&comm, ALL_REDUCE, 2048, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    fake_end(&comm);
    CHECK_EQUAL(comm.ops[0].chunk, 65536);
    CHECK_EQUAL(comm.ops[1].chunk, 32768);
    /* Alone again, also right after a batch too large to remember. */
    fake_begin(&comm);
    for (int i = 0; i < FAKE_OPS; i++)
        fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    fake_end(&comm);
    CHECK_EQUAL(comm.ops[0].chunk, 524288);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).chunk, 65536);
    fake_destroy(&comm);
}

/* A batch ends at getChunkSize too, for libraries without CollApi events. */
ISOLATED(batches_without_api_events)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    comm.no_api = true;
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    agent_memory();
    att_setting_t ring = setting(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 0, 65536);
    agent_commit(agent_task(ALL_REDUCE, 4096), 2, &ring, 1, 1);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).chunk, 524288);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).chunk, 65536);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).chunk, 65536);
    fake_destroy(&comm);
}

/* Eight ranks and three communicators in one process: each has its own numbers and settings. */
ISOLATED(many_ranks_in_one_process)
{
    enum { RANKS = 8, GROUPS = 3 };
    static fake_comm_t comms[GROUPS][RANKS];
    for (int r = 0; r < RANKS; r++)
        for (int g = 0; g < GROUPS; g++)
            fake_init(&comms[g][r], &fake_linked, g == 1 ? 5 : 6, 0xabc + (uint64_t)g, RANKS, r);
    att_segment_memory_t *memory = agent_memory();
    CHECK_EQUAL(atomic_load(&memory->header.group_count), GROUPS);
    CHECK_EQUAL(atomic_load(&memory->header.member_count), GROUPS * RANKS);
    CHECK_EQUAL(atomic_load(&memory->header.process_count), 1);
    for (int g = 0; g < GROUPS; g++)
        for (int r = 0; r < RANKS; r++)
            fake_call(&comms[g][r], ALL_REDUCE, 4096 * (size_t)(g + 1), 100);
    for (int g = 0; g < GROUPS; g++) {
        CHECK_EQUAL(atomic_load(&memory->groups[g].duplicate), 0);
        att_setting_t to = setting(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, g + 1, 0);
        uint32_t task = agent_task(ALL_REDUCE, 4096 * (uint64_t)(g + 1));
        agent_commit(task, 2, &to, 1, 1);
    }
    for (int r = RANKS - 1; r >= 0; r--)
        for (int g = 0; g < GROUPS; g++)
            for (int call = 1; call < 4; call++) {
                fake_op_t op = fake_call(&comms[g][r], ALL_REDUCE, 4096 * (size_t)(g + 1), 100);
                CHECK_EQUAL(op.channels, call < 2 ? 16 : g + 1);
            }
    /* In any order, and others go on. */
    for (int r = 0; r < RANKS; r++)
        fake_destroy(&comms[1][(r * 3) % RANKS]);
    CHECK_EQUAL(fake_call(&comms[2][5], ALL_REDUCE, 12288, 100).channels, 3);
    /* Their contexts are used again, without what they knew. */
    fake_init(&comms[1][0], &fake_linked, 6, 0x777, RANKS, 4);
    CHECK_EQUAL(fake_call(&comms[1][0], ALL_REDUCE, 8192, 100).channels, 16);
    fake_destroy(&comms[1][0]);
    for (int r = 0; r < RANKS; r++) {
        fake_destroy(&comms[0][r]);
        fake_destroy(&comms[2][r]);
    }
    uint32_t retired = 0;
    for (uint32_t i = 0; i < GROUPS * RANKS + 1; i++)
        retired += atomic_load(&memory->members[i].state) == ATT_ENTRY_RETIRED;
    CHECK_EQUAL(retired, GROUPS * RANKS + 1);
    CHECK_EQUAL(atomic_load(&memory->processes[0].decisions), GROUPS * RANKS * 4 + 2);
}

/* A job that was started again and again: the communicator keeps NCCL's choice, and the user is
 * told. */
ISOLATED(too_many_groups)
{
    fake_comm_t first, second;
    fake_init(&first, &fake_linked, 6, 0xabc, 2, 0);
    att_segment_memory_t *memory = agent_memory();
    atomic_store(&memory->header.group_count, ATT_GROUPS);
    for (uint32_t i = 1; i < ATT_GROUPS; i++)
        atomic_store(&memory->groups[i].state, ATT_ENTRY_RETIRED);
    int to[2], kept = dup(STDERR_FILENO);
    CHECK(pipe(to) == 0 && kept >= 0 && dup2(to[1], STDERR_FILENO) >= 0);
    fake_init(&second, &fake_linked, 6, 0xdef, 2, 0);
    fflush(stderr);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    close(to[1]);
    char text[512] = "";
    CHECK(read(to[0], text, sizeof text - 1) >= 0);
    CHECK(strstr(text, "communicator 0xdef is not tuned: the node's tables are full") != NULL);
    CHECK(strchr(text, '\n') != NULL && strchr(text, '\n')[1] == '\0');
    CHECK_EQUAL(atomic_load(&memory->header.full), 1);
    CHECK_EQUAL(fake_call(&second, ALL_REDUCE, 4096, 100).channels, 16);
    fake_destroy(&second);
    fake_destroy(&first);
}

/* More message sizes than the table takes: the rest keeps NCCL's choice, at no cost to the others.
 */
ISOLATED(too_many_tasks)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    att_segment_memory_t *memory = agent_memory();
    for (int round = 0; round < 3; round++)
        for (size_t i = 1; i <= 5000; i++) {
            fake_begin(&comm);
            fake_enqueue(&comm, ALL_REDUCE, i, false);
            CHECK_EQUAL(fake_prepare(&comm), 0);
            CHECK_EQUAL(comm.ops[0].channels, 16);
            fake_end(&comm);
        }
    CHECK_EQUAL(atomic_load(&memory->header.full), 1);
    uint32_t tasks = atomic_load(&memory->header.task_count);
    CHECK(tasks > 500 && tasks <= 768);
    CHECK_EQUAL(atomic_load(&memory->header.lane_count), tasks);
    uint32_t task = agent_task(ALL_REDUCE, 4);
    att_setting_t to = setting(ATT_ALGORITHM_TREE, ATT_PROTOCOL_LL, 2, 0);
    agent_commit(task, 3, &to, 1, 1);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4, 100).channels, 2);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4 * 4999, 100).channels, 16);
    fake_destroy(&comm);
    uint64_t total =
        atomic_load(&memory->processes[0].decisions) + atomic_load(&memory->processes[0].simulated);
    CHECK_EQUAL(total, 15002);
    CHECK_EQUAL(atomic_load(&memory->processes[0].decisions), 3 * tasks + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_agent_it_changes_nothing),
        cmocka_unit_test(ranks_switch_at_the_same_call),
        cmocka_unit_test(never_outside_the_table_or_on_ignore),
        cmocka_unit_test(cost_tables_that_disagree),
        cmocka_unit_test(nor_with_abi_5),
        cmocka_unit_test(nor_with_abi_4),
        cmocka_unit_test(nor_with_abi_3),
        cmocka_unit_test(abi_2_answers_nothing),
        cmocka_unit_test(nothing_where_capture_is_not_told),
        cmocka_unit_test(what_cannot_be_applied_fails),
        cmocka_unit_test(chunks_keep_to_grain_and_limits),
        cmocka_unit_test(a_batch_of_two_keeps_nccls_chunk),
        cmocka_unit_test(batches_without_api_events),
        cmocka_unit_test(many_ranks_in_one_process),
        cmocka_unit_test(too_many_groups),
        cmocka_unit_test(too_many_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
