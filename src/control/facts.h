/*
 * facts: what the ranks of a group on this node reported about one task, put together for the
 * space: masks are ANDed, ceilings are minima.
 */
#ifndef ATT_CONTROL_FACTS_H
#define ATT_CONTROL_FACTS_H

#include "base/config.h"
#include "control/node.h"
#include "search/space.h"

/* One live lane a rank into lanes[0..ranks); returns 1 when every rank has one. */
int att_facts_lanes(const struct att_node *node, uint32_t task, uint32_t *lanes);
/* True when all ranks' stamps are on one known clock. */
bool att_facts_one_clock(const struct att_node *node, const uint32_t *lanes, uint32_t ranks);
/* True when a channel's stop stamp covers all of its threads on every rank. */
bool att_facts_whole_stamps(const struct att_node *node, const uint32_t *lanes, uint32_t ranks);
/* `native`: algorithm, protocol and channels that NCCL's own choice uses. */
void att_facts_gather(const struct att_node *node, const att_config_t *config, uint32_t task,
                      const uint32_t *lanes, att_setting_t native, att_space_facts_t *facts);
/* Most channels that one rank of this task may use: the device's share, --max-channels, NCCL's
 * limit; `native` when the device is unknown (then only down from NCCL's choice). */
uint32_t att_facts_ceiling(const struct att_node *node, const att_config_t *config, uint32_t group,
                           uint32_t native);

#endif
