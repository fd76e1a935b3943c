#include "fake_nccl.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fake_mask;
int fake_log_lines;
char fake_log_text[512];
const fake_plugin_t fake_linked = {&ncclTunerPlugin_v5, &ncclTunerPlugin_v6, &ncclProfiler_v5,
                                   &ncclProfiler_v6,    &ncclTunerPlugin_v3, &ncclTunerPlugin_v4,
                                   &ncclProfiler_v4};

static const char *const functions[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                        "AllReduce"};
static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

void fake_logger(int level, unsigned long subsystems, const char *file, int line,
                 const char *format, ...)
{
    (void)level, (void)subsystems, (void)file, (void)line;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    va_list arguments;
    pthread_mutex_lock(&lock);
    va_start(arguments, format);
    vsnprintf(fake_log_text, sizeof fake_log_text, format, arguments);
    va_end(arguments);
    fake_log_lines++;
    pthread_mutex_unlock(&lock);
}

static int load_mask(void)
{
    return __atomic_load_n(&fake_mask, __ATOMIC_RELAXED);
}

/* NCCL 2.27: no events of API calls, a Coll event below a Group event that the hook leaves. */
static void start_event_v4(fake_comm_t *comm, const att_event_v5_t *event, void **handle)
{
    att_event_v4_t old = {.type = (uint8_t)event->type, .rank = event->rank};
    if (event->type == ATT_EVENT_COLL) {
        old.coll.sequence = event->coll.sequence;
        old.coll.function = event->coll.function;
        old.coll.count = event->coll.count;
        old.coll.datatype = event->coll.datatype;
        old.coll.channels = event->coll.channels;
        old.coll.warps = event->coll.warps;
        old.coll.algorithm = event->coll.algorithm;
        old.coll.protocol = event->coll.protocol;
    } else if (event->type == ATT_EVENT_KERNEL_CH) {
        old.parent = event->parent;
        old.kernel_ch.channel = event->kernel_ch.channel;
        old.kernel_ch.time_ns = event->kernel_ch.time_ns;
    } else {
        return;
    }
    comm->plugin->profiler4->start_event(comm->profiler, handle, &old);
}

static void *start_event(fake_comm_t *comm, att_event_v5_t *event)
{
    void *handle = NULL;
    event->rank = comm->rank;
    if (comm->abi < 5)
        start_event_v4(comm, event, &handle);
    else if (comm->abi == 5)
        comm->plugin->profiler5->start_event(comm->profiler, &handle, event);
    else
        comm->plugin->profiler6->start_event(comm->profiler, &handle, event);
    return handle;
}

void fake_stop(fake_comm_t *comm, void *handle)
{
    if (handle == NULL)
        return;
    if (comm->abi < 5)
        comm->plugin->profiler4->stop_event(handle);
    else if (comm->abi == 5)
        comm->plugin->profiler5->stop_event(handle);
    else
        comm->plugin->profiler6->stop_event(handle);
}

void fake_init(fake_comm_t *comm, const fake_plugin_t *plugin, int abi, uint64_t id, int ranks,
               int rank)
{
    memset(comm, 0, sizeof *comm);
    comm->plugin = plugin;
    comm->abi = abi;
    comm->id = id;
    comm->ranks = ranks;
    comm->rank = rank;
    comm->algorithms = ATT_NCCL_ALGORITHMS;
    comm->clock = 1000;
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        comm->costs[i] = i < 6 ? 50.0f + (float)i : -1.0f; /* tree and ring, all protocols */
    comm->costs[ATT_ALGORITHM_RING * 3 + ATT_PROTOCOL_SIMPLE] = 40.0f;
    att_nvl_domains_v5_t domains = {1, ranks, ranks};
    static att_tuner_constants_v5_t constants;
    if (abi < 5) {
        comm->no_api = true;
        plugin->profiler4->init(&comm->profiler, &fake_mask, "comm", id, 1, ranks, rank,
                                fake_logger);
        if (abi == 3)
            plugin->tuner3->init((size_t)ranks, 1, fake_logger, &comm->tuner);
        else
            plugin->tuner4->init((size_t)ranks, 1, fake_logger, &comm->tuner);
    } else if (abi == 5) {
        plugin->profiler5->init(&comm->profiler, id, &fake_mask, "comm", 1, ranks, rank,
                                fake_logger);
        plugin->tuner5->init(&comm->tuner, id, (size_t)ranks, 1, fake_logger, &domains, &constants);
    } else {
        plugin->profiler6->init(&comm->profiler, id, &fake_mask, "comm", 1, ranks, rank,
                                fake_logger);
        plugin->tuner6->init(&comm->tuner, id, (size_t)ranks, 1, fake_logger, &domains, &constants);
    }
}

