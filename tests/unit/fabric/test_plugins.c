/*
 * The callbacks of tuner and profiler: their order, arguments and threads, the clamps on what the
 * tuner answers, and what happens when it answers nonsense. The plugins are part of this program.
 */
#include "ranks.h"
#include "attune/setting.h"
#include "fabric/plugin_abi.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LINES 400

/* What rank 0 saw, one line a callback. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][160];
static pthread_t init_thread, channel_thread;
static uint64_t tuner_id[8], profiler_id[8];
static int line_count, tuner_count, profiler_count;
static _Thread_local int this_rank = -1;

static int *event_mask;
static int wanted_mask;

/* What the tuner answers. */
static struct {
    int set_algorithm, set_protocol; /* -1: nothing */
    int even_if_ignored;
    int channels;
    size_t chunk;
    ncclResult_t result, chunk_result;
    int seen_ignored; /* entries at -1 in the last table */
} answer;

static void put(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    pthread_mutex_lock(&mutex);
    if (line_count < LINES)
        vsnprintf(lines[line_count++], sizeof lines[0], format, list);
    pthread_mutex_unlock(&mutex);
    va_end(list);
}

typedef struct context {
    int rank;
} context_t;

static ncclResult_t tuner_init(void **context, uint64_t id, size_t ranks, size_t nodes,
                               ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                               ncclTunerConstants_t *constants)
{
    context_t *own = calloc(1, sizeof *own);
    own->rank = this_rank;
    *context = own;
    pthread_mutex_lock(&mutex);
    tuner_id[tuner_count++ % 8] = id;
    pthread_mutex_unlock(&mutex);
    if (own->rank == 0)
        put("tuner.init ranks %zu nodes %zu same thread %d", ranks, nodes,
            pthread_equal(init_thread, pthread_self()) != 0);
    return ncclSuccess;
}

static ncclResult_t get_coll_info(void *context, int function, size_t bytes, int ops, float **table,
                                  int algorithms, int protocols, int registered, int *channels)
{
    float(*costs)[ATT_PROTOCOLS] = (float(*)[ATT_PROTOCOLS])table;
    const context_t *own = context;
    int ignored = 0;
    for (int a = 0; a < algorithms; a++)
        for (int p = 0; p < protocols; p++)
            ignored += costs[a][p] < 0;
    if (own->rank == 0) {
        answer.seen_ignored = ignored;
        put("getCollInfo %d bytes %zu ops %d channels %d", function, bytes, ops, *channels);
    }
    if (answer.set_algorithm >= 0) {
        float *entry = &costs[answer.set_algorithm][answer.set_protocol];
        if (*entry >= 0 || answer.even_if_ignored)
            *entry = 0;
    }
    *channels = answer.channels;
    return answer.result;
}

static ncclResult_t get_chunk_size(void *context, int function, size_t bytes, int algorithm,
                                   int protocol, int channels, size_t *chunk)
{
    const context_t *own = context;
    if (own->rank == 0)
        put("getChunkSize %d bytes %zu %d/%d channels %d chunk %zu", function, bytes, algorithm,
            protocol, channels, *chunk);
    if (answer.chunk)
        *chunk = answer.chunk;
    return answer.chunk_result;
}

static ncclResult_t tuner_finalize(void *context)
{
    context_t *own = context;
    if (own->rank == 0)
        put("tuner.finalize");
    free(own);
    return ncclSuccess;
}

__attribute__((visibility("default"))) extern const ncclTuner_v6_t ncclTunerPlugin_v6;
const ncclTuner_v6_t ncclTunerPlugin_v6 = {"stub", tuner_init, get_coll_info, tuner_finalize,
                                           get_chunk_size};

/* A handle tells the rank and the type, so that stop can be written down. */
typedef struct handle {
    int rank;
    int type;
    int stopped;
} handle_t;

static handle_t handles[4096];
static _Atomic int handle_count;

