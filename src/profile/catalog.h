/*
 * catalog: who and what the records of a run are about, over all of its nodes: groups, tasks,
 * members, and the ranks of the job. Made of the descriptions in the streams, whose indices count
 * per node; here they count over the run.
 */
#ifndef ATT_PROFILE_CATALOG_H
#define ATT_PROFILE_CATALOG_H

#include "base/status.h"
#include "profile/stream.h"

#include <stdbool.h>

#define ATT_CATALOG_NONE UINT32_MAX

typedef struct att_catalog_group {
    uint64_t hash;
    uint32_t ranks, nodes;
    uint32_t members; /* that are in the records */
} att_catalog_group_t;

typedef struct att_catalog_task {
    uint32_t group;
    uint32_t collective;
    uint32_t legal_pairs;
    uint64_t bytes;
} att_catalog_task_t;

/* A rank of a group. */
typedef struct att_catalog_member {
    uint32_t node; /* index of the node in the catalog's nodes */
    uint32_t group, rank;
    uint32_t process; /* index on its node */
    uint32_t place;   /* whose rank it is: index of an att_catalog_place_t */
    uint32_t clock_kind;
    uint64_t clock_id;
    uint8_t device_id[16];
    uint32_t nccl_version;
    uint32_t local; /* index in its node's segment */
} att_catalog_member_t;

/* What a member runs on: one device of one process (the "rank" of the job, as users count). */
typedef struct att_catalog_place {
    uint32_t node, process;
    int32_t pid;
    uint32_t job_rank; /* in the largest group; places outside of it follow behind */
    uint32_t ordinal;  /* among places that share process and device */
    uint8_t device_id[16];
    char program[64];
} att_catalog_place_t;

/* One segment of one agent. */
typedef struct att_catalog_node {
    uint32_t agent;
    uint8_t node_id[16];
    char host[64];
    uint32_t *tasks, *members, *groups; /* index in the segment -> here, or NONE */
    uint32_t task_room, member_room, group_room;
    struct {
        int32_t pid;
        char program[64];
    } * processes;
    uint32_t process_room;
} att_catalog_node_t;

typedef struct att_catalog {
    att_catalog_node_t *nodes;
    att_catalog_group_t *groups;
    att_catalog_task_t *tasks;
    att_catalog_member_t *members;
    att_catalog_place_t *places;
    uint32_t node_count, group_count, task_count, member_count, place_count;
    uint32_t world; /* largest group, NONE without any */
} att_catalog_t;

/* Zeroed at start. All return 0 or -ATT_ENOMEM; entries that make no sense are left out. */
int att_catalog_node(att_catalog_t *catalog, const att_stream_header_t *header, uint32_t *node);
int att_catalog_add_group(att_catalog_t *catalog, uint32_t node, const att_stream_group_t *group);
int att_catalog_add_process(att_catalog_t *catalog, uint32_t node,
                            const att_stream_process_t *process);
int att_catalog_add_task(att_catalog_t *catalog, uint32_t node, const att_stream_task_t *task);
int att_catalog_add_member(att_catalog_t *catalog, uint32_t node,
                           const att_stream_member_t *member);
/* After the last add: find the places and number them. */
int att_catalog_finish(att_catalog_t *catalog);
void att_catalog_free(att_catalog_t *catalog);

/* Index here of a segment's entry, or NONE. */
uint32_t att_catalog_task_of(const att_catalog_t *catalog, uint32_t node, uint32_t local);
uint32_t att_catalog_member_of(const att_catalog_t *catalog, uint32_t node, uint32_t local);

#endif
