/*
 * arena: the shared memory of one communicator.
 *
 * The first rank creates the file "<dir>/attfab-<uid>-<id>", the last one to come unlinks it, so
 * that nothing is left whatever happens later; leftovers of runs that died before that are removed
 * when the next arena is made. Ranks that are threads of one process share one mapping.
 *
 * Layout: header, one block per rank, one block per wire (counters), then the payload: slots of the
 * wires (real mode, allocated when first used) or the staging area (model mode).
 *
 * Liveness: the process of a rank holds a POSIX record lock on one byte of the file, which the
 * kernel drops when the process dies, also across pid namespaces; a child by fork does not inherit
 * it.
 */
#ifndef ATT_FABRIC_ARENA_H
#define ATT_FABRIC_ARENA_H

#include "fabric/nccl_abi.h"
#include "fabric/signal.h"

#include <stdbool.h>

#define ATT_ARENA_RANKS    256    /* most ranks of one communicator */
#define ATT_ARENA_CHANNELS 64     /* NCCL's MAXCHANNELS */
#define ATT_ARENA_BATCH    32     /* most calls of one batch */
#define ATT_ARENA_CALLS    64     /* calls whose settings are kept for comparison: two batches */
#define ATT_ARENA_STAGE    65536u /* bytes of a block that move on every modelled call */

typedef enum att_fabric_mode { ATT_FABRIC_REAL = 0, ATT_FABRIC_MODEL = 1 } att_fabric_mode_t;

/* What a rank uses for one call, as told to the others. */
typedef struct att_arena_call {
    uint64_t call;
    uint64_t bytes; /* as the tuner sees them */
    uint64_t count; /* elements, as the caller gave them */
    uint8_t function;
    uint8_t algorithm;
    uint8_t protocol;
    uint8_t datatype;
    uint8_t op;
    uint8_t root;
    uint16_t max_channels; /* decided */
    uint16_t channel_low;  /* really used: [channel_low, channel_low + channels) */
    uint16_t channels;
    uint32_t chunk_low, chunk_middle, chunk_high; /* bytes, 0 where there is no such part */
    uint64_t count_low, count_middle, count_high; /* elements of the parts */
} att_arena_call_t;

typedef enum att_arena_state {
    ATT_ARENA_EMPTY = 0,
    ATT_ARENA_ATTACHED = 1,
    ATT_ARENA_LEFT = 2, /* destroyed or aborted its communicator */
    ATT_ARENA_DEAD = 3  /* its process was found dead */
} att_arena_state_t;

typedef struct att_arena_rank {
    _Alignas(64) _Atomic uint32_t state; /* att_arena_state_t */
    int32_t pid;
    uint64_t process;    /* random id of its process: buffers of equal processes can be shared */
    uint64_t ordinal;    /* communicators that its device had before */
    uint64_t host;       /* att_host_hash(): equal on one node */
    char host_name[48];  /* for messages */
    uint32_t channels;   /* what this rank could use; the smallest of all counts */
    int32_t color, key;  /* of the split in progress */
    uint64_t arrival_ns; /* model: virtual time of arrival at the current call */
    struct {
        uint64_t send, receive;
    } buffers[2];          /* model: its buffers of the current call (by call % 2) */
    att_signal_t arrived;  /* calls whose setting it has told */
    att_signal_t compared; /* calls whose setting it has compared with those told before */
    att_signal_t finished; /* calls that it is through with */
    att_arena_call_t calls[ATT_ARENA_CALLS];
} att_arena_rank_t;

/* Flow control of one protocol of one wire, in steps. */
typedef struct att_arena_flow {
    att_signal_t tail; /* steps written, by the sender */
    att_signal_t head; /* steps read, by the receiver */
} att_arena_flow_t;

typedef struct att_arena_wire {
    att_arena_flow_t flows[3]; /* by protocol */
} att_arena_wire_t;

