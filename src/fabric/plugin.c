#include "fabric/plugin.h"

#include "fabric/error.h"
#include "fabric/plugin_file.h"
#include "fabric/plugin_old.h"
#include "fabric/version.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum att_plugin_state {
    PLUGIN_READY = 0,
    PLUGIN_LOADED = 1,
    PLUGIN_FAILED = 2
} att_plugin_state_t;

/* From which NCCL on a symbol is looked for; newest first, {0} ends the list. */
typedef struct att_abi {
    int number, since;
} att_abi_t;

typedef struct att_plugin {
    const char *kind;     /* "tuner" */
    const char *variable; /* "NCCL_TUNER_PLUGIN" */
    const char *stem;     /* of its symbols: "ncclTunerPlugin_v" */
    const att_abi_t *abis;
    int net_since; /* NCCL that takes it from the net plugin's file when it has none; 0: none does
                    */
    att_plugin_state_t state;
    void *library;
    const void *symbol;
    int abi;
    int references;
} att_plugin_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* src/plugin of each version; profilers before 4 have other shapes and no GPU times: not called. */
static const att_abi_t tuner_abis[] = {{6, 23003}, {5, 22803}, {4, 22403},
                                       {3, 22203}, {2, 22105}, {0, 0}};
static const att_abi_t profiler_abis[] = {{6, 22902}, {5, 22803}, {4, 22703}, {0, 0}};
static const att_abi_t env_abis[] = {{2, 23007}, {1, 22807}, {0, 0}};

static att_plugin_t tuner = {.kind = "tuner",
                             .variable = "NCCL_TUNER_PLUGIN",
                             .stem = "ncclTunerPlugin_v",
                             .abis = tuner_abis,
                             .net_since = 22105};
static att_plugin_t profiler = {.kind = "profiler",
                                .variable = "NCCL_PROFILER_PLUGIN",
                                .stem = "ncclProfiler_v",
                                .abis = profiler_abis,
                                .net_since = 22803};
static att_plugin_t environment = {
    .kind = "env", .variable = "NCCL_ENV_PLUGIN", .stem = "ncclEnvPlugin_v", .abis = env_abis};

static void load(att_plugin_t *plugin, const char *name)
{
    plugin->state = PLUGIN_FAILED;
    int oldest = INT_MAX;
    for (const att_abi_t *abi = plugin->abis; abi->number; abi++)
        oldest = abi->since;
    if (att_fabric_version() < oldest)
        return; /* it does not know this kind */
    if (name && !strcasecmp(name, "none"))
        return;
    plugin->library = att_plugin_find(plugin->kind, name);
    if (!plugin->library && plugin->net_since && att_fabric_version() >= plugin->net_since) {
        plugin->library = att_plugin_net_library(att_plugin_getenv("NCCL_NET_PLUGIN"));
        name = plugin->library ? "the net plugin" : name;
    }
    if (!plugin->library) {
        if (name)
            att_fabric_info("%s: cannot load %s", plugin->variable, name);
        return;
    }
    char symbol[32];
    for (const att_abi_t *abi = plugin->abis; abi->number; abi++) {
        if (att_fabric_version() < abi->since)
            continue;
        snprintf(symbol, sizeof symbol, "%s%d", plugin->stem, abi->number);
        plugin->symbol = dlsym(plugin->library, symbol);
        if (plugin->symbol) {
            plugin->abi = abi->number;
            plugin->state = PLUGIN_LOADED;
            att_fabric_info("%s: using %s of %s", plugin->variable, symbol,
                            name ? name : "the library");
            return;
        }
    }
    att_fabric_info("%s: %s has none of the %s* that this version looks for", plugin->variable,
                    name ? name : "the library", plugin->stem);
    dlclose(plugin->library);
    plugin->library = NULL;
}

