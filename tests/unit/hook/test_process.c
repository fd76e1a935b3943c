/* The process: when the hook attaches and when it stays inert, what it says, forks, loading. */
#include "fake_nccl.h"
#include "isolated.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define ALL_REDUCE ATT_COLLECTIVE_ALL_REDUCE

/* What the hook finds in a process with the host fabric (the test program exports its symbols). */
__attribute__((visibility("default"))) int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = 23007;
    return 0;
}

static int fabric_status = 1;
__attribute__((visibility("default"))) int ncclFabricDeviceInfo(unsigned char uuid[16], int *units);
int ncclFabricDeviceInfo(unsigned char uuid[16], int *units)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i + 1);
    *units = 84;
    return fabric_status;
}

/* Calls work and change nothing; at most one line was said. */
static void check_inert(void)
{
    fake_comm_t comm;
    for (int abi = 5; abi <= 6; abi++)
        for (int i = 0; i < 3; i++) {
            fake_init(&comm, &fake_linked, abi, 0xabc, 2, 0);
            CHECK(comm.profiler == NULL);
            CHECK(comm.tuner != NULL);
            fake_op_t op = fake_call(&comm, ALL_REDUCE, 4096, 100);
            CHECK_EQUAL(comm.result, 0);
            CHECK_EQUAL(op.algorithm, ATT_ALGORITHM_RING);
            CHECK_EQUAL(op.channels, 16);
            fake_destroy(&comm);
        }
    CHECK_EQUAL(fake_mask, 0);
    CHECK(fake_log_lines <= 1);
}

ISOLATED(switched_off)
{
    setenv("ATTUNE_DISABLE", "1", 1);
    check_inert();
    CHECK(strstr(fake_log_text, "ATTUNE_DISABLE") != NULL);
}

ISOLATED(no_run)
{
    unsetenv("ATTUNE_RUN_ID");
    check_inert();
    CHECK(strstr(fake_log_text, "ATTUNE_RUN_ID") != NULL);
}

ISOLATED(no_segment)
{
    setenv("ATTUNE_SHM_DIR", "/nonexistent/attune", 1);
    FILE *file = freopen("/dev/null", "w", stderr); /* the warning names the folder */
    CHECK(file != NULL);
    check_inert();
    CHECK_EQUAL(fake_log_lines, 0);
}

/* DISABLE=0 and an unset value mean: on. */
ISOLATED(attached)
{
    setenv("ATTUNE_DISABLE", "0", 1);
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 1);
    CHECK_EQUAL(fake_log_lines, 1);
    att_segment_member_t *member = &agent_memory()->members[0];
    CHECK_EQUAL(atomic_load(&member->state), ATT_ENTRY_LIVE);
    CHECK_EQUAL(member->rank, 1);
    CHECK_EQUAL(member->nccl_version, 23007);
    CHECK_EQUAL(member->tuner_abi, 6);
    CHECK_EQUAL(member->profiler_abi, 6);
    CHECK_EQUAL(member->pinned, 0);
    CHECK_EQUAL(member->clock_id, 0);
    CHECK_EQUAL(member->all_connected, 0);
    CHECK_EQUAL(strcmp(member->hook_version, ATTUNE_VERSION), 0);
    CHECK_EQUAL(agent_memory()->groups[0].hash, 0xabc);
    CHECK_EQUAL(agent_memory()->groups[0].ranks, 2);
    CHECK_EQUAL(agent_memory()->processes[0].pid, getpid());
    fake_destroy(&comm);
    setenv("NCCL_RUNTIME_CONNECT", "0", 1);
    fabric_status = 0;
    fake_init(&comm, &fake_linked, 6, 0xdef, 2, 1);
    member = &agent_memory()->members[1];
    CHECK_EQUAL(member->all_connected, 1);
    CHECK_EQUAL(member->device_units, 84);
    CHECK_EQUAL(member->device_id[15], 16);
    CHECK(member->clock_id != 0);
    fake_destroy(&comm);
}

