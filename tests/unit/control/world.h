/*
 * world: several nodes, their agents and their ranks in one process, for tests of groups over
 * several nodes with the sidecar's own code. Messages between agents are queued and delivered in
 * order; home words answer the agents' test on a real socket.
 */
#ifndef WORLD_H
#define WORLD_H

#include "control/registry.h"
#include "control/span.h"
#include "control/turn.h"

#define WORLD_NODES 16
#define WORLD_RANKS 129
#define WORLD_CALLS 4096

typedef struct world_node {
    struct world *world;
    uint32_t self;
    att_segment_memory_t *memory;
    struct att_node *node;
    att_task_shared_t shared;
    struct att_registry *registry;
    struct att_turn_keeper *keeper;
    struct att_span *span;
    struct att_task *task; /* of group 0, where this agent leads it */
    uint32_t process;
    uint32_t refused;
    char why[ATT_REASON_BYTES];
} world_node_t;

typedef struct world_rank {
    world_node_t *node;
    uint32_t member, lane_index;
    att_lane_t lane;
    att_wait_t wait;
    int waiting;
    uint64_t call;      /* calls decided */
    uint64_t seq_shift; /* added to its NCCL sequence numbers */
} world_rank_t;

typedef struct mail {
    struct mail *next;
    uint32_t from, to;
    att_message_t message;
} mail_t;

typedef struct world {
    uint32_t node_count, rank_count;
    world_node_t nodes[WORLD_NODES];
    world_rank_t ranks[WORLD_RANKS];
    uint16_t
        decided[WORLD_CALLS]; /* channels + 1 of each call, by the first rank that came there */
    uint32_t mismatches, trials;
    mail_t *mail, **mail_end;
    uint64_t sent;
    unsigned seed;
    int port;
} world_t;

world_t *world_create(uint32_t nodes);
void world_destroy(world_t *world);
/* Group `hash` of `ranks` ranks; rank r is on node_of[r]. Returns nothing: entries of the segments.
 */
void world_group(world_t *world, uint64_t hash, uint32_t ranks, const uint32_t *node_of);
/* A lane for every rank of group 0 (the first one made). */
void world_call_task(world_t *world, uint64_t bytes);
/* Rounds until an agent leads group 0. */
void world_meet(world_t *world);
/* Deliver, let every agent do a round. */
void world_round(world_t *world);
/* Let ranks make calls, each at most `skew` beyond the slowest, until all have made `calls` more or
 * `rounds` are over. */
void world_run(world_t *world, uint64_t calls, uint32_t skew);

#endif
