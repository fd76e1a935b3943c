#include "hook/context.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pins.h"
#include "hook/device.h"
#include "hook/event_time.h"
#include "hook/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

att_context_t att_context_idle;

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(att_context_t *) registry[ATT_CONTEXTS];
static uint32_t registry_count;
static att_context_t *free_contexts;

/* From profiler init to tuner init of one communicator, which NCCL does on one thread. */
static __thread att_context_t *arriving;

att_context_t *att_context_at(uint32_t index)
{
    return index < ATT_CONTEXTS ? atomic_load_explicit(&registry[index], memory_order_acquire)
                                : NULL;
}

/* What is the same for all contexts of a process is set here, once: late callbacks read it. */
static att_context_t *allocate(const att_hook_t *hook)
{
    if (registry_count >= ATT_CONTEXTS)
        return NULL;
    att_context_t *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->tasks = calloc(ATT_TABLE, sizeof *context->tasks);
    if (context->tasks == NULL)
        goto free_context;
    if (posix_memalign((void **)&context->calls, 64, ATT_CALLS * sizeof *context->calls) != 0)
        goto free_tasks;
    memset(context->calls, 0, ATT_CALLS * sizeof *context->calls);
    context->memory = hook->memory;
    context->process_index = hook->process_index;
    context->sink = (att_sink_t){hook->process, hook->ring};
    context->index = registry_count;
    atomic_store_explicit(&registry[registry_count++], context, memory_order_release);
    return context;

free_tasks:
    free(context->tasks);
free_context:
    free(context);
    return NULL;
}

att_context_t *att_context_create(const att_hook_t *hook, uint64_t comm_id, uint32_t ranks,
                                  uint32_t rank, int *mask, uint32_t profiler_abi)
{
    pthread_mutex_lock(&registry_lock);
    att_context_t *context = free_contexts;
    if (context != NULL)
        free_contexts = context->next_free;
    else
        context = allocate(hook);
    pthread_mutex_unlock(&registry_lock);
    arriving = context;
    if (context == NULL)
        return NULL;
    context->mask = (_Atomic int *)mask;
    context->comm_id = comm_id;
    context->ranks = ranks;
    context->rank = rank;
    context->profiler_abi = profiler_abi;
    context->has_profiler = profiler_abi != 0;
    context->gathers = false;
    context->has_root = false;
    context->gathering = false;
    context->owned = false;
    atomic_store_explicit(&context->simulated, 0, memory_order_relaxed);
    atomic_store_explicit(&context->names_calls, false, memory_order_relaxed);
    if (context->variant)
        context->timer = NULL; /* its parent's */
    context->variant = false;
    atomic_store(&context->gate.released, 0);
    return context;
}

att_context_t *att_context_identify(uint64_t comm_id, uint64_t ranks)
{
    att_context_t *context = arriving;
    arriving = NULL;
    if (context == NULL || (comm_id != 0 && context->comm_id != comm_id) || context->ranks != ranks)
        return NULL;
    return context;
}

bool att_context_join(att_context_t *context, uint32_t nodes, uint32_t tuner_abi,
                      att_nccl_logger_fn logger)
{
    att_segment_memory_t *memory = context->memory;
    uint32_t group = att_segment_group(memory, context->comm_id, context->ranks, nodes);
    uint32_t index = group == ATT_NONE ? ATT_NONE
                                       : att_segment_add_member(memory, group, context->rank,
                                                                context->process_index);
    if (index == ATT_NONE)
        return false;
    att_segment_member_t *member = &memory->members[index];
    att_device_t device = att_device_current(logger, memory->header.node_id);
    char names[160];
    const char *runtime_connect = getenv("NCCL_RUNTIME_CONNECT");
    member->nccl_version = att_library_version(logger);
    member->tuner_abi = tuner_abi;
    member->profiler_abi = context->profiler_abi;
    member->pinned = att_pins_read(names, sizeof names);
    member->device_units = device.units;
    member->channels_most = att_pins_channels_most(att_pins_own_variable, NULL);
    member->clock_kind = (uint32_t)device.clock_kind;
    member->clock_id = device.clock_id;
    member->whole_stamps = device.fabric;
    if (context->profiler_abi == 0) {
        if (context->timer == NULL)
            context->timer = att_event_timer_create();
        member->event_timing = context->timer != NULL;
        member->whole_stamps = context->timer != NULL; /* an event waits for all threads */
        member->clock_kind = ATT_CLOCK_UNKNOWN;
        member->clock_id = 0;
    }
    memcpy(member->device_id, device.uuid, sizeof member->device_id);
    member->all_connected =
        device.fabric || (runtime_connect != NULL && strcmp(runtime_connect, "0") == 0);
    if (member->pinned != 0)
        att_hook_say(logger, "not searched, because set by the user: %s", names);
    context->member = member;
    context->member_index = index;
    context->tuner_abi = tuner_abi;
    context->has_tuner = true;
    /* ATTUNE_NODE splits a machine into nodes that NCCL does not know of. */
    const char *node = getenv("ATTUNE_NODE");
    if (context->rank == 0 && (nodes > 1 || (node != NULL && node[0] != '\0')))
        att_hook_serve_homes();
    att_segment_publish_member(memory, index);
    atomic_store_explicit(&context->deciding, true, memory_order_relaxed);
    return true;
}

void att_context_join_variant(att_context_t *context, const att_context_t *parent,
                              uint32_t tuner_abi)
{
    context->member = parent->member;
    context->member_index = parent->member_index;
    context->tuner_abi = tuner_abi;
    context->has_tuner = true;
    context->variant = true;
    context->timer = parent->timer;
    atomic_store_explicit(&context->deciding, true, memory_order_relaxed);
}

