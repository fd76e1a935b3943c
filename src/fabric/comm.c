#include "fabric/comm.h"

#include "base/clock.h"
#include "base/names.h"
#include "base/protocol.h"
#include "fabric/error.h"
#include "fabric/plugin.h"
#include "fabric/report.h"
#include "fabric/version.h"
#include "surface/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COMM_MAGIC 0x6d6d6f6366747461ull

/* Real mode, unless ATTUNE_FABRIC_CHANNELS, NCCL_MIN/MAX_NCHANNELS or the config say otherwise. */
#define CEILING          16
#define DEFAULT_CHANNELS 2
#define DEFAULT_CHUNK    524288

ncclResult_t att_comm_mode(att_fabric_mode_t *mode)
{
    const char *word = getenv("ATTUNE_FABRIC_MODE");
    if (!word || !*word || !strcmp(word, "real"))
        *mode = ATT_FABRIC_REAL;
    else if (!strcmp(word, "model"))
        *mode = ATT_FABRIC_MODEL;
    else
        return att_fabric_error(ncclInvalidUsage, "ATTUNE_FABRIC_MODE=%s is neither real nor model",
                                word);
    return ncclSuccess;
}

ncclResult_t att_comm_check(const struct ncclComm *comm, const char *what)
{
    if (!comm || comm->magic != COMM_MAGIC)
        return att_fabric_error(ncclInvalidArgument, "%s: not a communicator", what);
    return (ncclResult_t)atomic_load(&((struct ncclComm *)comm)->error);
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/* Channels that wires are made for: the same on all ranks. */
static ncclResult_t ceiling_of(const att_model_setup_t *setup, int *ceiling)
{
    const char *text = getenv("ATTUNE_FABRIC_CHANNELS");
    *ceiling = setup ? att_surface_info(setup->surface)->channels_ceiling : CEILING;
    if (text && *text)
        *ceiling = atoi(text);
    if (att_fabric_version() < 22501)
        *ceiling = at_most(*ceiling, 32); /* MAXCHANNELS */
    if (*ceiling < 1 || *ceiling > ATT_ARENA_CHANNELS)
        return att_fabric_error(ncclInvalidUsage, "%d channels, but 1 to %d are possible", *ceiling,
                                ATT_ARENA_CHANNELS);
    return ncclSuccess;
}

/* comm->nChannels and the untuned default of this rank, from the environment and the config; the
 * environment wins, as in NCCL. */
static void choose_channels(struct ncclComm *comm, const att_comm_wish_t *wish, int ceiling)
{
    int most = att_plugin_getenv_int("NCCL_MAX_NCHANNELS", 0);
    if (!most)
        most = att_plugin_getenv_int("NCCL_MAX_CTAS", wish->max_channels);
    int least = att_plugin_getenv_int("NCCL_MIN_NCHANNELS", 0);
    if (!least)
        least = att_plugin_getenv_int("NCCL_MIN_CTAS", wish->min_channels);
    comm->decider.channels = most > 0 ? at_most(most, ceiling) : ceiling;
    int channels = least > DEFAULT_CHANNELS ? least : DEFAULT_CHANNELS;
    comm->decider.default_channels = at_most(channels, comm->decider.channels);
    comm->decider.default_chunk = DEFAULT_CHUNK;
    comm->decider.algorithms = att_fabric_version() < 22304 ? ATT_ALGORITHMS - 1 : ATT_ALGORITHMS;
}

static ncclResult_t attach(struct ncclComm *comm, const att_comm_wish_t *wish,
                           att_fabric_mode_t mode, int ceiling)
{
    att_arena_rank_t mine = {.process = att_device_process(),
                             .channels = (uint32_t)comm->decider.channels,
                             .ordinal = atomic_fetch_add(&comm->device->communicators, 1),
                             .host = att_host_hash(att_plugin_getenv("NCCL_HOSTID"))};
    att_host_name(mine.host_name, sizeof mine.host_name);
    ncclResult_t result =
        att_arena_attach(&comm->arena, comm->name, mode, wish->ranks, wish->rank, ceiling, &mine);
    if (result != ncclSuccess)
        return result;
    comm->attached = true;
    uint64_t hosts[ATT_ARENA_RANKS];
    for (int r = 0; r < wish->ranks; r++) {
        hosts[r] = comm->arena.ranks[r].host;
        comm->decider.channels =
            at_most(comm->decider.channels, (int)comm->arena.ranks[r].channels);
    }
    comm->layout = att_host_layout(hosts, wish->ranks);
    comm->nodes = comm->layout.nodes;
    comm->decider.default_channels =
        at_most(comm->decider.default_channels, comm->decider.channels);
    return ncclSuccess;
}

static ncclResult_t start_tuner(struct ncclComm *comm)
{
    att_decider_t *decider = &comm->decider;
    const ncclTuner_v6_t *tuner = att_plugin_tuner(&decider->tuner_chunks);
    if (!tuner)
        return ncclSuccess;
    ncclNvlDomainInfo_t domains = {comm->nodes, comm->layout.fewest, comm->layout.most};
    ncclTunerConstants_t constants;
    memset(&constants, 0, sizeof constants);
    ncclResult_t result = tuner->init(&decider->tuner_context, comm->hash, (size_t)decider->ranks,
                                      (size_t)comm->nodes, att_fabric_logger, &domains, &constants);
    if (result != ncclSuccess) {
        att_plugin_release_tuner();
        return att_fabric_error(result, "the tuner plugin %s failed to start", tuner->name);
    }
    decider->tuner = tuner;
    comm->has_tuner = true;
    return ncclSuccess;
}

static ncclResult_t use_surface(struct ncclComm *comm, const att_model_setup_t *setup)
{
    const att_surface_info_t *info = att_surface_info(setup->surface);
    if (info->ranks != comm->decider.ranks && comm->decider.ranks > 1 && !setup->any_ranks)
        return att_fabric_error(ncclInvalidUsage,
                                "surface %s is for %d ranks, this communicator has %d "
                                "(ATTUNE_FABRIC_ANY_RANKS=1 allows it)",
                                info->name, info->ranks, comm->decider.ranks);
    comm->device->units = info->device_units;
    comm->decider.surface = setup->surface;
    return ncclSuccess;
}

/* NCCL_BUFFSIZE up to what the shared memory's slots hold (src/init.cc computeBuffSizes). */
static ncclResult_t choose_buffer(att_decider_t *decider)
{
    int buffer = att_plugin_param_int("NCCL_BUFFSIZE", 0);
    uint32_t least = ATT_GRAIN_SIMPLE * ATT_BUFFER_STEPS;
    if (buffer != 0 && ((uint32_t)buffer < least || (uint32_t)buffer > ATT_BUFFER_SIMPLE))
        return att_fabric_error(ncclInvalidUsage,
                                "NCCL_BUFFSIZE=%d: the fabric takes %u to %u bytes", buffer, least,
                                ATT_BUFFER_SIMPLE);
    decider->buffer = (uint32_t)buffer;
    return ncclSuccess;
}

/* What NCCL would fix for the communicator's life: threads a block, the size of its buffers, and in
 * model mode the transport. */
static ncclResult_t choose_resources(struct ncclComm *comm)
{
    const char *transport = att_plugin_getenv("ATTUNE_FABRIC_TRANSPORT");
    int threads = att_plugin_param_int("NCCL_NTHREADS", 0);
    comm->decider.transport = ATT_TRANSPORT_KEEP;
    /* getNthreads (src/graph/tuning.cc): a multiple of 32 in [64, 512]. */
    if (threads != 0 && (threads % 32 != 0 || threads < 64 || threads > 512))
        threads = threads < 64 ? 64 : 512;
    comm->decider.threads = threads;
    ncclResult_t result = choose_buffer(&comm->decider);
    if (result != ncclSuccess)
        return result;
    if (!transport || !*transport)
        return ncclSuccess;
    comm->decider.transport = att_transport_parse(transport);
    if (!comm->decider.surface)
        return att_fabric_error(ncclInvalidUsage,
                                "ATTUNE_FABRIC_TRANSPORT=%s: only the model has transports",
                                transport);
    if (comm->decider.transport < 0 ||
        !att_surface_has_transport(comm->decider.surface, comm->decider.transport))
        return att_fabric_error(ncclInvalidUsage,
                                "surface %s has no path over ATTUNE_FABRIC_TRANSPORT=%s",
                                att_surface_info(comm->decider.surface)->name, transport);
    return ncclSuccess;
}

/* A modelled machine has nodes also where all ranks run on one host. A communicator of fewer ranks
 * lies on the nodes that its processes are on. */
static ncclResult_t check_nodes(struct ncclComm *comm, const att_model_setup_t *setup)
{
    const att_surface_info_t *info = att_surface_info(setup->surface);
    int ranks = comm->decider.ranks, nodes = info->nodes > 0 ? info->nodes : 1;
    if (ranks != info->ranks || comm->nodes == nodes || (comm->nodes > 1 && setup->any_ranks))
        return ncclSuccess;
    if (comm->nodes > 1)
        return att_fabric_error(ncclInvalidUsage,
                                "surface %s is for %d nodes, this communicator's ranks are on %d "
                                "(ATTUNE_FABRIC_ANY_RANKS=1 allows it)",
                                info->name, nodes, comm->nodes);
    comm->nodes = nodes;
    comm->layout = (att_host_layout_t){nodes, ranks / nodes, (ranks + nodes - 1) / nodes};
    return ncclSuccess;
}

/* NCCL's line for each connection (transport/p2p.cc, shm.cc): which way the model's ring goes. */
static void say_transport(const struct ncclComm *comm, const att_comm_wish_t *wish)
{
    const struct att_surface *surface = comm->decider.surface;
    const att_surface_info_t *info = att_surface_info(surface);
    int transport = comm->decider.transport, next = (wish->rank + 1) % wish->ranks;
    if (transport == ATT_TRANSPORT_KEEP)
        transport =
            att_surface_default(surface, info->tasks[0].collective, info->tasks[0].bytes).transport;
    for (int i = 0; transport != ATT_TRANSPORT_KEEP && i < comm->decider.channels; i++)
        att_fabric_info("Channel %02d/0 : %d[0] -> %d[0] via %s/model", i, wish->rank, next,
                        transport == ATT_TRANSPORT_P2P ? "P2P" : "SHM");
}

static ncclResult_t create(struct ncclComm *comm, const att_comm_wish_t *wish)
{
    att_fabric_mode_t mode;
    const att_model_setup_t *setup = NULL;
    int ceiling = 0;
    ncclResult_t result = att_comm_mode(&mode);
    if (result == ncclSuccess && mode == ATT_FABRIC_MODEL)
        result = att_model_setup(&setup);
    if (result == ncclSuccess)
        result = ceiling_of(setup, &ceiling);
    if (result == ncclSuccess)
        result = att_oracle_open(&comm->oracle);
    if (result == ncclSuccess)
        result = att_pairs_parse(att_plugin_getenv("NCCL_ALGO"), att_plugin_getenv("NCCL_PROTO"),
                                 &comm->decider.pairs);
    if (result == ncclSuccess && setup)
        result = use_surface(comm, setup);
    if (result == ncclSuccess)
        result = choose_resources(comm);
    if (result != ncclSuccess)
        return result;
    choose_channels(comm, wish, ceiling);
    result = attach(comm, wish, mode, ceiling);
    if (result == ncclSuccess && setup)
        result = check_nodes(comm, setup);
    if (result != ncclSuccess)
        return result;
    att_event_open(&comm->profile, comm->hash, comm->comm_name, comm->nodes, wish->ranks,
                   wish->rank);
    if (setup)
        result = att_model_open(&comm->model, setup, &comm->arena, comm->device);
    if (result == ncclSuccess)
        result = start_tuner(comm);
    if (result != ncclSuccess)
        return result;
    att_team_open(&comm->team, &comm->arena, setup ? &comm->model : NULL);
    comm->opened_team = true;
    att_report_created(wish->ranks, mode, setup);
    if (setup && wish->ranks > 1)
        say_transport(comm, wish);
    att_fabric_info(
        "comm %p rank %d nranks %d nNodes %d commId 0x%llx %d coll channels - Init COMPLETE",
        (void *)comm, wish->rank, wish->ranks, comm->nodes, (unsigned long long)comm->hash,
        comm->decider.channels);
    return ncclSuccess;
}

ncclResult_t att_comm_create(const att_comm_wish_t *wish, struct ncclComm **out)
{
    if (wish->ranks < 1 || wish->ranks > ATT_ARENA_RANKS || wish->rank < 0 ||
        wish->rank >= wish->ranks)
        return att_fabric_error(ncclInvalidArgument, "rank %d of %d ranks (1 to %d)", wish->rank,
                                wish->ranks, ATT_ARENA_RANKS);
    struct ncclComm *comm = NULL;
    if (posix_memalign((void **)&comm, 64, sizeof *comm))
        return att_fabric_error(ncclSystemError, "out of memory");
    memset(comm, 0, sizeof *comm);
    comm->magic = COMM_MAGIC;
    memcpy(comm->name, wish->name, sizeof comm->name);
    memcpy(comm->comm_name, wish->comm_name, sizeof comm->comm_name);
    comm->hash = att_arena_hash(wish->name);
    comm->nodes = 1;
    comm->device = wish->device;
    comm->decider.ranks = wish->ranks;
    att_device_use(wish->device);
    ncclResult_t result = create(comm, wish);
    if (result != ncclSuccess) {
        att_comm_destroy(comm);
        return result;
    }
    *out = comm;
    return ncclSuccess;
}

void att_comm_destroy(struct ncclComm *comm)
{
    if (!comm)
        return;
    if (comm->opened_team) {
        att_team_close(&comm->team);
        att_report_destroyed(comm->arena.rank, comm->calls, atomic_load(&comm->oracle.mismatches));
    }
    att_event_flush(&comm->profile); /* NCCL's proxy thread ends before the plugins do */
    if (comm->has_tuner) {
        comm->decider.tuner->finalize(comm->decider.tuner_context);
        att_plugin_release_tuner();
    }
    att_event_close(&comm->profile);
    if (comm->attached)
        att_arena_detach(&comm->arena);
    comm->magic = 0;
    free(comm->tasks);
    free(comm);
}

void att_comm_abort(struct ncclComm *comm)
{
    atomic_store(&comm->arena.aborted, 1);
    atomic_store(&comm->error, ncclInternalError);
    while (atomic_load(&comm->inside))
        att_clock_sleep_ns(200000);
    att_comm_destroy(comm);
}

typedef struct att_colour {
    int color, key, rank;
} att_colour_t;

static int by_key(const void *left, const void *right)
{
    const att_colour_t *a = left, *b = right;
    return a->key != b->key ? (a->key < b->key ? -1 : 1)
                            : (a->rank > b->rank) - (a->rank < b->rank);
}

ncclResult_t att_comm_split(struct ncclComm *parent, int color, int key, att_comm_wish_t *wish)
{
    att_arena_t *arena = &parent->arena;
    arena->ranks[arena->rank].color = color;
    arena->ranks[arena->rank].key = key;
    atomic_store(&arena->round, parent->calls + 1); /* whoever leaves now is missed */
    ncclResult_t result = att_arena_barrier(arena, NULL, NULL);
    att_colour_t members[ATT_ARENA_RANKS];
    int count = 0;
    for (int r = 0; r < arena->count && result == ncclSuccess; r++)
        if (arena->ranks[r].color == color)
            members[count++] = (att_colour_t){color, arena->ranks[r].key, r};
    if (result == ncclSuccess) /* colours may be overwritten from here on */
        result = att_arena_barrier(arena, NULL, NULL);
    if (result != ncclSuccess)
        return result;
    qsort(members, (size_t)count, sizeof members[0], by_key);
    memset(wish, 0, sizeof *wish);
    char text[96];
    snprintf(text, sizeof text, "%s/%u/%d", parent->name, parent->splits++, color);
    uint64_t high = att_arena_hash(text);
    snprintf(text, sizeof text, "%d/%s", color, parent->name);
    snprintf(wish->name, sizeof wish->name, "%016llx%016llx", (unsigned long long)high,
             (unsigned long long)att_arena_hash(text));
    wish->device = parent->device;
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    wish->ranks = count;
    for (int i = 0; i < count; i++)
        if (members[i].rank == arena->rank)
            wish->rank = i;
    return ncclSuccess;
}

ncclResult_t att_comm_add_task(struct ncclComm *comm, const att_task_t *task)
{
    if (comm->task_count == comm->task_capacity) {
        size_t capacity = comm->task_capacity ? 2 * comm->task_capacity : 4;
        att_task_t *tasks = realloc(comm->tasks, capacity * sizeof *tasks);
        if (!tasks)
            return att_fabric_error(ncclSystemError, "out of memory");
        comm->tasks = tasks;
        comm->task_capacity = capacity;
    }
    comm->tasks[comm->task_count++] = *task;
    return ncclSuccess;
}