typedef struct att_arena_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t ranks;
    uint32_t mode;     /* att_fabric_mode_t */
    uint32_t channels; /* wires exist for so many */
    uint64_t hash;     /* commHash */
    uint64_t total_bytes;
    _Atomic uint64_t failure;    /* 0 = none, else first call that fails << 8 | ncclResult_t */
    _Atomic uint64_t mismatched; /* last call + 1 at which a mismatch was reported */
    att_signal_t attached;
    /* barrier: the last to come does the work of the round */
    _Alignas(64) _Atomic uint32_t arrivals;
    att_signal_t generation;
    uint64_t start_ns, end_ns; /* model: of the current call, by the last to come */
} att_arena_header_t;

/* Kinds of wires that leave a rank on one channel. */
typedef enum att_wire_kind {
    ATT_WIRE_RING = 0,   /* to the next rank */
    ATT_WIRE_UP = 1,     /* to the tree parent */
    ATT_WIRE_DOWN_0 = 2, /* to the first tree child */
    ATT_WIRE_DOWN_1 = 3,
    ATT_WIRE_KINDS = 4
} att_wire_kind_t;

struct att_arena_map; /* the mapping that the ranks of a process share */

/* One rank's view. */
typedef struct att_arena {
    struct att_arena_map *map;
    att_arena_header_t *header;
    att_arena_rank_t *ranks;
    att_arena_wire_t *wires;
    uint8_t *payload;
    int rank;
    int count; /* ranks */
    /* What a wait looks at. */
    _Atomic uint32_t aborted; /* this rank's own communicator was aborted */
    _Atomic uint64_t round;   /* calls that the batch in hand will have finished */
    _Atomic uint64_t looked_ns;
    att_watch_t watch;
    char reason[160]; /* why the watch ended a wait; written once */
    _Atomic uint32_t reasoned;
} att_arena_t;

/* Random name for a new communicator, as hexadecimal text of 32 characters and NUL. */
void att_arena_new_name(char name[33]);
/* commHash of a name: the same on all ranks. */
uint64_t att_arena_hash(const char *name);

/* Create or join; waits until all ranks are there. `mine` gives this rank's block (channels, ...)
 * before the others may read it. ncclResult_t; text through att_fabric_error(). */
ncclResult_t att_arena_attach(att_arena_t *arena, const char *name, att_fabric_mode_t mode,
                              int ranks, int rank, int channels, const att_arena_rank_t *mine);
/* Leave; the others' waits for this rank end with ncclRemoteError unless it was through. */
void att_arena_detach(att_arena_t *arena);

/* Wait with an eye on abort, failure and dead peers: ncclSuccess or what ended it. */
ncclResult_t att_arena_wait(att_arena_t *arena, att_signal_t *signal, uint32_t target);
/* End the communicator on all ranks: `call` and all after it give this result. Of several failures
 * that of the earliest call stays. */
void att_arena_fail(att_arena_t *arena, ncclResult_t result, uint64_t call);
/* ncclSuccess unless the batch in hand (below `round`) is among what failed. */
ncclResult_t att_arena_failure(const att_arena_t *arena);
/* The last rank to come runs work(argument) alone, then all go on. work may be NULL. */
ncclResult_t att_arena_barrier(att_arena_t *arena, void (*work)(void *argument), void *argument);

/* Wire of `kind` leaving `rank` on `channel`. */
att_arena_wire_t *att_arena_wire(att_arena_t *arena, int rank, int channel, att_wire_kind_t kind);
/* Slots of a wire for a protocol; `bytes` gives their size in all. */
uint8_t *att_arena_slots(att_arena_t *arena, int rank, int channel, att_wire_kind_t kind,
                         int protocol, size_t *bytes);
/* Make [pointer, pointer + bytes) of the payload really there: a full file system gives
 * ncclSystemError here and not a signal later. */
ncclResult_t att_arena_reserve(att_arena_t *arena, const uint8_t *pointer, size_t bytes);

/* Model: where `rank` stages in rounds of this parity (0, 1), and the result of the round. */
uint8_t *att_arena_stage(att_arena_t *arena, int rank, int parity);
uint8_t *att_arena_result(att_arena_t *arena, int parity);

/* Number of arenas that this process has mapped (tests). */
int att_arena_mapped(void);

#endif
