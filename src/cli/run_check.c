#include "cli/run_check.h"

#include "base/log.h"
#include "base/names.h"
#include "base/variables.h"
#include "cli/run_end.h"
#include "cli/variants_check.h"
#include "search/strategy_host.h"
#include "surface/surface.h"
#include "profile/counters.h"
#include "profile/trace_mode.h"

#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#define STRATEGY_DEADLINE_S 10.0

static void tell_switch(void)
{
    if (att_variable_is_on("ATTUNE_DISABLE"))
        att_log(ATT_LOG_WARN, "ATTUNE_DISABLE=%.40s: the hook does nothing, no call is tuned",
                getenv("ATTUNE_DISABLE"));
}

static int check_places(const att_config_t *config, att_places_t *places, att_error_t *error)
{
    int rc = att_places_find(places, error);
    if (rc != ATT_OK)
        return rc;
    if (places->hook[0] == '\0')
        return att_fail(error, ATT_ENOENT, "the NCCL plugin was not found; looked for %s",
                        places->hook_searched);
    if (places->sidecar[0] == '\0')
        return att_fail(error, ATT_ENOENT, "the sidecar was not found; looked for %s",
                        places->sidecar_searched);
    if (strcmp(config->fabric, "none") != 0 && places->fabric[0] == '\0')
        return att_fail(error, ATT_ENOENT, "the host fabric was not found; looked for %s",
                        places->fabric_searched);
    return ATT_OK;
}

static int check_strategy(const att_config_t *config, att_error_t *error)
{
    struct att_strategy_host *host;
    if (config->observe || config->apply[0] != '\0')
        return ATT_OK;
    int rc = att_strategy_host_create(config->plugin_path, ATT_HOST_CHILD, STRATEGY_DEADLINE_S,
                                      &host, error);
    if (rc != ATT_OK)
        return rc;
    rc = att_strategy_host_check(host, config->strategy, error);
    att_strategy_host_destroy(host);
    return rc;
}

static int refuse_load(const att_config_t *config, const att_surface_info_t *info,
                       att_error_t *error)
{
    char loads[ATT_SURFACE_LOADS * 32] = "";
    size_t used = 0;
    for (int i = 0; i < info->load_count && used < sizeof loads; i++)
        used += (size_t)snprintf(loads + used, sizeof loads - used, "%s%s", i == 0 ? "" : ", ",
                                 info->loads[i]);
    return att_fail(error, ATT_EUSAGE, "--load: surface %.80s has no load '%.40s', but %s",
                    config->surface, config->load, loads);
}

static int check_fabric(const att_config_t *config, att_error_t *error)
{
    struct att_surface *surface;
    bool model = strcmp(config->fabric, "model") == 0;
    if (!model && config->surface[0] != '\0')
        return att_fail(error, ATT_EUSAGE, "--surface needs --fabric model");
    if (!model && strcmp(config->load, "none") != 0)
        return att_fail(error, ATT_EUSAGE, "--load needs --fabric model");
    if (!model)
        return ATT_OK;
    if (config->surface[0] == '\0')
        return att_fail(error, ATT_EUSAGE, "--fabric model needs --surface NAME");
    int rc = att_surface_open(config->surface, &surface, error);
    if (rc != ATT_OK)
        return rc;
    if (att_surface_info(surface)->kind != ATT_SURFACE_MODELLED)
        rc = att_fail(error, ATT_EUSAGE,
                      "--surface: %.80s is recorded and has gaps; --fabric model needs a modelled "
                      "one",
                      config->surface);
    else if (att_surface_load_index(surface, config->load) < 0)
        rc = refuse_load(config, att_surface_info(surface), error);
    att_surface_close(surface);
    return rc;
}

/* Tasks of which that run knows nothing: NCCL's choice is not what it found for them. */
static void tell_unsearched(const char *folder, const att_tasks_t *tasks)
{
    static const char *const ends[] = {"settled", "failed", "refused"};
    size_t without = tasks->count;
    for (size_t i = 0; i < tasks->count; i++)
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
            without -= strcmp(tasks->rows[i].phase, ends[e]) == 0;
    if (without > 0)
        att_log(ATT_LOG_WARN,
                "--apply: %s: %zu of its %zu tasks were not searched to the end: they have NCCL's "
                "choice now, and no search",
                folder, without, tasks->count);
}

