#include "fabric/event.h"

#include "base/clock.h"
#include "fabric/datatype.h"
#include "fabric/error.h"
#include "fabric/plugin.h"
#include "fabric/signal.h"
#include "fabric/version.h"

#include <pthread.h>
#include <stdlib.h>

#define KERNEL_BITS                                                                                \
    (ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh | ncclProfileNetPlugin)
#define CE_BITS (ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch)
/* Bits that switch an event on: its own and those of its possible children (profiler.cc). */
#define COLL_MASK     (ncclProfileColl | KERNEL_BITS)
#define GROUP_MASK    (ncclProfileGroup | ncclProfileP2p | COLL_MASK)
#define COLL_API_MASK (ncclProfileCollApi | COLL_MASK | CE_BITS)
#define GROUP_API_MASK                                                                             \
    (ncclProfileGroupApi | ncclProfileP2pApi | ncclProfileCollApi | ncclProfileKernelLaunch |      \
     GROUP_MASK | CE_BITS)

/* How long the delivering thread lets events gather while they keep coming. */
#define GATHER_NS 50000u
#define GATHERS   4

/* One global, as in NCCL: the plugin keeps its address and toggles bits at any time. */
static int event_mask;

typedef enum att_api_phase { API_RESET = 0, API_STARTED = 1, API_STOPPED = 2 } att_api_phase_t;

/* Of the calling thread, as in NCCL. */
static _Thread_local struct {
    int depth;
    int mask;
    att_api_phase_t phase;
    const ncclProfiler_v6_t *plugin;
    void *group_event;
    void *coll_event;
} api;

/* KernelCh events of one batch. */
typedef struct att_delivery {
    struct att_delivery *next;
    att_profile_t *profile;
    size_t count;
    struct {
        void *parent;
        int channel;
        att_stamp_t stamp;
    } items[];
} att_delivery_t;

static struct {
    pthread_mutex_t mutex;
    pthread_t thread;
    int users;
    att_delivery_t *first, **last;
    uint32_t put;         /* deliveries queued */
    att_signal_t posted;  /* raised with put; bit for the end */
    att_signal_t handled; /* deliveries done */
    bool ending;
} proxy = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void deliver(const att_delivery_t *delivery)
{
    const ncclProfiler_v6_t *plugin = delivery->profile->plugin;
    for (size_t i = 0; i < delivery->count; i++) {
        ncclProfilerEventDescr_t event = {.type = ncclProfileKernelCh,
                                          .parentObj = delivery->items[i].parent};
        event.kernelCh.channelId = (uint8_t)delivery->items[i].channel;
        event.kernelCh.pTimer = delivery->items[i].stamp.start_ns;
        void *handle = NULL;
        plugin->startEvent(delivery->profile->context, &handle, &event);
        if (!handle)
            continue;
        ncclProfilerEventStateArgs_t args = {0};
        args.kernelCh.pTimer = delivery->items[i].stamp.stop_ns;
        plugin->recordEventState(handle, ncclProfilerKernelChStop, &args);
        plugin->stopEvent(handle);
    }
}

static att_delivery_t *take_all(bool *ending)
{
    pthread_mutex_lock(&proxy.mutex);
    att_delivery_t *list = proxy.first;
    proxy.first = NULL;
    proxy.last = &proxy.first;
    *ending = proxy.ending;
    pthread_mutex_unlock(&proxy.mutex);
    return list;
}

static void *proxy_main(void *unused)
{
    int idle = 0;
    for (;;) {
        uint32_t seen = atomic_load(&proxy.posted.value);
        bool ending = false;
        att_delivery_t *list = take_all(&ending);
        if (!list && ending)
            return NULL;
        idle = list ? 0 : idle + 1;
        while (list) {
            att_delivery_t *next = list->next;
            deliver(list);
            free(list);
            att_signal_add(&proxy.handled, 1);
            list = next;
        }
        if (idle < GATHERS)
            att_clock_sleep_ns(GATHER_NS);
        else
            att_signal_wait(&proxy.posted, seen + 1, NULL);
    }
}