static ncclResult_t profiler_init(void **context, uint64_t id, int *mask, const char *name,
                                  int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
    context_t *own = calloc(1, sizeof *own);
    own->rank = rank;
    this_rank = rank;
    *context = own;
    pthread_mutex_lock(&mutex);
    profiler_id[profiler_count++ % 8] = id;
    event_mask = mask;
    pthread_mutex_unlock(&mutex);
    __atomic_store_n(mask, wanted_mask, __ATOMIC_RELAXED);
    if (rank == 0) {
        init_thread = pthread_self();
        put("profiler.init ranks %d nodes %d name '%s'", ranks, nodes, name);
    }
    return ncclSuccess;
}

static const char *type_name(uint64_t type)
{
    switch (type) {
    case ncclProfileGroup:
        return "Group";
    case ncclProfileColl:
        return "Coll";
    case ncclProfileKernelCh:
        return "KernelCh";
    case ncclProfileGroupApi:
        return "GroupApi";
    case ncclProfileCollApi:
        return "CollApi";
    case ncclProfileKernelLaunch:
        return "KernelLaunch";
    default:
        return "?";
    }
}

static ncclResult_t start_event(void *context, void **out, ncclProfilerEventDescr_t *event)
{
    const context_t *own = context;
    handle_t *handle = &handles[handle_count++ % 4096];
    *handle = (handle_t){own->rank, (int)event->type, 0};
    *out = handle;
    if (own->rank != 0)
        return ncclSuccess;
    const handle_t *parent = event->parentObj;
    const char *above = parent ? type_name((uint64_t)parent->type) : "none";
    switch (event->type) {
    case ncclProfileColl:
        put("start Coll in %s seq %llu %s count %zu %s root %d nc %d nw %d %s %s rank %d", above,
            (unsigned long long)event->coll.seqNumber, event->coll.func, event->coll.count,
            event->coll.datatype, event->coll.root, event->coll.nChannels, event->coll.nWarps,
            event->coll.algo, event->coll.proto, event->rank);
        break;
    case ncclProfileCollApi:
        put("start CollApi in %s %s count %zu %s", above, event->collApi.func, event->collApi.count,
            event->collApi.datatype);
        break;
    case ncclProfileGroupApi:
        put("start GroupApi depth %d", event->groupApi.groupDepth);
        break;
    case ncclProfileKernelCh:
        channel_thread = pthread_self();
        put("start KernelCh in %s channel %d stamp %d", above, event->kernelCh.channelId,
            event->kernelCh.pTimer != 0);
        break;
    default:
        put("start %s in %s", type_name(event->type), above);
    }
    return ncclSuccess;
}

static ncclResult_t stop_event(void *argument)
{
    handle_t *handle = argument;
    if (handle->rank == 0)
        put("stop %s%s", type_name((uint64_t)handle->type), handle->stopped ? " again" : "");
    handle->stopped = 1;
    return ncclSuccess;
}

static ncclResult_t record_state(void *argument, int state, ncclProfilerEventStateArgs_t *args)
{
    const handle_t *handle = argument;
    if (handle->rank == 0)
        put("state %d of %s stamp %d", state, type_name((uint64_t)handle->type),
            args && args->kernelCh.pTimer != 0);
    return ncclSuccess;
}

static ncclResult_t profiler_finalize(void *context)
{
    context_t *own = context;
    if (own->rank == 0)
        put("profiler.finalize");
    free(own);
    return ncclSuccess;
}

__attribute__((visibility("default"))) extern const ncclProfiler_v6_t ncclProfiler_v6;
const ncclProfiler_v6_t ncclProfiler_v6 = {"stub",     profiler_init, start_event,
                                           stop_event, record_state,  profiler_finalize};

/* Channel events come from another thread at any time: they have a log of their own. */
static char channel_lines[LINES][160];
static int channel_line_count;

static void separate_channels(void)
{
    int kept = 0;
    channel_line_count = 0;
    for (int i = 0; i < line_count; i++) {
        bool channel = strstr(lines[i], "KernelCh") != NULL;
        char *target = channel ? channel_lines[channel_line_count++] : lines[kept++];
        memmove(target, lines[i], sizeof lines[i]);
    }
    line_count = kept;
}

