#include "fabric/model.h"

#include "attune/setting.h"
#include "base/names.h"
#include "fabric/datatype.h"
#include "fabric/error.h"
#include "surface/surface.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t setup_once = PTHREAD_ONCE_INIT;
static att_model_setup_t process_setup;
static ncclResult_t setup_result;

static ncclResult_t read_number(const char *name, double fallback, double *value)
{
    const char *text = getenv(name);
    *value = fallback;
    if (!text || !*text)
        return ncclSuccess;
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    if (errno || *end || !isfinite(*value))
        return att_fabric_error(ncclInvalidUsage, "%s=%s is not a number", name, text);
    return ncclSuccess;
}

static ncclResult_t read_setup(att_model_setup_t *setup)
{
    const char *name = getenv("ATTUNE_FABRIC_SURFACE");
    if (!name || !*name)
        return att_fabric_error(ncclInvalidUsage,
                                "ATTUNE_FABRIC_MODE=model needs ATTUNE_FABRIC_SURFACE");
    struct att_surface *surface = NULL;
    att_error_t error;
    if (att_surface_open(name, &surface, &error) != ATT_OK)
        return att_fabric_error(ncclInvalidUsage, "surface %s: %s", name, error.text);
    const att_surface_info_t *info = att_surface_info(surface);
    if (info->kind != ATT_SURFACE_MODELLED)
        return att_fabric_error(ncclInvalidUsage,
                                "surface %s is recorded and has gaps; the model needs a modelled "
                                "one",
                                info->name);
    setup->surface = surface;
    setup->surface_name = info->name;
    const char *load = getenv("ATTUNE_FABRIC_LOAD");
    setup->load_name = load && *load ? load : "none";
    setup->load = att_surface_load_index(surface, setup->load_name);
    if (setup->load < 0)
        return att_fabric_error(ncclInvalidUsage, "surface %s has no load \"%s\"", info->name,
                                setup->load_name);
    const char *any = getenv("ATTUNE_FABRIC_ANY_RANKS");
    setup->any_ranks = any && !strcmp(any, "1");
    double seed = 1;
    ncclResult_t result = read_number("ATTUNE_FABRIC_SEED", 1, &seed);
    setup->seed = (uint64_t)(int64_t)seed;
    if (result == ncclSuccess)
        result = read_number("ATTUNE_FABRIC_NOISE", info->noise, &setup->noise);
    if (result == ncclSuccess)
        result = read_number("ATTUNE_FABRIC_DRIFT", 0, &setup->drift);
    return result;
}

static void read_setup_once(void)
{
    setup_result = read_setup(&process_setup);
}

ncclResult_t att_model_setup(const att_model_setup_t **setup)
{
    pthread_once(&setup_once, read_setup_once);
    *setup = &process_setup;
    return setup_result;
}

ncclResult_t att_model_open(att_model_t *model, const att_model_setup_t *setup, att_arena_t *arena,
                            att_device_t *device)
{
    *model = (att_model_t){.setup = setup, .arena = arena, .device = device};
    return att_movement_open(&model->movement, arena);
}

static uint64_t mix(uint64_t value) /* splitmix64 */
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

double att_model_noise(double noise, uint64_t seed, uint64_t ordinal, uint64_t call)
{
    if (noise <= 0)
        return 1;
    uint64_t first = mix(mix(mix(seed) ^ ordinal) ^ call), second = mix(first);
    double u = ((double)(first >> 11) + 1) / 9007199254740993.0; /* (0, 1) */
    double v = (double)(second >> 11) / 9007199254740992.0;
    double factor = 1 + noise * sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
    return factor < 0.2 ? 0.2 : factor;
}

static double duration_us(const att_model_t *model, uint64_t start_ns)
{
    const att_task_t *task = model->task;
    const att_model_setup_t *setup = model->setup;
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.algorithm = (int8_t)task->algorithm;
    setting.protocol = (int8_t)task->protocol;
    setting.channels = (uint16_t)task->channels;
    setting.chunk_bytes = (uint32_t)task->chunk_low;
    setting.threads = (uint16_t)task->threads;
    setting.transport = (int8_t)task->transport;
    double us =
        att_surface_duration_us(setup->surface, task->function,
                                att_task_bytes(task, model->arena->count), setting, setup->load);
    if (us < 0)
        return us;
    double drift = 1 + setup->drift * (double)start_ns * 1e-9;
    return us * (drift < 0.1 ? 0.1 : drift) *
           att_model_noise(setup->noise, setup->seed, model->arena->ranks[0].ordinal, task->call);
}

/* Alone, when all have arrived: when the call starts and ends. */
static void time_call(void *argument)
{
    att_model_t *model = argument;
    att_arena_t *arena = model->arena;
    uint64_t start = 0;
    for (int r = 0; r < arena->count; r++)
        if (arena->ranks[r].arrival_ns > start)
            start = arena->ranks[r].arrival_ns;
    double us = duration_us(model, start);
    if (us < 0) {
        char words[ATT_SETTING_TEXT];
        att_setting_t setting = {.algorithm = (int8_t)model->task->algorithm,
                                 .protocol = (int8_t)model->task->protocol,
                                 .transport = (int8_t)model->task->transport,
                                 .channels = (uint16_t)model->task->channels,
                                 .threads = (uint16_t)model->task->threads,
                                 .chunk_bytes = (uint32_t)model->task->chunk_low};
        att_fabric_error(ncclInternalError,
                         "the surface %s has no duration for %s of %zu bytes with %s",
                         model->setup->surface_name, att_task_function_name(model->task->function),
                         att_task_bytes(model->task, arena->count),
                         att_setting_text(setting, words, sizeof words));
        att_arena_fail(arena, ncclInternalError, model->task->call);
        us = 0;
    }
    arena->header->start_ns = start;
    arena->header->end_ns = start + (uint64_t)(us * 1000 + 0.5);
}

ncclResult_t att_model_run(att_model_t *model, const att_task_t *task, uint64_t *start_ns,
                           uint64_t *stop_ns)
{
    att_arena_t *arena = model->arena;
    att_arena_rank_t *own = &arena->ranks[arena->rank];
    size_t block = task->count * att_datatype_size(task->type);
    bool whole = task->call % ATT_MODEL_WHOLE == 0 || block < ATT_ARENA_STAGE;
    model->task = task;
    own->arrival_ns = atomic_load(&model->device->clock_ns);
    ncclResult_t result =
        att_movement_run(&model->movement, task, whole ? block : ATT_ARENA_STAGE, time_call, model);
    if (result != ncclSuccess)
        return result;
    *start_ns = own->arrival_ns;
    *stop_ns = arena->header->end_ns;
    uint64_t now = own->arrival_ns;
    while (now < *stop_ns &&
           !atomic_compare_exchange_weak(&model->device->clock_ns, &now, *stop_ns))
        ;
    return ncclSuccess;
}