static void proxy_start(void)
{
    pthread_mutex_lock(&proxy.mutex);
    if (proxy.users++ == 0) {
        proxy.first = NULL;
        proxy.last = &proxy.first;
        proxy.ending = false;
        if (pthread_create(&proxy.thread, NULL, proxy_main, NULL)) {
            att_fabric_error(ncclSystemError, "cannot start the profiler's thread");
            abort();
        }
    }
    pthread_mutex_unlock(&proxy.mutex);
}

void att_event_flush(const att_profile_t *profile)
{
    if (!profile->plugin)
        return;
    pthread_mutex_lock(&proxy.mutex);
    uint32_t put = proxy.put;
    pthread_mutex_unlock(&proxy.mutex);
    att_signal_wait(&proxy.handled, put, NULL);
}

static void proxy_stop(void)
{
    pthread_mutex_lock(&proxy.mutex);
    bool end = --proxy.users == 0;
    pthread_t thread = proxy.thread;
    if (end)
        proxy.ending = true;
    pthread_mutex_unlock(&proxy.mutex);
    if (end) {
        att_signal_add(&proxy.posted, 1);
        pthread_join(thread, NULL);
    }
}

void att_event_open(att_profile_t *profile, uint64_t comm_id, const char *name, int nodes,
                    int ranks, int rank)
{
    *profile = (att_profile_t){.rank = rank};
    const ncclProfiler_v6_t *plugin = att_plugin_profiler();
    if (!plugin)
        return;
    ncclResult_t result = plugin->init(&profile->context, comm_id, &event_mask, name, nodes, ranks,
                                       rank, att_fabric_logger);
    if (result != ncclSuccess) {
        att_fabric_info("profiler init failed with error %d: continue without profiler", result);
        att_plugin_release_profiler();
        return;
    }
    profile->plugin = plugin;
    proxy_start();
}

void att_event_close(att_profile_t *profile)
{
    if (!profile->plugin)
        return;
    att_event_flush(profile);
    if (profile->context)
        profile->plugin->finalize(profile->context);
    profile->plugin = NULL;
    proxy_stop();
    att_plugin_release_profiler();
}

void att_event_group_deepen(void)
{
    if (api.depth > 0)
        api.depth++;
}

static void record_group(int state, att_api_phase_t from, att_api_phase_t to)
{
    if (api.phase != from)
        return;
    api.phase = to;
    if (api.group_event)
        api.plugin->recordEventState(api.group_event, state, NULL);
}

void att_event_group_leave(void)
{
    if (api.depth > 0)
        api.depth--;
    if (api.depth == 0)
        record_group(ncclProfilerGroupEndApiStart, API_STOPPED, API_RESET);
}

void att_event_group_stop(void)
{
    if (api.group_event && api.depth == 0) {
        api.plugin->stopEvent(api.group_event);
        api.group_event = NULL;
    }
}

static void start_group(att_profile_t *profile, int depth)
{
    api.mask = __atomic_load_n(&event_mask, __ATOMIC_RELAXED);
    if (!(api.mask & GROUP_API_MASK) || api.depth != 0)
        return;
    ncclProfilerEventDescr_t event = {.type = ncclProfileGroupApi};
    event.groupApi.groupDepth = depth;
    profile->plugin->startEvent(profile->context, &api.group_event, &event);
    api.plugin = profile->plugin;
    api.depth = depth;
    api.phase = API_STARTED;
}

/* Since 2.29.2 a Broadcast waits in NCCL's queue for AllGatherV and loses its mask on the way
 * (enqueue.cc). */
static bool broadcast_is_timed(void)
{
    return att_fabric_version() < 22902 || att_plugin_getenv_int("NCCL_ALLGATHERV_ENABLE", 1) == 0;
}

void att_event_call(att_profile_t *profile, att_task_t *task, int depth, size_t count,
                    ncclDataType_t type, void *stream)
{
    if (!profile->plugin)
        return;
    start_group(profile, depth);
    record_group(ncclProfilerGroupStartApiStop, API_STARTED, API_STOPPED);
    if (api.mask & COLL_API_MASK) {
        ncclProfilerEventDescr_t event = {.type = ncclProfileCollApi, .parentObj = api.group_event};
        event.collApi.func = att_task_function_name(task->function);
        event.collApi.count = count;
        event.collApi.datatype = att_datatype_name(type);
        event.collApi.root = task->root;
        event.collApi.stream = stream;
        profile->plugin->startEvent(profile->context, &api.coll_event, &event);
    }
    if (task->function != 0 /* Broadcast */ || broadcast_is_timed()) {
        task->event_mask = api.mask;
        task->group_api_event = api.group_event;
        task->coll_api_event = api.coll_event;
    }
    if (api.coll_event)
        profile->plugin->stopEvent(api.coll_event);
}

