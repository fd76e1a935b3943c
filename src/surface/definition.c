#include "surface/definition.h"

#include "base/names.h"
#include "surface/reader.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MAX_US  1e6
#define GBPS_MIN     1e-3
#define GBPS_MAX     1e5
#define THREADS_MAX  ATT_SURFACE_THREADS_MAX
#define CHANNELS_MAX 1024
#define CHUNK_MAX    (1 << 30)

static const char collective_words[] = "broadcast, reduce, allgather, reducescatter, allreduce";
static const char algorithm_words[] = "tree, ring, collnet_direct, collnet_chain, nvls, "
                                      "nvls_tree, pat";
static const char protocol_words[] = "ll, ll128, simple";
static const char transport_words[] = "p2p, shm, net";

/* Data share of what a protocol moves: LL pairs each 4 data bytes with a 4-byte flag, LL128 each
 * 120 with 8 (NCCL 2.30, src/include/device.h). */
static double payload_of(int protocol)
{
    static const double share[ATT_PROTOCOL_COUNT] = {0.5, 15.0 / 16.0, 1.0};
    return share[protocol];
}

/* SHM goes through host memory: out and in again. */
static double copies_of(int transport)
{
    return transport == ATT_TRANSPORT_SHM ? 2.0 : 1.0;
}

static int log2_up(int n)
{
    int bits = 0;
    while ((1 << bits) < n)
        bits++;
    return bits;
}

/* Messages that follow each other from the first rank to the last (NCCL 2.30, graph/tuning.cc,
 * nsteps). */
static double hops_of(int collective, int algorithm, int ranks)
{
    int twice = collective == ATT_COLLECTIVE_ALL_REDUCE ? 2 : 1;
    return algorithm == ATT_ALGORITHM_RING ? twice * (ranks - 1) : twice * log2_up(ranks);
}

static void read_machine(att_reader_t *reader, json_t *document, att_surface_info_t *info,
                         double *launch_us)
{
    static const char *const known[] = {
        "ranks", "nodes", "device", "device_units", "channels_ceiling", "launch_us", NULL};
    json_t *machine = att_reader_object(reader, document, "machine");
    size_t mark = att_reader_enter(reader, "machine");
    att_reader_known(reader, machine, known);
    info->ranks = (int)att_reader_integer(reader, machine, "ranks", 1, 65536);
    info->nodes = (int)att_reader_integer(reader, machine, "nodes", 1, 65536);
    att_reader_text(reader, machine, "device");
    info->device_units = (int)att_reader_integer(reader, machine, "device_units", 1, 4096);
    info->channels_ceiling =
        (int)att_reader_integer(reader, machine, "channels_ceiling", 1, CHANNELS_MAX);
    *launch_us = att_reader_number(reader, machine, "launch_us", 0, TIME_MAX_US);
    if (reader->status == ATT_OK && info->nodes > info->ranks)
        att_reader_fail(reader, "nodes", "more nodes than ranks");
    att_reader_leave(reader, mark);
}

static void read_loads(att_reader_t *reader, json_t *document, struct att_surface *surface)
{
    static const char *const known[] = {"name",
                                        "transport_startup",
                                        "transport_bandwidth",
                                        "transport_congestion",
                                        "protocol_startup",
                                        "protocol_bandwidth",
                                        "protocol_congestion",
                                        NULL};
    att_surface_info_t *info = &surface->info;
    json_t *loads = att_reader_array(reader, document, "loads", 1, ATT_SURFACE_LOADS);
    size_t mark = att_reader_enter(reader, "loads");
    for (size_t i = 0; i < json_array_size(loads); i++) {
        size_t inner = att_reader_enter_index(reader, i);
        json_t *load = att_reader_element(reader, loads, i);
        att_reader_known(reader, load, known);
        const char *name = att_reader_text(reader, load, "name");
        for (int j = 0; name != NULL && j < info->load_count; j++)
            if (strcmp(info->loads[j], name) == 0)
                att_reader_fail(reader, "name", "this load appears twice");
        surface->loads[i] = (att_model_load_t){
            .transport_startup = att_reader_number(reader, load, known[1], 1e-3, 1e3),
            .transport_bandwidth = att_reader_number(reader, load, known[2], 1e-3, 1e3),
            .transport_congestion = att_reader_number(reader, load, known[3], 1e-3, 1e3),
            .protocol_startup = att_reader_number(reader, load, known[4], 1e-3, 1e3),
            .protocol_bandwidth = att_reader_number(reader, load, known[5], 1e-3, 1e3),
            .protocol_congestion = att_reader_number(reader, load, known[6], 1e-3, 1e3),
        };
        info->loads[info->load_count++] = name;
        att_reader_leave(reader, inner);
        if (reader->status != ATT_OK)
            break;
    }
    if (reader->status == ATT_OK && strcmp(info->loads[0], "none") != 0)
        att_reader_fail(reader, "0/name", "the first load must be 'none'");
    att_reader_leave(reader, mark);
}

