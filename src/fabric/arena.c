#include "fabric/arena.h"

#include "base/clock.h"
#include "base/protocol.h"
#include "fabric/arena_file.h"
#include "fabric/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAGIC  0x626166657474610aull
#define ARENA_LAYOUT 2u
#define PAGE         4096u

/* A wire's slots, of all protocols: LL 8 slots of 32 KiB of data in 64 KiB of lines, LL128 8 slots
 * of 576,000 bytes of data in 614,400 of lines, Simple 4 MiB. */
#define WIRE_PAYLOAD (ATT_BUFFER_LL + ATT_BUFFER_LL128 + ATT_BUFFER_SIMPLE)

#define LOOK_NS     100000000ull /* between two looks at the peers' locks */
#define INIT_WAIT_S 120          /* for ranks that never come */

struct att_arena_map {
    struct att_arena_map *next;
    char name[33];
    att_arena_file_t file;
    int references;
    bool local[ATT_ARENA_RANKS]; /* ranks that are threads of this process */
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct att_arena_map *registry;

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static size_t header_bytes(void)
{
    return round_up(sizeof(att_arena_header_t), PAGE);
}

static size_t ranks_bytes(size_t ranks)
{
    return round_up(ranks * sizeof(att_arena_rank_t), PAGE);
}

static size_t wires_bytes(att_fabric_mode_t mode, size_t ranks, size_t channels)
{
    return mode == ATT_FABRIC_MODEL
               ? 0
               : round_up(ranks * channels * ATT_WIRE_KINDS * sizeof(att_arena_wire_t), PAGE);
}

static size_t payload_bytes(att_fabric_mode_t mode, size_t ranks, size_t channels)
{
    if (mode == ATT_FABRIC_MODEL)
        return 2 * (ranks * ranks + 1) * ATT_ARENA_STAGE;
    return ranks * channels * ATT_WIRE_KINDS * WIRE_PAYLOAD;
}

void att_arena_new_name(char name[33])
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        uint64_t words[2] = {att_clock_ns(), (uint64_t)getpid() << 32 ^ (uintptr_t)name};
        memcpy(bytes, words, sizeof bytes);
    }
    for (int i = 0; i < 16; i++)
        snprintf(name + 2 * i, 3, "%02x", bytes[i]);
}

uint64_t att_arena_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3ull;
    return hash ? hash : 1;
}

/* First contents of a new file. */
typedef struct att_arena_birth {
    att_fabric_mode_t mode;
    uint32_t ranks, channels;
    uint64_t hash, total;
} att_arena_birth_t;

static void initialise(void *base, void *argument)
{
    const att_arena_birth_t *birth = argument;
    att_arena_header_t *header = base;
    header->layout = ARENA_LAYOUT;
    header->ranks = birth->ranks;
    header->mode = birth->mode;
    header->channels = birth->channels;
    header->hash = birth->hash;
    header->total_bytes = birth->total;
    header->magic = ARENA_MAGIC;
}

/* Under the registry's mutex. */
static ncclResult_t map_arena(const char *name, att_arena_birth_t *birth, size_t eager,
                              struct att_arena_map **found)
{
    for (struct att_arena_map *map = registry; map; map = map->next) {
        if (!strcmp(map->name, name)) {
            map->references++;
            *found = map;
            return ncclSuccess;
        }
    }
    struct att_arena_map *map = calloc(1, sizeof *map);
    if (!map)
        return att_fabric_error(ncclSystemError, "out of memory");
    snprintf(map->name, sizeof map->name, "%s", name);
    if (!registry) /* our own locks would be lost by opening a file that we have mapped */
        att_arena_file_sweep();
    ncclResult_t result =
        att_arena_file_open(&map->file, name, birth->total, eager, initialise, birth);
    if (result != ncclSuccess) {
        free(map);
        return result;
    }
    map->references = 1;
    map->next = registry;
    registry = map;
    *found = map;
    return ncclSuccess;
}

static void unmap_arena(struct att_arena_map *map)
{
    pthread_mutex_lock(&registry_mutex);
    if (--map->references == 0) {
        for (struct att_arena_map **link = &registry; *link; link = &(*link)->next) {
            if (*link == map) {
                *link = map->next;
                break;
            }
        }
        att_arena_file_close(&map->file);
        free(map);
    }
    pthread_mutex_unlock(&registry_mutex);
}

int att_arena_mapped(void)
{
    int count = 0;
    pthread_mutex_lock(&registry_mutex);
    for (struct att_arena_map *map = registry; map; map = map->next)
        count++;
    pthread_mutex_unlock(&registry_mutex);
    return count;
}

static void give_reason(att_arena_t *arena, const char *format, int rank,
                        const att_arena_rank_t *peer)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&arena->reasoned, &none, 1)) {
        snprintf(arena->reason, sizeof arena->reason, format, rank, (long)peer->pid,
                 peer->host_name);
        att_fabric_error(ncclRemoteError, "rank %d: %s", arena->rank, arena->reason);
    }
}