/* The rank is known from the profiler half alone. */
ISOLATED(no_profiler)
{
    void *context = NULL;
    int channels = 0;
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_destroy(&comm);
    fake_linked.tuner6->init(&context, 0xabc, 2, 1, fake_logger, NULL, NULL);
    CHECK(strstr(fake_log_text, "NCCL_PROFILER_PLUGIN") != NULL);
    float table[ATT_PAIR_COUNT] = {1.0f};
    CHECK_EQUAL(fake_linked.tuner6->get_coll_info(context, ALL_REDUCE, 64, 1, (float **)table, 7, 3,
                                                  0, &channels),
                0);
    fake_linked.tuner6->finalize(context);
    /* A profiler init for another communicator does not help. */
    void *profiler = NULL;
    fake_linked.profiler6->init(&profiler, 0x111, &fake_mask, "a", 1, 2, 0, fake_logger);
    fake_linked.tuner6->init(&context, 0x222, 2, 1, fake_logger, NULL, NULL);
    fake_linked.tuner6->finalize(context);
    fake_linked.profiler6->finalize(profiler);
    /* A communicator of one rank is nobody's business. */
    fake_init(&comm, &fake_linked, 6, 0x333, 1, 0);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&agent_memory()->header.member_count), 1);
    CHECK_EQUAL(atomic_load(&agent_memory()->header.task_count), 0);
}

/* The same rank twice: the group is marked, nothing else happens. */
ISOLATED(a_rank_twice)
{
    fake_comm_t a, b;
    fake_init(&a, &fake_linked, 6, 0xabc, 2, 0);
    fake_init(&b, &fake_linked, 6, 0xabc, 2, 0);
    CHECK_EQUAL(atomic_load(&agent_memory()->groups[0].duplicate), 1);
    fake_destroy(&a);
    fake_destroy(&b);
}

ISOLATED(user_variables_pin)
{
    static const struct {
        const char *name, *value;
        uint32_t pin;
    } cases[] = {
        {"NCCL_ALGO", "^nvls", ATT_PIN_ALGORITHM},
        {"NCCL_PROTO", "LL,Simple;allreduce:^LL", ATT_PIN_PROTOCOL},
        {"NCCL_PROTO", "simple", ATT_PIN_PROTOCOL},
        {"NCCL_MIN_NCHANNELS", "4", ATT_PIN_CHANNELS},
        {"NCCL_MIN_CTAS", "4", ATT_PIN_CHANNELS},
        {"NCCL_MAX_NCHANNELS", "4", 0},
        {"NCCL_NTHREADS", "256", ATT_PIN_THREADS},
        {"NCCL_BUFFSIZE", "1048576", ATT_PIN_CHUNK},
        {"NCCL_P2P_DISABLE", "1", ATT_PIN_TRANSPORT},
        {"NCCL_ALGO", "", 0},
    };
    fake_comm_t comm;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* The variable appears between the two halves' inits. */
        void *profiler = NULL;
        void *tuner = NULL;
        fake_linked.profiler6->init(&profiler, i + 1, &fake_mask, "a", 1, 2, 0, fake_logger);
        setenv(cases[i].name, cases[i].value, 1);
        int lines = fake_log_lines;
        CHECK_EQUAL(fake_linked.tuner6->init(&tuner, i + 1, 2, 1, fake_logger, NULL, NULL), 0);
        CHECK_EQUAL(fake_log_lines, lines + (cases[i].pin != 0));
        if (cases[i].pin != 0)
            CHECK(strstr(fake_log_text, cases[i].name) != NULL);
        CHECK_EQUAL(agent_memory()->members[i].pinned, cases[i].pin);
        unsetenv(cases[i].name);
        fake_linked.tuner6->finalize(tuner);
        fake_linked.profiler6->finalize(profiler);
    }
    setenv("NCCL_ALGO", "Ring", 1);
    setenv("NCCL_PROTO", "Simple", 1);
    fake_init(&comm, &fake_linked, 5, 0xabc, 2, 0);
    CHECK(strstr(fake_log_text, "NCCL_ALGO, NCCL_PROTO") != NULL);
    fake_destroy(&comm);
}

