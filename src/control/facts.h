/*
 * facts: what the ranks of a group on this node reported about one task, put together for the
 * space: masks are ANDed, ceilings are minima.
 */
#ifndef ATT_CONTROL_FACTS_H
#define ATT_CONTROL_FACTS_H

#include "base/config.h"
#include "control/node.h"
#include "search/space.h"

/* What the ranks of one node, or of a whole subtree of a group's agents, report about a task. */
typedef struct att_reported {
    uint32_t ranks;           /* that have a lane */
    uint32_t pinned;          /* ORed */
    uint32_t connected_pairs; /* ANDed */
    uint32_t ceiling;         /* least; 0 = a device is unknown */
    uint32_t has_chunk;       /* all of them */
    uint32_t variants;        /* ANDed: communicator variants that calls can be sent to */
    uint32_t whole_stamps;    /* all of them */
    uint32_t unstamped;       /* ORed: why calls are not stamped, ATT_UNSTAMPED_* */
    uint32_t nccl_version, tuner_abi, profiler_abi;
    uint64_t hook_version; /* first bytes of the text */
    uint64_t clock_id;     /* 0: several, or unknown */
    uint32_t rank;         /* one of them */
    uint32_t odd_rank;     /* one with other versions, ATT_NONE */
    uint32_t prepared;     /* largest transaction known to a node */
    uint32_t open;         /* one whose outcome a node lacks, 0 = none */
} att_reported_t;

/* From lanes[0..count) of this node. */
void att_facts_report(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const uint32_t *lanes, uint32_t count, att_reported_t *reported);
void att_facts_merge(att_reported_t *into, const att_reported_t *other);

/* Live lanes of the task's ranks on this node, each rank once, by rank; at most `most` of them.
 * Returns how many. */
uint32_t att_facts_lanes(const struct att_node *node, uint32_t task, uint32_t *lanes,
                         uint32_t most);
/* Why the calls of a lane are not stamped, ATT_UNSTAMPED_*; 0: they are, or are timed by events. */
uint32_t att_facts_unstamped(const struct att_node *node, uint32_t lane);
/* `native`: algorithm, protocol and channels that NCCL's own choice uses. */
void att_facts_gather(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const att_reported_t *reported, att_setting_t native,
                      att_space_facts_t *facts);
/* Most channels that one rank of this task may use: the device's share, --max-channels, NCCL's
 * limit; `native` when the device is unknown (then only down from NCCL's choice). */
uint32_t att_facts_ceiling(const struct att_node *node, const att_config_t *config, uint32_t group,
                           uint32_t native);

#endif
