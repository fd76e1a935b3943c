/*
 * member: one agent of many in one process: the sidecar's own parts (node, registry, keeper of the
 * turns, spans, tasks with optimizer and strategy) on a segment of its own in private memory, and
 * its ranks, which are driven call by call. Only the process around it is missing: no file, no
 * socket, no MPI. Talks through the messenger that it is given (control/messenger.h); the program
 * brings that one, and the test of the way home (member.c: every home is reached at once).
 */
#ifndef ATT_BENCH_MEMBER_H
#define ATT_BENCH_MEMBER_H

#include "base/config.h"
#include "control/messenger.h"
#include "control/node.h"
#include "control/pace.h"
#include "control/peers.h"
#include "control/task.h"

#define BENCH_SEATS 64 /* ranks of groups of an agent, one task a group */

/* One rank of one group here. */
typedef struct bench_seat {
    uint32_t member, lane_index, task_index, rank;
    att_lane_t lane;
    att_wait_t wait;
    bool waiting;
    att_decision_t decision; /* of the latest call */
} bench_seat_t;

typedef struct bench_member {
    att_segment_memory_t *memory;
    struct att_node *node;
    att_task_shared_t shared;
    struct att_peers *peers;
    struct att_span *span;
    struct att_task *tasks[BENCH_SEATS]; /* led here, by index in the segment */
    bench_seat_t seats[BENCH_SEATS];
    uint32_t seat_count;
    uint64_t calls, waited, in_doubt;
    int busy;         /* something was under way after the last round */
    uint32_t refused; /* groups that are not tuned */
} bench_member_t;

int bench_member_create(bench_member_t *member, const att_config_t *config,
                        struct att_strategy_host *host, struct att_messenger *messenger,
                        uint64_t now_ns);
void bench_member_destroy(bench_member_t *member);
/* A rank of a group comes: returns its seat. */
uint32_t bench_member_join(bench_member_t *member, uint64_t hash, uint32_t ranks, uint32_t nodes,
                           uint32_t rank);

/* One round of the agent as control/agent.c has it. Returns the messages sent and received. */
uint32_t bench_member_round(bench_member_t *member, uint64_t now_ns);

/* The seat's rank enters its next call; false: it waits at a fence, ask again with
 * bench_member_wait. */
bool bench_member_enter(bench_member_t *member, uint32_t seat, uint64_t now_ns);
bool bench_member_wait(bench_member_t *member, uint32_t seat, uint64_t now_ns);
/* The call has run: its record reaches the agent. */
void bench_member_record(bench_member_t *member, uint32_t seat, uint64_t start_ns,
                         uint64_t stop_ns);
/* Led here and settled (or refused): 1; not yet: 0; not led here: -1. */
int bench_member_settled(const bench_member_t *member, uint32_t seat);

#endif
