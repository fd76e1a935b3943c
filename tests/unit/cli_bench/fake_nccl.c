/*
 * fake_nccl: an NCCL of a few functions for tests of the workload driver: ranks are threads of one
 * process, float only, data move at once, and the "fabric's clock" is a formula of the setting that
 * the tuner plugin gave. So everything that the driver prints can be known beforehand.
 *
 * A call takes duration_us(setting): 1 us times 1 for ring/simple, 2 for any other pair; times
 * 8 / channels below 8 channels, channels / 8 above; times 1.5 when the chunk is not 128 KiB.
 * NCCL's own choice is ring/simple with 2 channels.
 *
 * FAKE_NCCL_WRONG=n makes the first n elements of rank 0's results wrong; FAKE_NCCL_FAIL=rank:call
 * makes that call of that rank fail. FAKE_NCCL_LOG=file: a line for each communicator with what its
 * NCCL_NTHREADS was.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT    __attribute__((visibility("default")))
#define MAX_RANKS 64

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE };
static const int nccl_function[] = {4, 2, 3, 0, 1}; /* ncclFunc_t */

struct tuner_v6 {
    const char *name;
    int (*init)(void **, uint64_t, size_t, size_t, void *, void *, void *);
    int (*get_coll_info)(void *, int, size_t, int, float **, int, int, int, int *);
    int (*finalize)(void *);
    int (*get_chunk_size)(void *, int, size_t, int, int, int, size_t *);
};

struct call {
    int kind, op, root;
    const float *send;
    float *recv, *result;
    size_t count;
};

struct comm {
    int rank, ranks;
    uint64_t clock_ns, calls;
    void *context;
};

typedef struct {
    char bytes[128];
} unique_id;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int arrived, generation, broken;
static struct call posted[MAX_RANKS];
static const struct tuner_v6 *tuner;
static _Thread_local int depth;
static _Thread_local struct {
    struct comm *comm;
    struct call call;
} queue[MAX_RANKS];
static _Thread_local int queued;

#ifndef FAKE_GPU /* else an NCCL that is no host fabric */
EXPORT int ncclFabricDeviceInfo(unsigned char *uuid, int *units)
{
    memset(uuid, 0, 16);
    *units = 16;
    return 0;
}

EXPORT void ncclFabricAdvance(struct comm *comm, double us)
{
    comm->clock_ns += (uint64_t)(us * 1000);
}

EXPORT uint64_t ncclFabricNow(struct comm *comm)
{
    return comm->clock_ns;
}
#endif

EXPORT int ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text != NULL ? atoi(text) : 23007;
    return 0;
}

EXPORT int ncclGetUniqueId(unique_id *id)
{
    memset(id, 1, sizeof *id);
    return 0;
}

EXPORT const char *ncclGetErrorString(int result)
{
    return result == 0 ? "no error" : "fake failure";
}

EXPORT const char *ncclGetLastError(void *comm)
{
    return "made to fail";
}

