/*
 * fixed_tuner: the tuner plugin of `attune bench --setting` and `--sweep`. It applies to every call
 * the setting that stands in the driver's memory file (src/cli/bench_setting.h) and searches
 * nothing. Exports ncclTunerPlugin_v5 (NCCL 2.28.3+) and _v6 (2.30.3+: chunk size).
 *
 * Layouts: NCCL src/include/plugin/tuner/tuner_v5.h and tuner_v6.h, 2.30.
 */
#include "cli/bench_setting.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT       __attribute__((visibility("default")))
#define NCCL_SUCCESS 0

typedef void (*logger_fn)(int level, unsigned long flags, const char *file, int line,
                          const char *format, ...);

struct tuner_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, logger_fn log,
                void *domain_info, void *constants);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels);
    int (*finalize)(void *context);
};

struct tuner_v6 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, logger_fn log,
                void *domain_info, void *constants);
    int (*get_coll_info)(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels);
    int (*finalize)(void *context);
    int (*get_chunk_size)(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk);
};

/* Mapped while any communicator has this tuner. */
static att_bench_setting_table_t *table;
static unsigned users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void open_table(void)
{
    const char *path = getenv(ATT_BENCH_SETTING_VARIABLE);
    if (path == NULL) {
        fprintf(stderr, "attune bench tuner: %s is not set: NCCL's choice is kept\n",
                ATT_BENCH_SETTING_VARIABLE);
        return;
    }
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    void *memory = MAP_FAILED;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size == sizeof *table)
        memory = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (memory == MAP_FAILED || ((att_bench_setting_table_t *)memory)->abi != ATT_BENCH_SETTING_ABI)
        fprintf(stderr, "attune bench tuner: %s is no table of settings: NCCL's choice is kept\n",
                path);
    else
        table = memory;
}

static int init(void **context, uint64_t comm_id, size_t ranks, size_t nodes, logger_fn log,
                void *domain_info, void *constants)
{
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        open_table();
    pthread_mutex_unlock(&lock);
    *context = NULL;
    return NCCL_SUCCESS;
}

static int finalize(void *context)
{
    pthread_mutex_lock(&lock);
    if (--users == 0 && table != NULL) {
        munmap(table, sizeof *table);
        table = NULL;
    }
    pthread_mutex_unlock(&lock);
    return NCCL_SUCCESS;
}

/* NCCL's table is float[algorithms][protocols]; negative entries are not available. */
static void note(const float *cost, int algorithms, int protocols)
{
    uint32_t legal = 0;
    int cheapest = -1;
    float least = 0;
    for (int a = 0; a < algorithms && a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < protocols && p < ATT_PROTOCOL_COUNT; p++) {
            float value = cost[a * protocols + p];
            if (value < 0)
                continue;
            legal |= ATT_PAIR_BIT(a, p);
            atomic_store(&table->cost_us[a * ATT_PROTOCOL_COUNT + p], value);
            if (cheapest < 0 || value < least) {
                cheapest = a * ATT_PROTOCOL_COUNT + p;
                least = value;
            }
        }
    atomic_fetch_add(&table->decisions, 1);
    atomic_fetch_and(&table->legal_pairs, legal);
    atomic_store(&table->native_pair, cheapest);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **costs,
                         int algorithms, int protocols, int registered, int *channels)
{
    if (table == NULL)
        return NCCL_SUCCESS;
    float *cost = (float *)costs;
    note(cost, algorithms, protocols);
    att_setting_t setting = table->setting;
    if (setting.algorithm != ATT_ALGORITHM_KEEP) {
        bool known = setting.algorithm < algorithms && setting.protocol < protocols;
        if (!known || cost[setting.algorithm * protocols + setting.protocol] < 0) {
            atomic_fetch_add(&table->refused, 1);
            return NCCL_SUCCESS;
        }
        cost[setting.algorithm * protocols + setting.protocol] = 0.0f;
    }
    if (setting.channels != 0)
        *channels = setting.channels;
    return NCCL_SUCCESS;
}

/* NVLS and CollNet slots are no larger than NCCL's own chunk: never above it there. */
static int get_chunk_size(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk)
{
    if (table == NULL || table->setting.chunk_bytes == 0)
        return NCCL_SUCCESS;
    att_setting_t setting = table->setting;
    if (setting.algorithm != ATT_ALGORITHM_KEEP &&
        (setting.algorithm != algorithm || setting.protocol != protocol))
        return NCCL_SUCCESS;
    static const size_t grains[] = {16, 1920, 512}; /* device.h ncclProtoGrainSize */
    size_t wanted = setting.chunk_bytes;
    if (algorithm >= ATT_ALGORITHM_COLLNET_DIRECT && algorithm <= ATT_ALGORITHM_NVLS_TREE &&
        wanted > *chunk)
        return NCCL_SUCCESS;
    if (protocol < 0 || protocol >= ATT_PROTOCOL_COUNT || wanted < grains[protocol])
        return NCCL_SUCCESS;
    *chunk = wanted;
    atomic_fetch_add(&table->chunk_calls, 1);
    return NCCL_SUCCESS;
}

EXPORT const struct tuner_v5 ncclTunerPlugin_v5 = {"attune-bench", init, get_coll_info, finalize};
EXPORT const struct tuner_v6 ncclTunerPlugin_v6 = {"attune-bench", init, get_coll_info, finalize,
                                                   get_chunk_size};