static int reset(void **state)
{
    memset(&answer, 0, sizeof answer);
    answer.set_algorithm = -1;
    line_count = tuner_count = profiler_count = 0;
    wanted_mask = ncclProfileColl | ncclProfileKernelCh;
    return 0;
}

static void expect(char (*log)[160], int length, const char *const *wanted, int count)
{
    for (int i = 0; i < length || i < count; i++) {
        const char *got = i < length ? log[i] : "(nothing)";
        const char *want = i < count ? wanted[i] : "(nothing)";
        if (strcmp(got, want)) {
            for (int k = 0; k < length; k++)
                fprintf(stderr, "%3d %s\n", k, log[k]);
            fail_msg("line %d: \"%s\", not \"%s\"", i, got, want);
        }
    }
}
#define EXPECT(log, length, ...)                                                                   \
    do {                                                                                           \
        static const char *const wanted[] = {__VA_ARGS__};                                         \
        expect(log, length, wanted, (int)(sizeof wanted / sizeof wanted[0]));                      \
    } while (0)

/* Lines that begin with a word, in order, joined; for parts of a log. */
static int count_lines(const char *beginning)
{
    int count = 0;
    for (int i = 0; i < line_count; i++)
        count += !strncmp(lines[i], beginning, strlen(beginning));
    return count;
}

static const char *find_line(const char *beginning)
{
    for (int i = 0; i < line_count; i++)
        if (!strncmp(lines[i], beginning, strlen(beginning)))
            return lines[i];
    return "(nothing)";
}

#define MOST (1 << 20)
static float send_data[4][MOST], receive_data[4][MOST];

static void one_all_reduce(rank_t *rank)
{
    rank->failed += ncclAllReduce(send_data[rank->rank], receive_data[rank->rank], 65536,
                                  ncclFloat32, ncclSum, rank->comm, NULL) != ncclSuccess;
}

static void test_order_of_a_call(void **state)
{
    answer.channels = 1;
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    assert_int_equal(run_threads(2, one_all_reduce, NULL), 0);
    separate_channels();
    EXPECT(lines, line_count, "profiler.init ranks 2 nodes 1 name ''",
           "tuner.init ranks 2 nodes 1 same thread 1", "start GroupApi depth 1",
           "state 23 of GroupApi stamp 0",
           "start CollApi in GroupApi AllReduce count 65536 ncclFloat32", "stop CollApi",
           "state 24 of GroupApi stamp 0", "getCollInfo 4 bytes 262144 ops 1 channels 0",
           "getChunkSize 4 bytes 262144 1/2 channels 1 chunk 524288", "start Group in none",
           "start Coll in CollApi seq 0 AllReduce count 65536 ncclFloat32 root 0 nc 1 nw 17 RING "
           "SIMPLE rank 0",
           "stop Coll", "stop Group", "stop GroupApi", "tuner.finalize", "profiler.finalize");
    EXPECT(channel_lines, channel_line_count, "start KernelCh in Coll channel 0 stamp 1",
           "state 22 of KernelCh stamp 1", "stop KernelCh");
    assert_false(pthread_equal(channel_thread, init_thread));
    assert_int_equal(tuner_count, 2);
    for (int i = 0; i < 2; i++) { /* one id for all ranks and both plugins */
        assert_true(tuner_id[i] == tuner_id[0]);
        assert_true(profiler_id[i] == tuner_id[0]);
    }
    assert_int_equal(answer.seen_ignored, ATT_PAIR_COUNT - 6);
}

static void converted_types(rank_t *rank)
{
    float *s = send_data[rank->rank], *r = receive_data[rank->rank];
    rank->failed += ncclAllGather(s, r, 1000, ncclFloat32, rank->comm, NULL) != ncclSuccess;
    rank->failed +=
        ncclReduceScatter(s, r, 1000, ncclFloat32, ncclSum, rank->comm, NULL) != ncclSuccess;
    rank->failed += ncclBroadcast(s, r, 1000, ncclFloat32, 1, rank->comm, NULL) != ncclSuccess;
    rank->failed +=
        ncclReduce(s, r, 1000, ncclFloat32, ncclSum, 1, rank->comm, NULL) != ncclSuccess;
    rank->failed += ncclAllGather(s, r, 1000, ncclFloat32, rank->comm, NULL) != ncclSuccess;
}

