/*
 * way: finds out by which of its addresses a home can be reached from this node, with one test
 * resolve, and writes the way into the node's segment. Does not block.
 */
#ifndef ATT_CONTROL_WAY_H
#define ATT_CONTROL_WAY_H

#include "base/resolver.h"
#include "control/message.h"

#define ATT_WAY_NS 3000000000ull /* patience with one address */

typedef struct att_way {
    att_home_path_t path;
    att_group_key_t group;
    att_resolver_t resolver;
    uint32_t address; /* being tried */
    uint64_t since_ns;
    int testing;
} att_way_t;

/* Path of the home that a process of this node serves; port 0: it does not (yet). */
void att_way_of_process(const att_segment_process_t *process, att_home_path_t *path);
void att_way_begin(att_way_t *way, const att_group_key_t *group, const att_home_path_t *path);
/* 1: reached, group entry written; 0: not yet; -ATT_ESYSTEM: no address answers. */
int att_way_step(att_way_t *way, att_segment_group_t *group, uint64_t now_ns);
void att_way_stop(att_way_t *way);

#endif