static att_model_phase_t read_phase(att_reader_t *reader, json_t *path, const char *key,
                                    const char *congestion)
{
    const char *const known[] = {"startup_us", "bandwidth_gbs", congestion, "power", NULL};
    json_t *object = att_reader_object(reader, path, key);
    size_t mark = att_reader_enter(reader, key);
    att_reader_known(reader, object, known);
    att_model_phase_t phase = {
        .startup_us = att_reader_number(reader, object, "startup_us", 0, TIME_MAX_US),
        .bandwidth = 1e3 * att_reader_number(reader, object, "bandwidth_gbs", GBPS_MIN, GBPS_MAX),
        .congestion = att_reader_number(reader, object, congestion, 1, 1e15),
        .power = att_reader_number(reader, object, "power", 0, 8),
    };
    att_reader_leave(reader, mark);
    return phase;
}

static void read_path(att_reader_t *reader, json_t *object, int collective, int algorithm,
                      int protocol, const att_surface_info_t *info, double launch_us,
                      att_surface_pair_t *pair)
{
    static const char *const known[] = {"transport", "hop_us", "channel_gbs", "overlap",
                                        "tail",      "phase0", "phase1",      NULL};
    att_reader_known(reader, object, known);
    int transport =
        att_reader_word(reader, object, "transport", att_transport_parse, transport_words);
    if (pair->transports & 1u << transport)
        att_reader_fail(reader, "transport", "this transport appears twice");
    double hop_us = att_reader_number(reader, object, "hop_us", 0, TIME_MAX_US);
    double hops = hops_of(collective, algorithm, info->ranks);
    pair->transports |= 1u << transport;
    pair->paths[transport] = (att_model_path_t){
        .transport = read_phase(reader, object, "phase0", "congestion_bytes"),
        .protocol = read_phase(reader, object, "phase1", "congestion_threads"),
        .payload = payload_of(protocol),
        .copies = copies_of(transport),
        .channel = 1e3 * att_reader_number(reader, object, "channel_gbs", GBPS_MIN, GBPS_MAX),
        .overlap = att_reader_number(reader, object, "overlap", 0, 1),
        .tail = att_reader_number(reader, object, "tail", 0, 1),
        .latency_us = launch_us + hops * hop_us,
        /* A ring keeps every rank busy from the start. */
        .depth = algorithm == ATT_ALGORITHM_RING ? 1
                 : hops > 1                      ? hops
                                                 : 1,
    };
}

/* NCCL's own resource knobs for this pair, and what a chunk may be. */
static void read_native(att_reader_t *reader, json_t *object, const att_surface_info_t *info,
                        att_surface_pair_t *pair)
{
    static const char *const known_native[] = {"transport", "channels", "threads", "chunk_bytes",
                                               NULL};
    static const char *const known_chunk[] = {"grain", "max", NULL};

    json_t *chunk = att_reader_object(reader, object, "chunk");
    size_t mark = att_reader_enter(reader, "chunk");
    att_reader_known(reader, chunk, known_chunk);
    pair->chunk_grain = (uint32_t)att_reader_integer(reader, chunk, "grain", 1, CHUNK_MAX);
    pair->chunk_max = (uint32_t)att_reader_integer(reader, chunk, "max", 1, CHUNK_MAX);
    if (reader->status == ATT_OK && pair->chunk_max % pair->chunk_grain != 0)
        att_reader_fail(reader, "max", "not a multiple of the grain");
    att_reader_leave(reader, mark);

    json_t *native = att_reader_object(reader, object, "native");
    mark = att_reader_enter(reader, "native");
    att_reader_known(reader, native, known_native);
    pair->native.transport =
        (int8_t)att_reader_word(reader, native, "transport", att_transport_parse, transport_words);
    pair->native.channels =
        (uint16_t)att_reader_integer(reader, native, "channels", 1, info->channels_ceiling);
    pair->native.threads = (uint16_t)att_reader_integer(reader, native, "threads", 32, THREADS_MAX);
    pair->native.chunk_bytes = (uint32_t)att_reader_integer(reader, native, "chunk_bytes",
                                                            pair->chunk_grain, pair->chunk_max);
    if (reader->status == ATT_OK) {
        if (pair->native.threads % 32 != 0)
            att_reader_fail(reader, "threads", "not a multiple of 32");
        if (pair->native.chunk_bytes % pair->chunk_grain != 0)
            att_reader_fail(reader, "chunk_bytes", "not a multiple of the grain");
        if (!(pair->transports & 1u << pair->native.transport))
            att_reader_fail(reader, "transport", "there are no constants for this transport");
    }
    att_reader_leave(reader, mark);
}

