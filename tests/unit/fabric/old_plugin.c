/*
 * old_plugin: a library with a tuner v5, a profiler v5 and an env plugin v1, to be found by path.
 * It counts its calls for the test.
 */
#include "old_plugin.h"

#include "fabric/plugin_abi.h"

#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) old_counts_t old_counts;

static ncclResult_t tuner_init(void **context, uint64_t id, size_t ranks, size_t nodes,
                               ncclDebugLogger_t log, ncclNvlDomainInfo_t *domains,
                               ncclTunerConstants_t *constants)
{
    old_counts.tuner++;
    log(3, ~0ul, __FILE__, __LINE__, "old tuner for %zu ranks", ranks);
    return ncclSuccess;
}

static ncclResult_t get_coll_info(void *context, int function, size_t bytes, int ops, float **table,
                                  int algorithms, int protocols, int registered, int *channels)
{
    old_counts.tuner++;
    return ncclSuccess;
}

static ncclResult_t done(void *context)
{
    return ncclSuccess;
}

/* What follows a v5 struct in memory is not its own: a call through it would crash. */
struct tuner_v5 {
    const char *name;
    void *init, *get_coll_info, *finalize;
    void *poison;
};
__attribute__((visibility("default"))) extern const struct tuner_v5 ncclTunerPlugin_v5;
const struct tuner_v5 ncclTunerPlugin_v5 = {"old", (void *)tuner_init, (void *)get_coll_info,
                                            (void *)done, (void *)8};

static ncclResult_t profiler_init(void **context, uint64_t id, int *mask, const char *name,
                                  int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
    __atomic_store_n(mask, ncclProfileColl, __ATOMIC_RELAXED); /* several ranks start at once */
    *context = mask;
    return ncclSuccess;
}

static ncclResult_t start_event(void *context, void **handle, ncclProfilerEventDescr_t *event)
{
    *handle = NULL;
    if (event->type == ncclProfileColl) {
        old_counts.profiler++;
        old_counts.tree += !strcmp(event->coll.algo, "TREE");
    }
    return ncclSuccess;
}

static ncclResult_t stop_event(void *handle)
{
    return ncclSuccess;
}

static ncclResult_t record_state(void *handle, int state, ncclProfilerEventStateArgs_t *args)
{
    return ncclSuccess;
}

__attribute__((visibility("default"))) extern const ncclProfiler_v6_t ncclProfiler_v5;
const ncclProfiler_v6_t ncclProfiler_v5 = {"old",      profiler_init, start_event,
                                           stop_event, record_state,  done};

static ncclResult_t env_init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    if (major == 2 && minor == 30 && !strcmp(suffix, ""))
        old_counts.env++;
    return ncclSuccess;
}

static ncclResult_t env_finalize(void)
{
    return ncclSuccess;
}

static const char *get_env(const char *name)
{
    if (!strcmp(name, "NCCL_ALGO"))
        return "tree";
    return getenv(name);
}

struct env_v1 {
    const char *name;
    void *init, *finalize, *get_env;
};
__attribute__((visibility("default"))) extern const struct env_v1 ncclEnvPlugin_v1;
const struct env_v1 ncclEnvPlugin_v1 = {"old", (void *)env_init, (void *)env_finalize,
                                        (void *)get_env};