static void test_conversions(void **state)
{
    answer.channels = 1;
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_LL;
    assert_int_equal(run_threads(2, converted_types, NULL), 0);
    assert_string_equal(find_line("getCollInfo 2"), "getCollInfo 2 bytes 8000 ops 1 channels 0");
    assert_string_equal(find_line("getCollInfo 3"), "getCollInfo 3 bytes 8000 ops 1 channels 0");
    assert_string_equal(find_line("getCollInfo 0"), "getCollInfo 0 bytes 4000 ops 1 channels 0");
    assert_string_equal(find_line("start Coll in CollApi seq 0 AllGather"),
                        "start Coll in CollApi seq 0 AllGather count 4000 ncclInt8 root 0 nc 1 nw "
                        "8 RING LL rank 0");
    assert_string_equal(find_line("start Coll in CollApi seq 0 ReduceScatter"),
                        "start Coll in CollApi seq 0 ReduceScatter count 1000 ncclFloat32 root 0 "
                        "nc 1 nw 8 RING LL rank 0");
    assert_string_equal(find_line("start Coll in CollApi seq 0 Reduce count"),
                        "start Coll in CollApi seq 0 Reduce count 1000 ncclFloat32 root 1 nc 1 nw "
                        "4 RING LL rank 0");
    assert_int_equal(count_lines("start Coll in CollApi seq 1 AllGather"), 1);
    /* the blind spot of 2.29.2 and later */
    assert_int_equal(count_lines("start Coll in CollApi seq 0 Broadcast"), 0);
    assert_int_equal(count_lines("start CollApi in GroupApi Broadcast"), 1);
    assert_int_equal(count_lines("start KernelCh"), 4);

    reset(NULL);
    answer.set_algorithm = -1;
    setenv("NCCL_ALLGATHERV_ENABLE", "0", 1);
    assert_int_equal(run_threads(2, converted_types, NULL), 0);
    unsetenv("NCCL_ALLGATHERV_ENABLE");
    assert_int_equal(count_lines("start Coll in CollApi seq 0 Broadcast count 4000 ncclInt8"), 1);
}

static void mask_off(rank_t *rank)
{
    one_all_reduce(rank);
    int32_t x = 0;
    /* nobody is in a call when rank 0 changes the mask */
    rank->failed += ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, rank->comm, NULL) != ncclSuccess;
    if (rank->rank == 0) {
        put("off");
        __atomic_store_n(event_mask, 0, __ATOMIC_RELAXED);
        one_all_reduce(rank);
    } else {
        one_all_reduce(rank);
    }
}

static void test_mask_is_sampled_at_the_call(void **state)
{
    answer.channels = 1;
    assert_int_equal(run_threads(2, mask_off, NULL), 0);
    int off = 0;
    while (off < line_count && strcmp(lines[off], "off"))
        off++;
    assert_true(off < line_count);
    int events = 0, again = 0;
    for (int i = off; i < line_count; i++) {
        events += !strncmp(lines[i], "start", 5) && strncmp(lines[i], "start KernelCh", 14);
        again += !strcmp(lines[i], "stop CollApi again"); /* as NCCL: the handle is stale */
    }
    assert_int_equal(events, 0);
    assert_int_equal(again, 1);
    /* Two calls had events. */
    assert_int_equal(count_lines("start KernelCh"), 2);
}

static void grouped(rank_t *rank)
{
    float *s = send_data[rank->rank], *r = receive_data[rank->rank];
    ncclGroupStart();
    rank->failed += ncclAllReduce(s, r, 65536, ncclFloat32, ncclSum, rank->comm, NULL) != 0;
    rank->failed +=
        ncclAllReduce(s + 65536, r + 65536, 30000, ncclFloat32, ncclSum, rank->comm, NULL) != 0;
    rank->failed +=
        ncclAllReduce(s + 200000, r + 200000, 100, ncclFloat32, ncclSum, rank->comm, NULL) != 0;
    rank->failed += ncclAllGather(s, r + 300000, 1024, ncclFloat32, rank->comm, NULL) != 0;
    rank->failed += ncclGroupEnd() != ncclSuccess;
}