void fake_destroy(fake_comm_t *comm)
{
    if (comm->abi < 5) {
        if (comm->abi == 3)
            comm->plugin->tuner3->destroy(comm->tuner);
        else
            comm->plugin->tuner4->destroy(comm->tuner);
        if (comm->profiler != NULL)
            comm->plugin->profiler4->finalize(comm->profiler);
    } else if (comm->abi == 5) {
        comm->plugin->tuner5->finalize(comm->tuner);
        if (comm->profiler != NULL)
            comm->plugin->profiler5->finalize(comm->profiler);
    } else {
        comm->plugin->tuner6->finalize(comm->tuner);
        if (comm->profiler != NULL)
            comm->plugin->profiler6->finalize(comm->profiler);
    }
}

void fake_begin(fake_comm_t *comm)
{
    att_event_v5_t event = {.type = ATT_EVENT_GROUP_API};
    event.group_api.captured = comm->captured;
    comm->op_count = 0;
    comm->group = NULL;
    comm->first_mask = load_mask();
    if (!comm->no_api && comm->first_mask != 0)
        comm->group = start_event(comm, &event);
}

fake_op_t *fake_enqueue(fake_comm_t *comm, int collective, size_t count, bool captured)
{
    fake_op_t *op = &comm->ops[comm->op_count++];
    *op = (fake_op_t){.collective = collective,
                      .count = count,
                      .datatype = "ncclFloat32",
                      .element = 4,
                      .captured = captured,
                      .mask = comm->op_count == 1 ? comm->first_mask : load_mask()};
    att_event_v5_t event = {.type = ATT_EVENT_COLL_API, .parent = comm->group};
    event.coll_api.function = functions[collective];
    event.coll_api.count = count;
    event.coll_api.datatype = op->datatype;
    event.coll_api.captured = captured;
    event.coll_api.root = comm->root;
    if (!comm->no_api && op->mask != 0) {
        op->api = start_event(comm, &event);
        fake_stop(comm, op->api);
    }
    if (collective == ATT_COLLECTIVE_ALL_GATHER || collective == ATT_COLLECTIVE_BROADCAST) {
        op->count *= op->element;
        op->datatype = "ncclInt8";
        op->element = 1;
    }
    return op;
}

static size_t message_bytes(const fake_comm_t *comm, const fake_op_t *op)
{
    bool all = op->collective == ATT_COLLECTIVE_ALL_GATHER ||
               op->collective == ATT_COLLECTIVE_REDUCE_SCATTER;
    return op->count * op->element * (all ? (size_t)comm->ranks : 1);
}

int fake_ask(fake_comm_t *comm, int collective, size_t bytes, float *table, int rows, int *channels)
{
    const fake_plugin_t *p = comm->plugin;
    float **costs = (float **)table;
    switch (comm->abi) {
    case 3:
        return p->tuner3->get_coll_info(comm->tuner, collective, bytes, 1, costs, rows, 3,
                                        channels);
    case 4:
        return p->tuner4->get_coll_info(comm->tuner, collective, bytes, 1, costs, rows, 3, 0,
                                        channels);
    case 5:
        return p->tuner5->get_coll_info(comm->tuner, collective, bytes, 1, costs, rows, 3, 0,
                                        channels);
    default:
        return p->tuner6->get_coll_info(comm->tuner, collective, bytes, 1, costs, rows, 3, 0,
                                        channels);
    }
}

static int ask(fake_comm_t *comm, fake_op_t *op, size_t bytes)
{
    float table[ATT_PAIR_COUNT];
    int channels = 0;
    memcpy(table, comm->costs, sizeof table);
    int result = fake_ask(comm, op->collective, bytes, table, comm->algorithms, &channels);
    float least = 3.4e38f;
    for (int i = 0; i < comm->algorithms * 3; i++)
        if (table[i] >= 0.0f && table[i] < least) {
            least = table[i];
            op->algorithm = i / 3;
            op->protocol = i % 3;
        }
    op->channels = channels == 0 ? 16 : channels < FAKE_CHANNELS ? channels : FAKE_CHANNELS;
    return result;
}