/* Peers that will never again do what we wait for. */
static int look_at_peers(att_arena_t *arena)
{
    uint64_t round = atomic_load(&arena->round);
    for (int r = 0; r < arena->count; r++) {
        att_arena_rank_t *peer = &arena->ranks[r];
        uint32_t state = atomic_load(&peer->state);
        if (r == arena->rank || state == ATT_ARENA_EMPTY)
            continue;
        if (state == ATT_ARENA_ATTACHED && !arena->map->local[r] &&
            !att_arena_file_held(&arena->map->file, r)) {
            /* It may have left in the meantime: only an attached rank can be dead. */
            if (atomic_compare_exchange_strong(&peer->state, &state, ATT_ARENA_DEAD))
                state = ATT_ARENA_DEAD;
        }
        if (state == ATT_ARENA_ATTACHED || att_signal_reached(&peer->finished, (uint32_t)round))
            continue;
        uint32_t missing = (uint32_t)round - atomic_load(&peer->finished.value);
        give_reason(arena,
                    state == ATT_ARENA_DEAD ? "the process of rank %d (pid %ld on %s) died"
                                            : "rank %d (pid %ld on %s) left the communicator",
                    r, peer);
        att_arena_fail(arena, ncclRemoteError, round - missing);
        return ncclRemoteError;
    }
    return 0;
}

static int watch_check(void *argument)
{
    att_arena_t *arena = argument;
    if (atomic_load(&arena->aborted))
        return ncclInternalError;
    ncclResult_t failure = att_arena_failure(arena);
    if (failure != ncclSuccess)
        return (int)failure;
    uint64_t now = att_clock_ns(), looked = atomic_load(&arena->looked_ns);
    if (now - looked < LOOK_NS || !atomic_compare_exchange_strong(&arena->looked_ns, &looked, now))
        return 0;
    return look_at_peers(arena);
}

ncclResult_t att_arena_wait(att_arena_t *arena, att_signal_t *signal, uint32_t target)
{
    return (ncclResult_t)att_signal_wait(signal, target, &arena->watch);
}

void att_arena_fail(att_arena_t *arena, ncclResult_t result, uint64_t call)
{
    uint64_t failure = call << 8 | (uint64_t)result;
    uint64_t known = atomic_load(&arena->header->failure);
    while ((known == 0 || failure >> 8 < known >> 8) &&
           !atomic_compare_exchange_weak(&arena->header->failure, &known, failure))
        ;
}

ncclResult_t att_arena_failure(const att_arena_t *arena)
{
    uint64_t failure = atomic_load(&arena->header->failure);
    bool ours = failure && failure >> 8 < atomic_load(&((att_arena_t *)arena)->round);
    return ours ? (ncclResult_t)(failure & 0xff) : ncclSuccess;
}

/* Wait for all ranks; a rank that never comes is given up on. */
typedef struct att_arrival {
    att_arena_t *arena;
    uint64_t until_ns;
} att_arrival_t;

static int arrival_check(void *argument)
{
    att_arrival_t *arrival = argument;
    int result = watch_check(arrival->arena);
    if (!result && att_clock_ns() > arrival->until_ns)
        result = ncclSystemError;
    return result;
}

static ncclResult_t wait_for_all(att_arena_t *arena)
{
    att_arena_header_t *header = arena->header;
    if (att_signal_add(&header->attached, 1) == header->ranks)
        att_arena_file_unlink(&arena->map->file);
    att_arrival_t arrival = {arena, att_clock_ns() + INIT_WAIT_S * 1000000000ull};
    att_watch_t watch = {arrival_check, &arrival};
    ncclResult_t result = (ncclResult_t)att_signal_wait(&header->attached, header->ranks, &watch);
    if (result == ncclSystemError)
        att_fabric_error(result, "only %u of %u ranks came within %d s",
                         atomic_load(&header->attached.value), header->ranks, INIT_WAIT_S);
    return result;
}