static void test_group(void **state)
{
    answer.channels = 2;
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    wanted_mask = ncclProfileGroupApi;
    assert_int_equal(run_threads(2, grouped, NULL), 0);
    int first_chunk = 0;
    while (first_chunk < line_count && strncmp(lines[first_chunk], "getChunkSize", 12))
        first_chunk++;
    int asked = 0;
    for (int i = 0; i < first_chunk; i++)
        asked += !strncmp(lines[i], "getCollInfo", 11);
    /* 65536 and 30000 elements are within 4x and asked for together; 100 alone; AllGather alone */
    assert_int_equal(asked, 3);
    assert_int_equal(count_lines("getCollInfo"), 3);
    assert_int_equal(count_lines("getCollInfo 4 bytes 400 ops 1"), 1);
    assert_int_equal(count_lines("getCollInfo 4 bytes 382144 ops 1"), 1);
    assert_int_equal(count_lines("getCollInfo 2 bytes 8192 ops 1"), 1);
    assert_string_equal(find_line("start GroupApi"), "start GroupApi depth 2");
    assert_int_equal(count_lines("start GroupApi"), 1);
    assert_int_equal(count_lines("stop GroupApi"), 1);
}

static void simulated(rank_t *rank)
{
    ncclSimInfo_t info = {sizeof info, NCCL_SIM_INFO_MAGIC, NCCL_VERSION_CODE, -1};
    float *s = send_data[rank->rank], *r = receive_data[rank->rank];
    ncclGroupStart();
    ncclAllReduce(s, r, 65536, ncclFloat32, ncclSum, rank->comm, NULL);
    rank->failed += ncclGroupSimulateEnd(&info) != ncclSuccess || info.estimatedTime <= 0;
    one_all_reduce(rank);
}

static void test_simulation(void **state)
{
    assert_int_equal(run_threads(2, simulated, NULL), 0);
    assert_int_equal(count_lines("getCollInfo"), 2);
    assert_int_equal(count_lines("start Coll in"), 1);
    assert_int_equal(count_lines("start Coll in CollApi seq 0"), 1);
}

static void big_all_reduce(rank_t *rank)
{
    rank->failed += ncclAllReduce(send_data[rank->rank], receive_data[rank->rank], MOST,
                                  ncclFloat32, ncclSum, rank->comm, NULL) != ncclSuccess;
}

static int channels_used(void)
{
    int channels = -1;
    const char *text = strstr(find_line("start Coll in"), " nc ");
    if (text)
        sscanf(text, " nc %d", &channels);
    return channels;
}

static void test_channels_are_clamped(void **state)
{
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    answer.channels = 1000; /* to comm->nChannels */
    assert_int_equal(run_threads(2, big_all_reduce, NULL), 0);
    assert_int_equal(channels_used(), 16);
    /* lo, hi, mid: each asked for its own channel's bytes */
    assert_int_equal(count_lines("getChunkSize"), 3);
    assert_int_equal(count_lines("getChunkSize 4 bytes 262144 1/2 channels 1"), 3);

    reset(NULL);
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    answer.channels = 16; /* 256 KiB have 16 cells of 16 KiB: traffic 2, 32 KiB a cell */
    assert_int_equal(run_threads(2, one_all_reduce, NULL), 0);
    assert_int_equal(channels_used(), 16);

    reset(NULL);
    setenv("NCCL_MAX_NCHANNELS", "4", 1);
    answer.channels = 16;
    assert_int_equal(run_threads(2, big_all_reduce, NULL), 0);
    unsetenv("NCCL_MAX_NCHANNELS");
    assert_int_equal(channels_used(), 4);
}

static void small_all_reduce(rank_t *rank)
{
    rank->failed += ncclAllReduce(send_data[rank->rank], receive_data[rank->rank], 10000,
                                  ncclFloat32, ncclSum, rank->comm, NULL) != ncclSuccess;
}

