#include "cli/job_environment.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* Names of attune's own plugin: the file, and what NCCL makes of NCCL_TUNER_PLUGIN=attune. */
static const char *const own_names[] = {"libattune-nccl.so", "attune", "libnccl-tuner-attune.so",
                                        "libnccl-profiler-attune.so"};

static bool names_attune(const char *value)
{
    const char *slash = strrchr(value, '/');
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++)
        if (strcmp(slash != NULL ? slash + 1 : value, own_names[i]) == 0)
            return true;
    return false;
}

static const char *const plugin_variables[] = {"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"};
/* Where the hook finds the user's (hook/chain.h, hook/chain_profiler.h). */
static const char *const chain_variables[] = {"ATTUNE_CHAIN_TUNER", "ATTUNE_CHAIN_PROFILER"};

const char *att_job_environment_other(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' && !names_attune(value) ? value : NULL;
}

static int set(const char *name, const char *value, att_error_t *error)
{
    return setenv(name, value, 1) == 0 ? ATT_OK : att_fail_errno(error, "%s", name);
}

static int set_fabric(const att_places_t *places, const att_config_t *config, att_error_t *error)
{
    char path[3 * PATH_MAX];
    const char *before = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof path, "%s%s%s", places->fabric,
             before != NULL && before[0] != '\0' ? ":" : "", before != NULL ? before : "");
    int rc = set("LD_LIBRARY_PATH", path, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_FABRIC_MODE", config->fabric, error);
    if (rc == ATT_OK && config->surface[0] != '\0')
        rc = set("ATTUNE_FABRIC_SURFACE", config->surface, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_FABRIC_LOAD", config->load, error);
    return rc;
}

/* NCCL 2.27.3 takes plugins by their file's name alone: the user's word stays when it is that, and
 * LD_LIBRARY_PATH leads to this very hook. */
static bool found_by_name(const char *variable, const char *hook)
{
    const char *value = getenv(variable), *list = getenv("LD_LIBRARY_PATH");
    const char *slash = strrchr(hook, '/');
    if (value == NULL || list == NULL || slash == NULL || strcmp(value, slash + 1) != 0)
        return false;
    size_t length = (size_t)(slash - hook);
    for (const char *at = list; *at != '\0'; at += *at == ':') {
        size_t span = strcspn(at, ":");
        if (span == length && strncmp(at, hook, length) == 0)
            return true;
        at += span;
    }
    return false;
}

/* The user's own plugin goes behind attune's, unless the user has chained one already. */
static int set_plugins(const att_places_t *places, att_error_t *error)
{
    int rc = ATT_OK;
    for (size_t i = 0; rc == ATT_OK && i < sizeof plugin_variables / sizeof plugin_variables[0];
         i++) {
        const char *other = att_job_environment_other(plugin_variables[i]);
        if (other != NULL && getenv(chain_variables[i]) == NULL)
            rc = set(chain_variables[i], other, error);
        if (rc == ATT_OK && !found_by_name(plugin_variables[i], places->hook))
            rc = set(plugin_variables[i], places->hook, error);
    }
    return rc;
}

/* A first connection of an algorithm is a rendezvous inside a live call: have all of them made when
 * a communicator is made. */
static int set_connect(att_error_t *error)
{
    const char *value = getenv("NCCL_RUNTIME_CONNECT");
    if (value != NULL) {
        att_log(ATT_LOG_INFO,
                "NCCL_RUNTIME_CONNECT=%s is the user's: algorithms that NCCL has not "
                "connected by itself are not tried",
                value);
        return ATT_OK;
    }
    att_log(ATT_LOG_INFO, "NCCL_RUNTIME_CONNECT=0: NCCL connects every algorithm when it makes a "
                          "communicator, which costs device memory for each (about 9 MiB a channel "
                          "for Ring, up to three times that for Tree); set it to 1 to save that");
    return set("NCCL_RUNTIME_CONNECT", "0", error);
}

static bool is_preloaded(const char *list, const char *file)
{
    size_t length = strlen(file);
    for (const char *at = list; *at != '\0'; at += strspn(at, " :")) {
        size_t span = strcspn(at, " :");
        if (span == length && strncmp(at, file, span) == 0)
            return true;
        at += span;
    }
    return false;
}

/* The hook's own file in front, so that the command's calls pass through it. Named as plugin by the
 * same path it is one library with one state. */
static int set_preload(const att_places_t *places, const att_config_t *config, att_error_t *error)
{
    char value[3 * PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    if (!att_job_environment_preloads(config))
        return ATT_OK;
    bool nameable = strpbrk(places->hook, " :") == NULL;
    if (!nameable && strcmp(config->preload, "auto") == 0 && config->variants[0] == '\0') {
        if (strcmp(config->fabric, "none") != 0) /* has no graphs */
            return ATT_OK;
        att_log(ATT_LOG_WARN,
                "%s: a path with a blank or colon cannot be preloaded: the job is searched with "
                "--no-graphs alone, when it captures no CUDA graphs",
                places->hook);
        return ATT_OK;
    }
    if (!nameable)
        return att_fail(error, ATT_EUSAGE,
                        "--preload: %.200s: a path with a blank or colon cannot be preloaded",
                        places->hook);
    bool more = before != NULL && before[0] != '\0';
    if (more && is_preloaded(before, places->hook))
        return ATT_OK;
    snprintf(value, sizeof value, "%s%s%s", places->hook, more ? ":" : "", more ? before : "");
    return set("LD_PRELOAD", value, error);
}

bool att_job_environment_preloads(const att_config_t *config)
{
    bool needed = config->graphs || config->variants[0] != '\0';
    return strcmp(config->preload, "on") == 0 || (needed && strcmp(config->preload, "auto") == 0);
}

/* NCCL reads these once a process unless told not to, and reads them from the hook when it is its
 * environment plugin: so a communicator can be made with other values than the one before. */
static int set_variants(const att_places_t *places, const att_config_t *config, att_error_t *error)
{
    static const char uncached[] = "NCCL_NTHREADS,NCCL_BUFFSIZE";
    char list[4096];
    const char *before = getenv("NCCL_NO_CACHE");
    bool more = before != NULL && before[0] != '\0';
    if (config->variants[0] == '\0')
        return ATT_OK;
    snprintf(list, sizeof list, "%s%s%.4000s", uncached, more ? "," : "", more ? before : "");
    int rc = set("NCCL_NO_CACHE", list, error);
    if (rc == ATT_OK)
        rc = set("NCCL_ENV_PLUGIN", places->hook, error);
    return rc == ATT_OK ? set("ATTUNE_VARIANTS", config->variants, error) : rc;
}

int att_job_environment_set(const att_places_t *places, const att_config_t *config,
                            const att_job_folder_t *folder, att_error_t *error)
{
    int rc = set_plugins(places, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_RUN_ID", folder->run_id, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_RUN_DIR", folder->path, error);
    if (rc == ATT_OK && config->metrics_file[0] != '\0')
        rc = set("ATTUNE_METRICS_FILE", config->metrics_file, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_SHM_DIR", config->shm_dir, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_LOG", config->log, error);
    if (rc == ATT_OK && config->node[0] != '\0')
        rc = set("ATTUNE_NODE", config->node, error);
    if (rc == ATT_OK)
        rc = set("ATTUNE_GRAPHS", config->graphs ? "yes" : "no", error);
    if (rc == ATT_OK)
        rc = set_connect(error);
    if (rc == ATT_OK)
        rc = set_preload(places, config, error);
    if (rc == ATT_OK)
        rc = set_variants(places, config, error);
    if (rc == ATT_OK && strcmp(config->fabric, "none") != 0)
        rc = set_fabric(places, config, error);
    return rc;
}
