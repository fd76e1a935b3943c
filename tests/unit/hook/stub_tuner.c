/*
 * A tuner of somebody else: Ring/LL on 2 channels, with ABI 6 in chunks of 4096 bytes: slow.
 * Appends one line for each communicator to the file STUB_LOG: the questions it was asked.
 * STUB_FAIL=init has its init fail. With STUB_NET it is also what NCCL looks for in a net plugin, of
 * a version that all know; nobody calls it.
 */
#include "attune/setting.h"
#include "hook/abi/tuner_v3.h"
#include "hook/abi/tuner_v6.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stub {
    size_t ranks;
    long questions, chunks;
} stub_t;

static int begin(size_t ranks, void **context)
{
    const char *fail = getenv("STUB_FAIL");
    if (fail != NULL && strcmp(fail, "init") == 0)
        return 3;
    stub_t *stub = calloc(1, sizeof *stub);
    if (stub == NULL)
        return 3;
    stub->ranks = ranks;
    *context = stub;
    return 0;
}

static int answer(void *context, float **costs, int protocols, int *channels)
{
    stub_t *stub = context;
    float *cell = (float *)costs + ATT_ALGORITHM_RING * protocols + ATT_PROTOCOL_LL;
    stub->questions++;
    if (*cell >= 0)
        *cell = 0;
    *channels = 2;
    return 0;
}

static int end(void *context)
{
    stub_t *stub = context;
    const char *path = getenv("STUB_LOG");
    FILE *file = path != NULL ? fopen(path, "ae") : NULL;
    if (file != NULL) {
        fprintf(file, "ranks %zu questions %ld chunks %ld\n", stub->ranks, stub->questions,
                stub->chunks);
        fclose(file);
    }
    free(stub);
    return 0;
}

#if STUB_ABI == 3
static int init(size_t ranks, size_t nodes, att_nccl_logger_fn logger, void **context)
{
    return begin(ranks, context);
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int *channels)
{
    return answer(context, table, protocols, channels);
}

__attribute__((visibility("default")))
const att_tuner_v3_t ncclTunerPlugin_v3 = {"stub", init, get_coll_info, end};
#else
static int init(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                att_nccl_logger_fn logger, att_nvl_domains_v5_t *domains,
                att_tuner_constants_v5_t *constants)
{
    return domains != NULL && constants != NULL && comm_id != 0 ? begin(ranks, context) : 3;
}

static int get_coll_info(void *context, int collective, size_t bytes, int pipe_ops, float **table,
                         int algorithms, int protocols, int registered, int *channels)
{
    return answer(context, table, protocols, channels);
}

static int get_chunk_size(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk)
{
    stub_t *stub = context;
    stub->chunks++;
    if (protocol == ATT_PROTOCOL_LL)
        *chunk = 4096;
    return 0;
}

__attribute__((visibility("default")))
const att_tuner_v6_t ncclTunerPlugin_v6 = {"stub", init, get_coll_info, end, get_chunk_size};
#endif

#ifdef STUB_NET
__attribute__((visibility("default"))) const char *const ncclNetPlugin_v8 = "stub";
#endif