static void test_small_messages_have_few_channels(void **state)
{
    answer.channels = 16;
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    assert_int_equal(run_threads(2, small_all_reduce, NULL), 0);
    assert_int_equal(channels_used(), 3); /* 40,000 bytes in cells of 16 KiB */
}

static void expecting(rank_t *rank)
{
    ncclResult_t result = ncclAllReduce(send_data[rank->rank], receive_data[rank->rank], 65536,
                                        ncclFloat32, ncclSum, rank->comm, NULL);
    rank->failed += result != *(ncclResult_t *)rank->argument;
    if (result != *(ncclResult_t *)rank->argument)
        fprintf(stderr, "rank %d: %s: %s\n", rank->rank, ncclGetErrorString(result),
                ncclGetLastError(rank->comm));
}

static void test_nonsense_fails_the_call(void **state)
{
    ncclResult_t wanted = ncclInternalError;
    answer.chunk = 100; /* below the grain of Simple */
    answer.set_algorithm = ATT_ALGORITHM_RING;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);
    assert_non_null(strstr(ncclGetLastError(NULL), "below the grain"));

    reset(NULL);
    answer.channels = -1;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);
    assert_non_null(strstr(ncclGetLastError(NULL), "-1 channels"));
    reset(NULL);
    answer.even_if_ignored = 1;
    answer.set_algorithm = ATT_ALGORITHM_NVLS;
    answer.set_protocol = ATT_PROTOCOL_SIMPLE;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);
    assert_non_null(strstr(ncclGetLastError(NULL), "IGNORE"));
    reset(NULL);
    wanted = ncclSystemError; /* the tuner's own error comes through */
    answer.result = ncclSystemError;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);
    reset(NULL);
    answer.chunk_result = ncclSystemError;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);
}

static void test_chunk_is_clamped_and_floored(void **state)
{
    /* Nothing tells the chunk but the work: too large or odd values must be usable. */
    static const size_t chunks[] = {1000, 513, 100000000};
    for (int i = 0; i < 3 * ATT_PROTOCOL_COUNT; i++) {
        size_t chunk = chunks[i / ATT_PROTOCOL_COUNT];
        reset(NULL);
        answer.set_algorithm = ATT_ALGORITHM_RING;
        answer.set_protocol = i % ATT_PROTOCOL_COUNT;
        answer.chunk = answer.set_protocol == ATT_PROTOCOL_LL128 && chunk < 1920 ? 1999 : chunk;
        assert_int_equal(run_threads(2, big_all_reduce, NULL), 0);
    }
}

static void test_variables_rule_pairs_out(void **state)
{
    setenv("NCCL_ALGO", "ring", 1);
    setenv("NCCL_PROTO", "^LL128;allreduce:LL", 1);
    assert_int_equal(run_threads(2, one_all_reduce, NULL), 0);
    assert_int_equal(answer.seen_ignored, ATT_PAIR_COUNT - 1);
    assert_non_null(strstr(find_line("start Coll in"), "RING LL rank"));

    setenv("NCCL_ALGO", "nvls", 1);
    ncclResult_t wanted = ncclInvalidUsage;
    assert_int_equal(run_threads(2, expecting, &wanted), 0);

    setenv("NCCL_ALGO", "rung", 1);
    assert_int_equal(run_threads(2, one_all_reduce, NULL), 2); /* no communicator */
    assert_non_null(strstr(ncclGetLastError(NULL), "rung"));
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
}

int main(void)
{
    setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
#define TEST(function) cmocka_unit_test_setup(function, reset)
    const struct CMUnitTest tests[] = {
        TEST(test_order_of_a_call), TEST(test_conversions), TEST(test_mask_is_sampled_at_the_call),
        TEST(test_group), TEST(test_simulation), TEST(test_channels_are_clamped),
        TEST(test_small_messages_have_few_channels), TEST(test_nonsense_fails_the_call),
        TEST(test_chunk_is_clamped_and_floored), TEST(test_variables_rule_pairs_out)};
    return cmocka_run_group_tests_name("fabric_plugins", tests, NULL, NULL);
}