int fake_prepare(fake_comm_t *comm)
{
    comm->result = ATT_NCCL_SUCCESS;
    size_t sum = 0;
    for (int i = 0; i < comm->op_count; i++)
        sum += message_bytes(comm, &comm->ops[i]);
    for (int i = 0; i < comm->op_count && comm->result == ATT_NCCL_SUCCESS; i++) {
        fake_op_t *op = &comm->ops[i];
        if (comm->aggregate && i > 0) {
            op->algorithm = comm->ops[0].algorithm;
            op->protocol = comm->ops[0].protocol;
            op->channels = comm->ops[0].channels;
        } else {
            comm->result = ask(comm, op, comm->aggregate ? sum : message_bytes(comm, op));
        }
    }
    return comm->result;
}

void fake_coll(fake_comm_t *comm, fake_op_t *op)
{
    att_event_v5_t event = {.type = ATT_EVENT_COLL, .parent = op->api};
    event.coll.sequence = comm->sequence[op->collective]++;
    event.coll.function = functions[op->collective];
    event.coll.count = op->count;
    event.coll.datatype = op->datatype;
    event.coll.channels = op->coll_channels;
    event.coll.warps = 17;
    event.coll.algorithm = algorithms[op->algorithm];
    event.coll.protocol = protocols[op->protocol];
    op->coll = NULL;
    if ((op->mask & (ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH)) != 0)
        op->coll = start_event(comm, &event);
    fake_stop(comm, op->coll);
}

void fake_launch(fake_comm_t *comm)
{
    for (int i = 0; i < comm->op_count; i++) {
        fake_op_t *op = &comm->ops[i];
        op->coll_channels = (uint8_t)op->channels;
        /* Lo, Mid and Hi parts of the channels. */
        for (int part = 0; comm->abi >= 6 && part < 3; part++) {
            op->chunk = 524288;
            comm->plugin->tuner6->get_chunk_size(comm->tuner, op->collective, 4096, op->algorithm,
                                                 op->protocol, 1, &op->chunk);
        }
    }
    for (int i = 0; i < comm->op_count; i++)
        fake_coll(comm, &comm->ops[i]);
}

void fake_end(fake_comm_t *comm)
{
    fake_stop(comm, comm->group);
    comm->group = NULL;
}

void *fake_kernel_start(fake_comm_t *comm, void *coll, int channel, uint64_t time_ns)
{
    att_event_v5_t event = {.type = ATT_EVENT_KERNEL_CH, .parent = coll};
    event.kernel_ch.channel = (uint8_t)channel;
    event.kernel_ch.time_ns = time_ns;
    return start_event(comm, &event);
}

void fake_kernel_stop(fake_comm_t *comm, void *kernel, uint64_t time_ns)
{
    if (kernel == NULL)
        return;
    att_event_state_v5_t state = {.kernel_ch = {time_ns}};
    att_event_state_v4_t old = {.kernel_ch = {time_ns}};
    if (comm->abi < 5)
        comm->plugin->profiler4->record_event_state(kernel, ATT_STATE_KERNEL_CH_STOP, &old);
    else if (comm->abi == 5)
        comm->plugin->profiler5->record_event_state(kernel, ATT_STATE_KERNEL_CH_STOP, &state);
    else
        comm->plugin->profiler6->record_event_state(kernel, ATT_STATE_KERNEL_CH_STOP, &state);
    fake_stop(comm, kernel);
}

void fake_run(fake_comm_t *comm, fake_op_t *op, uint64_t duration_ns)
{
    void *kernels[FAKE_CHANNELS];
    uint64_t start = comm->clock;
    comm->clock += duration_ns + 1000;
    if ((op->mask & ATT_EVENT_KERNEL_CH) == 0)
        return;
    /* The first channel starts first, the last one stops last. */
    for (int c = 0; c < op->channels; c++)
        kernels[c] = fake_kernel_start(comm, op->coll, c, start + (uint64_t)c);
    for (int c = 0; c < op->channels; c++)
        fake_kernel_stop(comm, kernels[c], start + duration_ns - (uint64_t)(op->channels - 1 - c));
}

fake_op_t fake_call(fake_comm_t *comm, int collective, size_t bytes, uint64_t duration_ns)
{
    fake_begin(comm);
    fake_op_t *op = fake_enqueue(comm, collective, bytes / 4, false);
    if (fake_prepare(comm) == ATT_NCCL_SUCCESS) {
        fake_launch(comm);
        fake_run(comm, op, duration_ns);
    }
    fake_end(comm);
    return *op;
}