EXPORT int ncclCommInitRank(struct comm **comm, int ranks, unique_id id, int rank)
{
    if (ranks > MAX_RANKS || id.bytes[0] != 1)
        return 4;
    *comm = calloc(1, sizeof **comm);
    (*comm)->rank = rank;
    (*comm)->ranks = ranks;
    const char *path = getenv("NCCL_TUNER_PLUGIN"), *log = getenv("FAKE_NCCL_LOG");
    const char *threads = getenv("NCCL_NTHREADS"), *anew = getenv("NCCL_NO_CACHE");
    pthread_mutex_lock(&lock);
    FILE *file = log != NULL ? fopen(log, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "threads=%s no_cache=%s\n", threads != NULL ? threads : "-",
                anew != NULL ? anew : "-");
        fclose(file);
    }
    broken = 0;
    if (path != NULL) {
        void *library = dlopen(path, RTLD_NOW);
        tuner = library != NULL ? dlsym(library, "ncclTunerPlugin_v6") : NULL;
    } else {
        tuner = NULL;
    }
    if (tuner != NULL)
        tuner->init(&(*comm)->context, 7, (size_t)ranks, 1, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int ncclCommDestroy(struct comm *comm)
{
    if (tuner != NULL)
        tuner->finalize(comm->context);
    free(comm);
    return 0;
}

EXPORT int ncclCommAbort(struct comm *comm)
{
    return ncclCommDestroy(comm);
}

static double duration_us(const struct comm *comm, const struct call *call)
{
    float table[7][3];
    for (int a = 0; a < 7; a++)
        for (int p = 0; p < 3; p++)
            table[a][p] = a == 1 || (a == 0 && call->kind == ALL_REDUCE) ? 50.0f - p : -1.0f;
    table[1][2] = 10.0f;
    int channels = 0, a = 1, p = 2;
    size_t parts =
        call->kind == ALL_GATHER || call->kind == REDUCE_SCATTER ? (size_t)comm->ranks : 1;
    size_t chunk = 1 << 20;
    if (tuner != NULL) {
        tuner->get_coll_info(comm->context, nccl_function[call->kind], call->count * 4 * parts, 1,
                             (float **)table, 7, 3, 0, &channels);
        for (int i = 0; i < 21; i++)
            if (table[i / 3][i % 3] >= 0 && table[i / 3][i % 3] < table[a][p]) {
                a = i / 3;
                p = i % 3;
            }
        tuner->get_chunk_size(comm->context, nccl_function[call->kind], 1, a, p, 1, &chunk);
    }
    if (channels == 0)
        channels = 2;
    double us = 1.0;
    us *= a == 1 && p == 2 ? 1 : 2;
    us *= channels < 8 ? 8.0 / channels : channels / 8.0;
    us *= chunk == 128 << 10 ? 1 : 1.5;
    return us;
}

static float fold(int op, float a, float b)
{
    switch (op) {
    case 1:
        return a * b;
    case 2:
        return a > b ? a : b;
    case 3:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

static void compute(const struct comm *comm, struct call *call)
{
    int ranks = comm->ranks;
    size_t count = call->count * (call->kind == ALL_GATHER ? (size_t)ranks : 1);
    call->result = malloc((count > 0 ? count : 1) * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        if (call->kind == ALL_GATHER) {
            call->result[i] = posted[i / call->count].send[i % call->count];
        } else if (call->kind == BROADCAST) {
            call->result[i] = posted[call->root].send[i];
        } else {
            size_t at = i + (call->kind == REDUCE_SCATTER ? (size_t)comm->rank * call->count : 0);
            float value = posted[0].send[at];
            for (int r = 1; r < ranks; r++)
                value = fold(call->op, value, posted[r].send[at]);
            call->result[i] = call->op == 4 ? value / (float)ranks : value;
        }
    }
    const char *wrong = getenv("FAKE_NCCL_WRONG");
    size_t spoiled = wrong != NULL && comm->rank == 0 ? (size_t)atoi(wrong) : 0;
    for (size_t i = 0; i < spoiled && i < count; i++)
        call->result[i] += 1;
}

/* All ranks meet; `mine` of them are this thread's. 2 when one has failed. */
static int meet(int mine, int ranks)
{
    pthread_mutex_lock(&lock);
    int now = generation;
    arrived += mine;
    if (arrived == ranks) {
        arrived = 0;
        generation++;
        pthread_cond_broadcast(&changed);
    }
    while (generation == now && !broken)
        pthread_cond_wait(&changed, &lock);
    int result = broken ? 2 : 0;
    if (broken)
        arrived = 0;
    pthread_mutex_unlock(&lock);
    return result;
}

static int injected_failure(const struct comm *comm)
{
    int rank = -1;
    unsigned long call;
    const char *text = getenv("FAKE_NCCL_FAIL");
    return text != NULL && sscanf(text, "%d:%lu", &rank, &call) == 2 && rank == comm->rank &&
           call == comm->calls;
}

static int run_queue(void)
{
    int count = queued, ranks = count > 0 ? queue[0].comm->ranks : 0, rc = 0;
    queued = 0;
    for (int i = 0; i < count; i++) {
        posted[queue[i].comm->rank] = queue[i].call;
        if (injected_failure(queue[i].comm)) {
            pthread_mutex_lock(&lock);
            broken = 1;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
        }
        queue[i].comm->calls++;
    }
    rc = count > 0 ? meet(count, ranks) : 0;
    for (int i = 0; rc == 0 && i < count; i++)
        compute(queue[i].comm, &queue[i].call);
    if (rc == 0 && count > 0)
        rc = meet(count, ranks);
    for (int i = 0; rc == 0 && i < count; i++) {
        struct call *call = &queue[i].call;
        size_t size =
            call->count * 4 * (call->kind == ALL_GATHER ? (size_t)queue[i].comm->ranks : 1);
        if (call->kind != REDUCE || queue[i].comm->rank == call->root)
            memcpy(call->recv, call->result, size);
        free(call->result);
        queue[i].comm->clock_ns += (uint64_t)(duration_us(queue[i].comm, call) * 1000);
    }
    return rc == 0 && count > 0 ? meet(count, ranks) : rc;
}

static int enqueue(struct comm *comm, struct call call, int type)
{
    if (type != 7)
        return 4;
    queue[queued].comm = comm;
    queue[queued].call = call;
    queued++;
    return depth > 0 ? 0 : run_queue();
}

EXPORT int ncclGroupStart(void)
{
    depth++;
    return 0;
}

EXPORT int ncclGroupEnd(void)
{
    return --depth > 0 ? 0 : run_queue();
}

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                         struct comm *comm, void *stream)
{
    return enqueue(comm, (struct call){ALL_REDUCE, op, 0, send, recv, NULL, count}, type);
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type, struct comm *comm,
                         void *stream)
{
    return enqueue(comm, (struct call){ALL_GATHER, 0, 0, send, recv, NULL, count}, type);
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                             struct comm *comm, void *stream)
{
    return enqueue(comm, (struct call){REDUCE_SCATTER, op, 0, send, recv, NULL, count}, type);
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                         struct comm *comm, void *stream)
{
    return enqueue(comm, (struct call){BROADCAST, 0, root, send, recv, NULL, count}, type);
}

EXPORT int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                      struct comm *comm, void *stream)
{
    return enqueue(comm, (struct call){REDUCE, op, root, send, recv, NULL, count}, type);
}
