#include "sim/task.h"

#include "base/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COARSE 1.03 /* ratio of the chunks looked at first */
#define NEAR   48   /* points whose neighbourhood is looked at chunk by chunk */

struct att_sim_task {
    const struct att_surface *surface;
    att_sim_task_config_t config;
    att_space_t space;
    att_subspace_t subspaces[ATT_SURFACE_SUBSPACES];
    att_sim_optimum_t optima[ATT_SURFACE_LOADS];
    int known[ATT_SURFACE_LOADS];
    int native_channels; /* of NCCL's choice */
};

/* The task that is meant when collective or bytes are left open. */
static int choose(const att_surface_info_t *info, att_sim_task_config_t *config, att_error_t *error)
{
    for (int i = 0; i < info->task_count; i++) {
        const att_surface_task_t *task = &info->tasks[i];
        if ((config->collective >= 0 && config->collective != task->collective) ||
            (config->bytes != 0 && config->bytes != task->bytes))
            continue;
        config->collective = task->collective;
        config->bytes = task->bytes;
        return ATT_OK;
    }
    if (info->kind == ATT_SURFACE_MODELLED && config->bytes != 0) {
        for (int i = 0; i < info->task_count && config->collective < 0; i++)
            config->collective = info->tasks[i].collective;
        return ATT_OK; /* other sizes follow from the same constants */
    }
    char bytes[24];
    return att_fail(error, ATT_EUSAGE, "surface %s has no %s%s%s", info->name,
                    config->collective >= 0 ? att_collective_name(config->collective) : "task",
                    config->bytes != 0 ? " of " : "",
                    config->bytes != 0 ? att_bytes_text(config->bytes, bytes, sizeof bytes) : "");
}

int att_sim_task_create(const struct att_surface *surface, const att_sim_task_config_t *config,
                        struct att_sim_task **out, att_error_t *error)
{
    const att_surface_info_t *info = att_surface_info(surface);
    struct att_sim_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a task");
    task->surface = surface;
    task->config = *config;
    int rc = choose(info, &task->config, error);
    if (rc != ATT_OK) {
        free(task);
        return rc;
    }
    const att_sim_task_config_t *c = &task->config;
    uint32_t count =
        att_surface_space(surface, c->collective, c->bytes, c->six_knobs, task->subspaces);
    att_setting_t native = att_surface_default(surface, c->collective, c->bytes);
    task->native_channels = native.channels;
    if (c->objective == ATT_SIM_STEP && native.channels == 0)
        rc = att_fail(
            error, ATT_EINPUT,
            "surface %s does not say how many channels NCCL's choice uses: the step beside "
            "it is not known",
            info->name);
    native.transport = ATT_TRANSPORT_KEEP;
    native.threads = 0;
    native.chunk_bytes = 0;
    task->space = (att_space_t){.abi = ATT_STRATEGY_ABI,
                                .size = sizeof(att_space_t),
                                .bytes = c->bytes,
                                .collective = (uint32_t)c->collective,
                                .ranks = (uint32_t)info->ranks,
                                .nodes = (uint32_t)info->nodes,
                                .subspace_count = count,
                                .subspaces = task->subspaces,
                                .incumbent = native};
    if (rc == ATT_OK && count == 0) {
        char bytes[24];
        rc = att_fail(error, ATT_EUSAGE, "surface %s has nothing to search for %s of %s",
                      info->name, att_collective_name(c->collective),
                      att_bytes_text(c->bytes, bytes, sizeof bytes));
    }
    if (rc != ATT_OK) {
        free(task);
        return rc;
    }
    *out = task;
    return ATT_OK;
}

void att_sim_task_destroy(struct att_sim_task *task)
{
    free(task);
}

const att_space_t *att_sim_task_space(const struct att_sim_task *task)
{
    return &task->space;
}

const att_sim_task_config_t *att_sim_task_config(const struct att_sim_task *task)
{
    return &task->config;
}

double att_sim_task_collective_us(const struct att_sim_task *task, att_setting_t setting, int load)
{
    return att_surface_duration_us(task->surface, task->config.collective, task->config.bytes,
                                   setting, load);
}

double att_sim_task_step_us(const struct att_sim_task *task, att_setting_t setting, int load)
{
    double us = att_sim_task_collective_us(task, setting, load);
    if (us < 0)
        return us;
    int channels = setting.channels;
    if (channels == 0 && att_setting_is_keep(setting))
        channels = task->native_channels;
    else if (channels == 0)
        channels =
            att_surface_resolve(task->surface, task->config.collective, task->config.bytes, setting)
                .channels;
    return att_sim_step_us(&task->config.step, us, channels);
}

double att_sim_task_us(const struct att_sim_task *task, att_setting_t setting, int load)
{
    return task->config.objective == ATT_SIM_STEP ? att_sim_task_step_us(task, setting, load)
                                                  : att_sim_task_collective_us(task, setting, load);
}