ISOLATED(a_child_is_inert)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    atomic_store(&agent_memory()->processes[0].timing, 1);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        fake_comm_t fresh;
        fake_call(&comm, ALL_REDUCE, 4096, 100);
        fake_call(&comm, ALL_REDUCE, 8192, 100);
        fake_destroy(&comm);
        fake_init(&fresh, &fake_linked, 6, 0xdef, 2, 0);
        CHECK(fresh.profiler == NULL);
        fake_call(&fresh, ALL_REDUCE, 4096, 100);
        fake_destroy(&fresh);
        exit(0); /* with destructors: the file must stay */
    }
    int status = 1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    att_segment_memory_t *memory = agent_memory();
    CHECK_EQUAL(atomic_load(&memory->header.member_count), 1);
    CHECK_EQUAL(atomic_load(&memory->header.task_count), 1);
    CHECK_EQUAL(atomic_load(&memory->members[0].state), ATT_ENTRY_LIVE);
    CHECK_EQUAL(atomic_load(&memory->lanes[0].word) >> 1, 2);
    char path[512];
    att_error_t error;
    att_segment_name_t name = {0};
    CHECK_EQUAL(att_segment_path(&name, path, sizeof path, &error), 0);
    CHECK_EQUAL(access(path, F_OK), 0);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(atomic_load(&memory->lanes[0].word) >> 1, 3);
    fake_destroy(&comm);
}

/* As NCCL loads it: dlopen, newest symbol, close with the last communicator, open again. */
ISOLATED(loaded_and_closed)
{
    void *first = NULL;
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(ATTUNE_HOOK_FILE, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(library != NULL);
        fake_plugin_t plugin = {
            dlsym(library, "ncclTunerPlugin_v5"), dlsym(library, "ncclTunerPlugin_v6"),
            dlsym(library, "ncclProfiler_v5"),    dlsym(library, "ncclProfiler_v6"),
            dlsym(library, "ncclTunerPlugin_v3"), dlsym(library, "ncclTunerPlugin_v4"),
            dlsym(library, "ncclProfiler_v4")};
        CHECK(plugin.tuner3 != NULL && plugin.tuner4 != NULL && plugin.profiler4 != NULL);
        CHECK(plugin.tuner5 != NULL && plugin.tuner6 != NULL);
        CHECK(plugin.profiler5 != NULL && plugin.profiler6 != NULL);
        CHECK(dlsym(library, "att_hook_attach") == NULL);
        CHECK(dlsym(library, "att_segment_open") == NULL);
        CHECK_EQUAL(strcmp(plugin.tuner6->name, "attune"), 0);
        CHECK(first == NULL || first == (const void *)plugin.tuner6);
        first = (void *)(uintptr_t)plugin.tuner6;
        fake_comm_t comm;
        fake_init(&comm, &plugin, round == 1 ? 5 : 6, 0xabc + (uint64_t)round, 2, 0);
        CHECK(comm.profiler != NULL);
        CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).channels, 16);
        fake_destroy(&comm);
        CHECK_EQUAL(dlclose(library), 0);
    }
    /* One process, three members: it stayed attached. Read without locks of our own. */
    char path[512];
    att_error_t error;
    att_segment_name_t name = {0};
    CHECK_EQUAL(att_segment_path(&name, path, sizeof path, &error), 0);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    const att_segment_memory_t *memory = mmap(NULL, sizeof *memory, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQUAL(atomic_load(&memory->header.process_count), 1);
    CHECK_EQUAL(atomic_load(&memory->header.member_count), 3);
    CHECK_EQUAL(atomic_load(&memory->processes[0].decisions), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switched_off),       cmocka_unit_test(no_run),
        cmocka_unit_test(no_segment),         cmocka_unit_test(attached),
        cmocka_unit_test(no_profiler),        cmocka_unit_test(a_rank_twice),
        cmocka_unit_test(user_variables_pin), cmocka_unit_test(a_child_is_inert),
        cmocka_unit_test(loaded_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