static void read_pair(att_reader_t *reader, json_t *object, int number,
                      const att_surface_info_t *info, double launch_us,
                      att_surface_collective_t *collective)
{
    static const char *const known[] = {"algorithm", "protocol",   "cost", "chunk",
                                        "native",    "transports", NULL};
    static const char *const known_cost[] = {"latency_us", "bandwidth_gbs", NULL};

    att_reader_known(reader, object, known);
    int algorithm =
        att_reader_word(reader, object, "algorithm", att_algorithm_parse, algorithm_words);
    int protocol = att_reader_word(reader, object, "protocol", att_protocol_parse, protocol_words);
    if (reader->status != ATT_OK)
        return;
    if (collective->offered & ATT_PAIR_BIT(algorithm, protocol)) {
        att_reader_fail(reader, NULL, "this algorithm and protocol appear twice");
        return;
    }
    collective->offered |= ATT_PAIR_BIT(algorithm, protocol);
    att_surface_pair_t *pair = &collective->pairs[algorithm * ATT_PROTOCOL_COUNT + protocol];
    pair->native.algorithm = (int8_t)algorithm;
    pair->native.protocol = (int8_t)protocol;

    json_t *cost = att_reader_object(reader, object, "cost");
    size_t mark = att_reader_enter(reader, "cost");
    att_reader_known(reader, cost, known_cost);
    pair->cost_latency_us = att_reader_number(reader, cost, "latency_us", 0, TIME_MAX_US);
    pair->cost_bandwidth =
        1e3 * att_reader_number(reader, cost, "bandwidth_gbs", GBPS_MIN, GBPS_MAX);
    att_reader_leave(reader, mark);

    json_t *paths = att_reader_array(reader, object, "transports", 1, ATT_TRANSPORT_COUNT);
    mark = att_reader_enter(reader, "transports");
    for (size_t i = 0; i < json_array_size(paths) && reader->status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(reader, i);
        read_path(reader, att_reader_element(reader, paths, i), number, algorithm, protocol, info,
                  launch_us, pair);
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
    read_native(reader, object, info, pair);
}

static void read_collectives(att_reader_t *reader, json_t *document, double launch_us,
                             struct att_surface *surface)
{
    static const char *const known[] = {"collective", "pairs", NULL};

    json_t *list = att_reader_array(reader, document, "collectives", 1, ATT_COLLECTIVE_COUNT);
    size_t mark = att_reader_enter(reader, "collectives");
    for (size_t i = 0; i < json_array_size(list) && reader->status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(reader, i);
        json_t *object = att_reader_element(reader, list, i);
        att_reader_known(reader, object, known);
        int number =
            att_reader_word(reader, object, "collective", att_collective_parse, collective_words);
        att_surface_collective_t *collective = &surface->collectives[number];
        if (collective->offered != 0)
            att_reader_fail(reader, "collective", "this collective appears twice");
        json_t *pairs = att_reader_array(reader, object, "pairs", 1, ATT_PAIR_COUNT);
        size_t deeper = att_reader_enter(reader, "pairs");
        for (size_t j = 0; j < json_array_size(pairs) && reader->status == ATT_OK; j++) {
            size_t deepest = att_reader_enter_index(reader, j);
            read_pair(reader, att_reader_element(reader, pairs, j), number, &surface->info,
                      launch_us, collective);
            att_reader_leave(reader, deepest);
        }
        att_reader_leave(reader, deeper);
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
}

/* The tasks that the constants were fitted to; other sizes are extrapolated. */
static void read_tasks(att_reader_t *reader, json_t *document, struct att_surface *surface)
{
    static const char *const known[] = {"collective", "bytes", NULL};

    json_t *tasks = att_reader_array(reader, document, "tasks", 1, ATT_SURFACE_TASKS);
    size_t mark = att_reader_enter(reader, "tasks");
    for (size_t i = 0; i < json_array_size(tasks) && reader->status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(reader, i);
        json_t *task = att_reader_element(reader, tasks, i);
        att_reader_known(reader, task, known);
        int number =
            att_reader_word(reader, task, "collective", att_collective_parse, collective_words);
        int64_t bytes = att_reader_integer(reader, task, "bytes", 1, INT64_MAX);
        if (reader->status == ATT_OK && surface->collectives[number].offered == 0)
            att_reader_fail(reader, "collective", "there are no constants for this collective");
        if (reader->status == ATT_OK)
            surface->info.tasks[surface->info.task_count++] =
                (att_surface_task_t){.collective = number, .bytes = (uint64_t)bytes};
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
}

/* Honesty is part of the format: what the data do not determine is named, with the reason. */
static void read_undetermined(att_reader_t *reader, json_t *document)
{
    static const char *const known[] = {"constants", "reason", NULL};

    json_t *list = att_reader_array(reader, document, "undetermined", 0, 64);
    size_t mark = att_reader_enter(reader, "undetermined");
    for (size_t i = 0; i < json_array_size(list) && reader->status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(reader, i);
        json_t *object = att_reader_element(reader, list, i);
        att_reader_known(reader, object, known);
        att_reader_text(reader, object, "constants");
        att_reader_text(reader, object, "reason");
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
}

static void read_document(att_reader_t *reader, struct att_surface *surface)
{
    static const char *const known[] = {"version",     "units",       "source",       "name",
                                        "description", "machine",     "noise",        "tasks",
                                        "loads",       "collectives", "undetermined", NULL};
    static const char *const units[] = {"time", "bandwidth", "size", NULL};
    static const char *const unit_words[] = {"microseconds", "GB/s", "bytes"};

    json_t *document = surface->document;
    if (!json_is_object(document)) {
        att_reader_fail(reader, NULL, "expected an object");
        return;
    }
    json_t *version = json_object_get(document, "version");
    if (json_is_integer(version) && json_integer_value(version) != ATT_SURFACE_VERSION) {
        reader->status = att_fail(reader->error, ATT_EVERSION,
                                  "/version: this attune reads surfaces of version %d, not %lld",
                                  ATT_SURFACE_VERSION, (long long)json_integer_value(version));
        return;
    }
    att_reader_integer(reader, document, "version", ATT_SURFACE_VERSION, ATT_SURFACE_VERSION);
    att_reader_known(reader, document, known);

    json_t *object = att_reader_object(reader, document, "units");
    size_t mark = att_reader_enter(reader, "units");
    att_reader_known(reader, object, units);
    for (int i = 0; units[i] != NULL; i++) {
        const char *unit = att_reader_text(reader, object, units[i]);
        if (unit != NULL && strncmp(unit, unit_words[i], strlen(unit_words[i])) != 0)
            att_reader_fail(reader, units[i], "the model's constants are in %s", unit_words[i]);
    }
    att_reader_leave(reader, mark);

    att_surface_info_t *info = &surface->info;
    info->source = att_reader_text(reader, document, "source");
    info->name = att_reader_text(reader, document, "name");
    info->description = att_reader_text(reader, document, "description");
    info->noise = att_reader_number(reader, document, "noise", 0, 1);
    double launch_us = 0;
    read_machine(reader, document, info, &launch_us);
    read_loads(reader, document, surface);
    read_collectives(reader, document, launch_us, surface);
    read_tasks(reader, document, surface);
    read_undetermined(reader, document);
}

int att_definition_read(struct att_surface *surface, att_error_t *error)
{
    att_reader_t reader = {.error = error};
    read_document(&reader, surface);
    return reader.status;
}