/* The first task of a batch whose mask is not empty speaks for it. */
static const att_task_t *speaker(const att_task_t *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tasks[i].event_mask)
            return &tasks[i];
    return NULL;
}

static void start_coll(att_profile_t *profile, att_task_t *task, void *group)
{
    ncclProfilerEventDescr_t event = {
        .type = ncclProfileColl, .parentObj = task->coll_api_event, .rank = profile->rank};
    event.coll.seqNumber = task->sequence;
    event.coll.func = att_task_function_name(task->function);
    event.coll.sendBuff = task->send;
    event.coll.recvBuff = task->receive;
    event.coll.count = task->count;
    event.coll.root = task->root;
    event.coll.datatype = att_datatype_name(task->type);
    event.coll.nChannels = (uint8_t)task->channels;
    event.coll.nWarps = (uint8_t)task->warps;
    event.coll.algo = att_task_algorithm_name(task->algorithm);
    event.coll.proto = att_task_protocol_name(task->protocol);
    event.coll.parentGroup = group;
    profile->plugin->startEvent(profile->context, &task->event, &event);
}

void att_event_launched(att_profile_t *profile, att_task_t *tasks, size_t count, void *stream)
{
    for (size_t i = 0; i < count; i++)
        tasks[i].sequence = profile->sequence[tasks[i].function]++;
    const att_task_t *first = profile->plugin ? speaker(tasks, count) : NULL;
    if (!first)
        return;
    void *launch = NULL, *group = NULL;
    if (first->event_mask & ncclProfileKernelLaunch) {
        ncclProfilerEventDescr_t event = {.type = ncclProfileKernelLaunch,
                                          .parentObj = first->group_api_event};
        event.kernelLaunch.stream = stream;
        profile->plugin->startEvent(profile->context, &launch, &event);
        if (launch)
            profile->plugin->stopEvent(launch);
    }
    if (first->event_mask & GROUP_MASK) {
        ncclProfilerEventDescr_t event = {.type = ncclProfileGroup};
        profile->plugin->startEvent(profile->context, &group, &event);
    }
    for (size_t i = 0; i < count; i++)
        if (tasks[i].event_mask & COLL_MASK)
            start_coll(profile, &tasks[i], group);
    for (size_t i = 0; i < count; i++)
        if (tasks[i].event)
            profile->plugin->stopEvent(tasks[i].event);
    if (group)
        profile->plugin->stopEvent(group);
}

void att_event_channels(att_profile_t *profile, const att_task_t *tasks, size_t count,
                        const att_stamp_t *stamps)
{
    if (!profile->plugin)
        return;
    size_t items = 0;
    for (size_t i = 0; i < count; i++)
        if (tasks[i].event_mask & ncclProfileKernelCh)
            items += (size_t)tasks[i].channels;
    if (!items)
        return;
    att_delivery_t *delivery = calloc(1, sizeof *delivery + items * sizeof delivery->items[0]);
    if (!delivery)
        return; /* lost events are what a slow proxy gives too */
    delivery->profile = profile;
    for (size_t i = 0; i < count; i++) {
        if (!(tasks[i].event_mask & ncclProfileKernelCh))
            continue;
        for (int c = tasks[i].channel_low; c < tasks[i].channel_low + tasks[i].channels; c++) {
            delivery->items[delivery->count].parent = tasks[i].event;
            delivery->items[delivery->count].channel = c;
            delivery->items[delivery->count++].stamp = stamps[c];
        }
    }
    pthread_mutex_lock(&proxy.mutex);
    *proxy.last = delivery;
    proxy.last = &delivery->next;
    proxy.put++;
    pthread_mutex_unlock(&proxy.mutex);
    att_signal_add(&proxy.posted, 1);
}