ncclResult_t att_arena_attach(att_arena_t *arena, const char *name, att_fabric_mode_t mode,
                              int ranks, int rank, int channels, const att_arena_rank_t *mine)
{
    size_t before = header_bytes() + ranks_bytes((size_t)ranks) +
                    wires_bytes(mode, (size_t)ranks, (size_t)channels);
    att_arena_birth_t birth = {mode, (uint32_t)ranks, (uint32_t)channels, att_arena_hash(name),
                               before + payload_bytes(mode, (size_t)ranks, (size_t)channels)};
    memset(arena, 0, sizeof *arena);
    pthread_mutex_lock(&registry_mutex);
    struct att_arena_map *map = NULL;
    ncclResult_t result = map_arena(name, &birth, before, &map);
    if (result == ncclSuccess && !map->local[rank]) {
        result = att_arena_file_hold(&map->file, rank);
        map->local[rank] = result == ncclSuccess;
    }
    pthread_mutex_unlock(&registry_mutex);
    if (result != ncclSuccess) {
        if (map)
            unmap_arena(map);
        return result;
    }

    uint8_t *base = map->file.base;
    arena->map = map;
    arena->header = map->file.base;
    arena->ranks = (void *)(base + header_bytes());
    arena->wires = (void *)(base + header_bytes() + ranks_bytes((size_t)ranks));
    arena->payload = base + before;
    arena->rank = rank;
    arena->count = ranks;
    arena->watch = (att_watch_t){watch_check, arena};
    atomic_store(&arena->round, 1); /* whoever leaves before the first call is missed */
    atomic_store(&arena->looked_ns, att_clock_ns());

    att_arena_header_t *header = arena->header;
    uint32_t state = ATT_ARENA_EMPTY;
    if (header->magic != ARENA_MAGIC || header->layout != ARENA_LAYOUT ||
        header->ranks != (uint32_t)ranks || header->mode != (uint32_t)mode ||
        header->channels != (uint32_t)channels) {
        result = att_fabric_error(ncclInvalidUsage,
                                  "rank %d has %d ranks, mode %d, %d channels, but another "
                                  "rank of this communicator has %u, %u, %u",
                                  rank, ranks, mode, channels, header->ranks, header->mode,
                                  header->channels);
    } else if (!atomic_compare_exchange_strong(&arena->ranks[rank].state, &state,
                                               ATT_ARENA_ATTACHED)) {
        result = att_fabric_error(ncclInvalidUsage, "rank %d exists twice", rank);
    }
    if (result != ncclSuccess) {
        att_arena_fail(arena, ncclInvalidUsage, 0);
        unmap_arena(map);
        return result;
    }
    att_arena_rank_t *block = &arena->ranks[rank];
    block->pid = (int32_t)getpid();
    block->process = mine->process;
    block->channels = mine->channels;
    block->ordinal = mine->ordinal;
    block->host = mine->host;
    memcpy(block->host_name, mine->host_name, sizeof block->host_name);
    result = wait_for_all(arena);
    if (result != ncclSuccess) {
        att_arena_fail(arena, result, 0);
        att_arena_detach(arena);
    }
    return result;
}

void att_arena_detach(att_arena_t *arena)
{
    if (!arena->map)
        return;
    if (atomic_load(&arena->header->attached.value) < arena->header->ranks)
        att_arena_file_unlink(&arena->map->file);
    atomic_store(&arena->ranks[arena->rank].state, ATT_ARENA_LEFT);
    unmap_arena(arena->map);
    arena->map = NULL;
}

ncclResult_t att_arena_barrier(att_arena_t *arena, void (*work)(void *argument), void *argument)
{
    att_arena_header_t *header = arena->header;
    uint32_t generation = atomic_load(&header->generation.value);
    if (atomic_fetch_add(&header->arrivals, 1) + 1 == header->ranks) {
        if (work)
            work(argument);
        atomic_store(&header->arrivals, 0);
        att_signal_add(&header->generation, 1);
        return att_arena_failure(arena);
    }
    ncclResult_t result = att_arena_wait(arena, &header->generation, generation + 1);
    return result != ncclSuccess ? result : att_arena_failure(arena);
}

static size_t wire_index(att_arena_t *arena, int rank, int channel, att_wire_kind_t kind)
{
    return ((size_t)rank * arena->header->channels + (size_t)channel) * ATT_WIRE_KINDS + kind;
}

att_arena_wire_t *att_arena_wire(att_arena_t *arena, int rank, int channel, att_wire_kind_t kind)
{
    return &arena->wires[wire_index(arena, rank, channel, kind)];
}

uint8_t *att_arena_slots(att_arena_t *arena, int rank, int channel, att_wire_kind_t kind,
                         int protocol, size_t *bytes)
{
    uint8_t *slots = arena->payload + wire_index(arena, rank, channel, kind) * WIRE_PAYLOAD;
    for (int p = 0; p < protocol; p++)
        slots += att_protocol_buffer(p);
    *bytes = att_protocol_buffer(protocol);
    return slots;
}

ncclResult_t att_arena_reserve(att_arena_t *arena, const uint8_t *pointer, size_t bytes)
{
    return att_arena_file_reserve(&arena->map->file, pointer, bytes);
}

uint8_t *att_arena_stage(att_arena_t *arena, int rank, int parity)
{
    size_t ranks = arena->header->ranks;
    return arena->payload +
           ((size_t)parity * (ranks * ranks + 1) + (size_t)rank * ranks) * ATT_ARENA_STAGE;
}

uint8_t *att_arena_result(att_arena_t *arena, int parity)
{
    size_t ranks = arena->header->ranks;
    return arena->payload +
           ((size_t)parity * (ranks * ranks + 1) + ranks * ranks) * ATT_ARENA_STAGE;
}