#define RELEASE_PAUSE_NS 100000u
#define RELEASE_PAUSES   10000

void att_context_release_like(uint32_t ranks, uint32_t rank)
{
    for (uint32_t i = 0; i < ATT_CONTEXTS; i++) {
        att_context_t *context = att_context_at(i);
        if (context == NULL)
            return;
        if (!context->owned && context->ranks == ranks && context->rank == rank &&
            atomic_load(&context->gate.waiting) != 0)
            att_context_release(context);
    }
}

void att_context_release(att_context_t *context)
{
    atomic_store(&context->gate.released, 1);
    for (int i = 0; i < RELEASE_PAUSES && atomic_load(&context->gate.waiting) != 0; i++)
        att_clock_sleep_ns(RELEASE_PAUSE_NS);
}

/* With the registry locked. Both sides are gone: the lanes can go, the memory stays. A call that
 * did not leave its fence in time still reads them: then all of it stays. */
static void recycle(att_context_t *context)
{
    if (atomic_load(&context->gate.waiting) != 0)
        return;
    for (uint32_t i = 0; i < ATT_TABLE; i++)
        free(context->tasks[i].lane);
    memset(context->tasks, 0, ATT_TABLE * sizeof *context->tasks);
    context->task_count = 0;
    context->next_free = free_contexts;
    free_contexts = context;
}

void att_context_leave_tuner(att_context_t *context)
{
    pthread_mutex_lock(&registry_lock);
    if (context->has_tuner) {
        context->has_tuner = false;
        atomic_store_explicit(&context->deciding, false, memory_order_relaxed);
        att_context_begin_batch(context, 0, false);
        if (context->timer != NULL && !context->variant)
            att_event_timer_collect(context->timer, &context->sink, true);
        att_context_flush(context);
        if (!context->variant)
            att_segment_retire_member(context->memory, context->member_index);
        if (!context->has_profiler)
            recycle(context);
    }
    pthread_mutex_unlock(&registry_lock);
}

void att_context_leave_profiler(att_context_t *context)
{
    pthread_mutex_lock(&registry_lock);
    if (context->has_profiler) {
        context->has_profiler = false;
        if (arriving == context)
            arriving = NULL;
        for (uint32_t i = 0; i < ATT_CALLS; i++)
            att_call_abandon(&context->calls[i], &context->sink);
        if (!context->has_tuner)
            recycle(context);
    }
    pthread_mutex_unlock(&registry_lock);
}

static void add(_Atomic uint64_t *total, uint64_t *part)
{
    if (*part != 0)
        atomic_fetch_add_explicit(total, *part, memory_order_relaxed);
    *part = 0;
}

void att_context_flush(att_context_t *context)
{
    att_segment_process_t *process = context->sink.process;
    uint64_t off = context->counts.decisions - context->counts.noted;
    context->counts.noted = 0;
    add(&process->decisions, &context->counts.decisions);
    add(&process->untimed[ATT_UNTIMED_OFF], &off);
    add(&process->simulated, &context->counts.simulated);
    add(&process->unseen, &context->counts.unseen);
    add(&process->called, &context->counts.called);
    add(&process->answered, &context->counts.answered);
}

void att_context_flush_all(void)
{
    pthread_mutex_lock(&registry_lock);
    for (uint32_t i = 0; i < registry_count; i++) {
        att_context_t *context = att_context_at(i);
        if (context->has_tuner)
            att_context_flush(context);
    }
    pthread_mutex_unlock(&registry_lock);
}

void att_context_close_batch(att_context_t *context)
{
    att_batch_t *batch = &context->batch;
    uint64_t serial = atomic_load_explicit(&batch->serial, memory_order_relaxed);
    att_call_t *call = att_context_call(context, serial);
    if (batch->decisions == 0)
        context->counts.unseen += batch->apis;
    else if (batch->stamped && att_call_take(call, serial))
        /* Its Coll event comes before the next batch or not at all. */
        att_call_drop(call, serial, ATT_UNTIMED_MISMATCH, &context->sink);
}

att_lane_t *att_context_add_task(att_context_t *context, uint32_t key, uint64_t bytes,
                                 const float cost_us[ATT_PAIR_COUNT], uint32_t variants)
{
    static att_log_site_t site;
    att_task_entry_t *entry = att_task_find(context, key, bytes);
    if (entry == NULL || entry->key != 0 || context->task_count >= ATT_CONTEXT_TASKS) {
        atomic_store_explicit(&context->memory->header.full, 1, memory_order_relaxed);
        return NULL;
    }
    entry->key = key;
    entry->bytes = bytes;
    entry->lane = NULL;
    context->task_count++;
    att_lane_t *mine = malloc(sizeof *mine);
    if (mine == NULL)
        return NULL;
    uint32_t collective = key >> 21 & 7;
    uint32_t task = att_segment_task(context->memory, context->member->group, collective, bytes,
                                     key & ((1u << ATT_PAIR_COUNT) - 1), cost_us);
    uint32_t lane = task == ATT_NONE ? ATT_NONE
                                     : att_segment_add_routed_lane(context->memory, task,
                                                                   context->member_index, variants);
    if (lane == ATT_NONE) {
        att_log_limited(&site, ATT_LOG_WARN,
                        "the node's tables are full: further message sizes are not tuned");
        free(mine);
        return NULL;
    }
    att_lane_init(mine, context->memory, lane, context->process_index);
    mine->gate = &context->gate;
    entry->lane = mine;
    return mine;
}