/* ---- the optimum of a step: the surface knows only that of the collective ---- */

typedef struct att_sweep {
    const struct att_sim_task *task;
    int load;
    att_sim_optimum_t best[NEAR]; /* fastest first */
    int count;
} att_sweep_t;

static void look(att_sweep_t *sweep, att_setting_t setting)
{
    double us = att_sim_task_us(sweep->task, setting, sweep->load);
    if (us < 0 || (sweep->count == NEAR && us >= sweep->best[NEAR - 1].us))
        return;
    int i = sweep->count < NEAR ? sweep->count++ : NEAR - 1;
    for (; i > 0 && sweep->best[i - 1].us > us; i--)
        sweep->best[i] = sweep->best[i - 1];
    sweep->best[i] = (att_sim_optimum_t){setting, us};
}

static uint32_t next_value(uint32_t value, uint32_t step, double ratio)
{
    uint32_t next = (uint32_t)(value * ratio);
    next -= step > 1 ? (next - value) % step : 0;
    return next > value ? next : value + (step > 0 ? step : 1);
}

/* Chunks of [low, high] in steps of `ratio`, and "keep". */
static void look_along(att_sweep_t *sweep, const att_subspace_t *s, att_setting_t x, double low,
                       double high, double ratio)
{
    x.chunk_bytes = 0;
    look(sweep, x);
    if (s->chunk_max == 0)
        return;
    uint32_t step = s->chunk_step > 0 ? s->chunk_step : 1, first = s->chunk_min;
    if (low > first)
        first += (uint32_t)(low - first) / step * step;
    for (uint32_t chunk = first; chunk <= s->chunk_max && chunk <= high;
         chunk = next_value(chunk, step, ratio)) {
        x.chunk_bytes = chunk;
        look(sweep, x);
    }
}

static void look_everywhere(att_sweep_t *sweep, const att_subspace_t *s)
{
    uint32_t channels_step = s->channels_step > 0 ? s->channels_step : 1;
    uint32_t threads_step = s->threads_step > 0 ? s->threads_step : 1;
    for (uint32_t n = s->channels_min; n <= s->channels_max; n += channels_step)
        for (uint32_t t = s->threads_min; t <= s->threads_max; t += threads_step) {
            att_setting_t x = {.algorithm = s->algorithm,
                               .protocol = s->protocol,
                               .transport = s->transport,
                               .channels = (uint16_t)n,
                               .threads = (uint16_t)t};
            look_along(sweep, s, x, 0, INFINITY, COARSE);
        }
}

static const att_subspace_t *subspace_of(const struct att_sim_task *task, att_setting_t x)
{
    for (uint32_t i = 0; i < task->space.subspace_count; i++)
        if (att_subspace_contains(&task->subspaces[i], x))
            return &task->subspaces[i];
    return NULL;
}

static att_sim_optimum_t step_optimum(const struct att_sim_task *task, int load)
{
    att_sweep_t sweep = {.task = task, .load = load};
    for (uint32_t i = 0; i < task->space.subspace_count; i++)
        look_everywhere(&sweep, &task->subspaces[i]);
    att_sweep_t coarse = sweep;
    for (int i = 0; i < coarse.count; i++) {
        att_setting_t x = coarse.best[i].setting;
        const att_subspace_t *s = subspace_of(task, x);
        if (s != NULL && x.chunk_bytes != 0)
            look_along(&sweep, s, x, x.chunk_bytes / COARSE, x.chunk_bytes * COARSE, 1);
    }
    return sweep.count > 0 ? sweep.best[0] : (att_sim_optimum_t){ATT_SETTING_KEEP, -1};
}

int att_sim_task_optimum(struct att_sim_task *task, int load, att_sim_optimum_t *optimum,
                         att_error_t *error)
{
    att_sim_optimum_t *known = &task->optima[load];
    if (!task->known[load]) {
        const att_sim_task_config_t *c = &task->config;
        if (c->objective == ATT_SIM_STEP)
            *known = step_optimum(task, load);
        else
            known->us = att_surface_optimum(task->surface, c->collective, c->bytes, load,
                                            c->six_knobs, &known->setting);
        double native_us = att_sim_task_us(task, ATT_SETTING_KEEP, load);
        if (native_us > 0 && (known->us <= 0 || native_us < known->us))
            *known = (att_sim_optimum_t){ATT_SETTING_KEEP, native_us};
        if (known->us <= 0)
            return att_fail(error, ATT_EINPUT, "surface %s gives no duration under load %s",
                            att_surface_info(task->surface)->name,
                            att_surface_info(task->surface)->loads[load]);
        task->known[load] = 1;
    }
    *optimum = *known;
    return ATT_OK;
}