static const void *acquire(att_plugin_t *plugin, int *abi)
{
    const char *name = att_plugin_getenv(plugin->variable);
    att_plugin_net_load(att_plugin_getenv("NCCL_NET_PLUGIN"));
    pthread_mutex_lock(&mutex);
    if (plugin->state == PLUGIN_READY)
        load(plugin, name);
    const void *symbol = NULL;
    if (plugin->state == PLUGIN_LOADED) {
        plugin->references++;
        symbol = plugin->symbol;
        *abi = plugin->abi;
    }
    pthread_mutex_unlock(&mutex);
    return symbol;
}

static void release(att_plugin_t *plugin)
{
    pthread_mutex_lock(&mutex);
    if (--plugin->references == 0) {
        dlclose(plugin->library);
        plugin->library = NULL;
        plugin->symbol = NULL;
        plugin->state = PLUGIN_READY;
    }
    pthread_mutex_unlock(&mutex);
}

const ncclTuner_v6_t *att_plugin_tuner(bool *has_chunks)
{
    int abi = 0;
    const void *symbol = acquire(&tuner, &abi);
    *has_chunks = symbol && abi >= 6;
    return att_plugin_wrap_tuner(symbol, abi);
}

void att_plugin_release_tuner(void)
{
    release(&tuner);
}

const ncclProfiler_v6_t *att_plugin_profiler(void)
{
    int abi = 0;
    const void *symbol = acquire(&profiler, &abi);
    return att_plugin_wrap_profiler(symbol, abi);
}

void att_plugin_release_profiler(void)
{
    release(&profiler);
}

static const ncclEnv_v2_t *env_plugin;

static void finalize_environment(void)
{
    if (env_plugin && env_plugin->finalize)
        env_plugin->finalize();
    env_plugin = NULL;
}

typedef ncclResult_t (*env_init_v1_fn)(uint8_t major, uint8_t minor, uint8_t patch,
                                       const char *suffix);

static void load_environment(void)
{
    load(&environment, getenv(environment.variable));
    if (environment.state != PLUGIN_LOADED)
        return;
    const ncclEnv_v2_t *plugin = environment.symbol;
    int version = att_fabric_version();
    uint8_t minor = (uint8_t)(version / 100 % 100), patch = (uint8_t)(version % 100);
    ncclResult_t result = environment.abi == 2
                              ? plugin->init(2, minor, patch, "", att_fabric_logger)
                              : ((env_init_v1_fn)(void (*)(void))plugin->init)(2, minor, patch, "");
    if (result != ncclSuccess) {
        att_fabric_error(result, "the env plugin %s failed to start", plugin->name);
        return;
    }
    env_plugin = plugin;
    atexit(finalize_environment);
}

const char *att_plugin_getenv(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_environment);
    return env_plugin ? env_plugin->getEnv(name) : getenv(name);
}

int att_plugin_getenv_int(const char *name, int fallback)
{
    const char *text = att_plugin_getenv(name);
    if (!text || !*text)
        return fallback;
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 0);
    if (errno || *end || value < 0 || value > 1 << 30)
        return fallback;
    return (int)value;
}

#define PARAMS 8

static bool no_cache(const char *name)
{
    size_t length = strlen(name);
    const char *list = getenv("NCCL_NO_CACHE");
    for (const char *at = list != NULL ? list : ""; *at != '\0'; at += *at == ',') {
        size_t span = strcspn(at, ",");
        if ((span == 3 && strncmp(at, "ALL", 3) == 0) ||
            (span == length && strncmp(at, name, span) == 0))
            return true;
        at += span;
    }
    return false;
}

int att_plugin_param_int(const char *name, int fallback)
{
    static struct {
        const char *name;
        int value;
    } params[PARAMS];
    static int count;
    if (no_cache(name))
        return att_plugin_getenv_int(name, fallback);
    int value = att_plugin_getenv_int(name, fallback);
    pthread_mutex_lock(&mutex);
    int at = 0;
    while (at < count && strcmp(params[at].name, name) != 0)
        at++;
    if (at < count) {
        value = params[at].value;
    } else if (count < PARAMS) {
        params[count].name = name; /* a literal */
        params[count++].value = value;
    }
    pthread_mutex_unlock(&mutex);
    return value;
}
