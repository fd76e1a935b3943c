/*
 * node: what the agent sees of its node through the segment: processes, members by group, lanes by
 * task, records. Reads tables incrementally; never blocks on a hook.
 */
#ifndef ATT_CONTROL_NODE_H
#define ATT_CONTROL_NODE_H

#include "base/fence.h"
#include "base/ring.h"
#include "base/segment.h"

/* A growing list of table indices. */
typedef struct att_index_list {
    uint32_t *items;
    uint32_t count, capacity;
} att_index_list_t;

int att_index_list_add(att_index_list_t *list, uint32_t item);
void att_index_list_free(att_index_list_t *list);

struct att_node;

/* The segment must stay open as long as the node. */
int att_node_create(att_segment_memory_t *memory, struct att_node **node);
void att_node_destroy(struct att_node *node); /* NULL is fine */
att_segment_memory_t *att_node_memory(const struct att_node *node);

/* Look for new entries. Returns 1 when anything was added. */
int att_node_scan(struct att_node *node);
/* Entries of the tables, those included that are not filled: one whose process was killed while it
 * filled it never will be (att_segment_is_filled). */
uint32_t att_node_group_count(const struct att_node *node);
uint32_t att_node_task_count(const struct att_node *node);
/* A rank calls it: of two ranks that add the same task at once one retires its entry again, and no
 * rank ever has a lane of that one. */
int att_node_has_task(const struct att_node *node, uint32_t task);
/* Ranks of the job here, as far as its largest group tells; at least 1. */
uint32_t att_node_ranks(const struct att_node *node);
/* Members (all states but CLAIMED) of a group and lanes of a task, in order of appearance. */
const att_index_list_t *att_node_members(const struct att_node *node, uint32_t group);
const att_index_list_t *att_node_lanes(const struct att_node *node, uint32_t task);

/* Take up to about `limit` records from every process's ring, in turns. Returns how many were
 * taken. A mark (ATT_TIME_MARK) has neither task nor member. */
typedef void (*att_record_fn)(void *context, const att_record_t *record);
/* Those that name no task or member are not shown to `each` and counted as unused. */
uint64_t att_node_drain(struct att_node *node, uint32_t limit, att_record_fn each, void *context);
/* Records that the fullest ring held at the last drain. */
uint32_t att_node_fullest(const struct att_node *node);
uint64_t att_node_dropped(const struct att_node *node);

/* Ask every hook process for kernel stamps, or tell them to stop. */
void att_node_set_timing(struct att_node *node, int on);

/* Largest channel count allowed for one member of `group` on its device, so that the sum over the
 * members of a device stays within its units minus `reserve`. `others` gives the largest channel
 * count in force or on trial of another group. 0: units unknown, only NCCL's own count is safe. */
typedef uint32_t (*att_channels_fn)(void *context, uint32_t group);
uint32_t att_node_channel_ceiling(const struct att_node *node, uint32_t group, uint32_t reserve,
                                  att_channels_fn others, void *context);

/* Coverage counters summed over processes, and what became of the records that the agents took:
 * records = ranks of whole calls at the leaders + unused + incomplete + unsent + waiting (+ what is
 * under way between agents). */
typedef struct att_coverage {
    uint64_t decisions, timed, untimed[ATT_UNTIMED_COUNT], frozen, simulated, unseen, dropped;
    uint64_t anomalies, waited, longest_wait_ns, in_doubt, refused;
    uint64_t called, answered, bypassed, streams; /* by the preload */
    uint64_t unused;     /* the group was not ready on this node, has ended, or is none */
    uint64_t incomplete; /* another rank's record of the call did not come in time */
    uint64_t unsent;     /* the next agent of the tree did not take what came before */
    uint64_t waiting;    /* for the other ranks' records, or to be sent to the next agent */
    uint32_t processes;
} att_coverage_t;
void att_coverage_add(att_coverage_t *sum, const att_coverage_t *other);
void att_node_coverage(const struct att_node *node, att_coverage_t *coverage);

/* Retire the members of processes that are gone without having done so (killed), and in the next
 * round, when their records have been taken, empty their entries for others. Returns how many
 * members were retired of killed ones. */
typedef bool (*att_alive_fn)(void *context, uint32_t process);
uint32_t att_node_bury(struct att_node *node, att_alive_fn alive, void *context);
/* Every member of the group here has retired by itself: none was left behind by its process. */
bool att_node_all_left(const struct att_node *node, uint32_t group);

#endif