/* The file and its format; whether it fits the job is for the sidecar, which sees the job. */
static int check_apply(att_config_t *config, att_error_t *error)
{
    char path[PATH_MAX + 16];
    char end_text[ATT_RUN_END_TEXT];
    att_run_end_t end;
    att_tasks_t tasks;
    att_error_t inner = {""};
    if (config->apply[0] == '\0')
        return ATT_OK;
    if (config->observe)
        return att_fail(error, ATT_EUSAGE, "--apply and --observe exclude each other");
    char *folder = realpath(config->apply, NULL);
    if (folder == NULL)
        return att_fail_errno(error, "--apply: %s", config->apply);
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    att_run_end_look(folder, &end);
    int rc = att_tasks_read(path, &tasks, &inner);
    if (rc != ATT_OK) {
        rc = att_fail(error, (att_status_t)-rc, "--apply: %s", inner.text);
        goto free_folder;
    }
    if (tasks.count == 0)
        rc = att_fail(error, ATT_EINPUT, "--apply: %s has no task", path);
    if (rc == ATT_OK && att_run_end_text(&end, &tasks, end_text)[0] != '\0')
        att_log(ATT_LOG_WARN, "--apply: %s: %s", config->apply, end_text);
    if (rc == ATT_OK)
        tell_unsearched(config->apply, &tasks);
    att_tasks_free(&tasks);
    if (rc == ATT_OK)
        rc = att_config_set(config, "apply", folder, "--apply", error);
free_folder:
    free(folder);
    return rc;
}

/* The list, what of it the user has fixed already, and what it costs: said before anything starts.
 */
static int check_variants(const att_config_t *config, att_error_t *error)
{
    char cap[24];
    att_variants_t variants;
    int rc = att_variants_parse(config->variants, &variants, error);
    if (rc != ATT_OK || variants.count == 0)
        return rc;
    if (strcmp(config->preload, "off") == 0)
        return att_fail(error, ATT_EUSAGE, "--variants needs the preload: leave out --preload off");
    rc = att_variants_check(&variants, att_pins_own_variable, NULL, error);
    if (rc != ATT_OK || strcmp(config->fabric, "none") != 0)
        return rc;
    const att_variants_cost_t cost = att_variants_cost(&variants, att_pins_own_variable, NULL);
    const uint64_t bytes = cost.bytes;
    const uint32_t channels = cost.channels;
    att_bytes_text((uint64_t)config->variants_memory, cap, sizeof cap);
    if (bytes > (uint64_t)config->variants_memory)
        return att_fail(error, ATT_EUSAGE,
                        "--variants: %u variants of up to %u channels may take %.1f GiB on each "
                        "GPU for every communicator, but --variants-memory is %s; name fewer, set "
                        "NCCL_MAX_CTAS, or allow more",
                        variants.count, channels, (double)bytes / 1073741824.0, cap);
    att_log(ATT_LOG_WARN,
            "--variants: %u more communicators for each one of the job, of up to %u channels: up "
            "to %.1f GiB on each GPU",
            variants.count, channels, (double)bytes / 1073741824.0);
    return ATT_OK;
}

static int check_quarantine(att_config_t *config, att_error_t *error)
{
    char path[PATH_MAX + 16];
    if (config->quarantine[0] == '\0')
        return ATT_OK;
    char *folder = realpath(config->quarantine, NULL);
    if (folder == NULL)
        return att_fail_errno(error, "--quarantine: %s", config->quarantine);
    snprintf(path, sizeof path, "%s/lists.jsonl", folder);
    int rc =
        access(path, R_OK) == 0
            ? att_config_set(config, "quarantine", folder, "--quarantine", error)
            : att_fail(error, ATT_ENOENT, "--quarantine: %s: no run folder (lists.jsonl)", folder);
    free(folder);
    return rc;
}

int att_run_check(att_config_t *config, att_places_t *places, att_error_t *error)
{
    int rc = check_strategy(config, error);
    if (rc == ATT_OK)
        rc = check_fabric(config, error);
    if (rc == ATT_OK)
        rc = check_apply(config, error);
    if (rc == ATT_OK)
        rc = att_counters_check(config->counters, error);
    att_trace_mode_t trace;
    if (rc == ATT_OK)
        rc = att_trace_mode_parse(config->trace, "--trace", &trace, error);
    if (rc == ATT_OK)
        rc = check_variants(config, error);
    if (rc == ATT_OK)
        rc = check_quarantine(config, error);
    if (rc == ATT_OK)
        rc = check_places(config, places, error);
    if (rc == ATT_OK)
        tell_switch();
    return rc;
}
