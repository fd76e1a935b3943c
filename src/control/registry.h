/*
 * registry: who leads a group over several nodes, and where each of its agents stands in its tree.
 *
 * The agent numbered hash mod agents owns a group's registration. Agents tell it which ranks of an
 * incomplete group they hold; once ranks 0..n-1 are there, each once, it tells every one of them
 * its place (the agent of rank 0 leads), and the keeper of the turns which agents the group has.
 * When ranks are gone, or two claim to be the same one, all are told that the group has ended.
 *
 * Free of MPI and clocks: driven by messages, acts through ops. Cost: one message an agent and 900
 * ranks in, one an agent out, O(ranks) of memory while the group lives; a group lives with one
 * owner, so that many groups are spread over the agents.
 */
#ifndef ATT_CONTROL_REGISTRY_H
#define ATT_CONTROL_REGISTRY_H

#include "control/message.h"

#define ATT_KEEPER 0u /* the agent that keeps the turns */

typedef struct att_registry_ops {
    void (*send)(void *context, uint32_t to, const att_message_t *message);
    /* A step was reached (log, fault injection). NULL: nobody cares. */
    void (*step)(void *context, int step, const att_group_key_t *group);
} att_registry_ops_t;

struct att_registry;

/* `agents` of the sidecar. ops must outlive it. */
int att_registry_create(const att_registry_ops_t *ops, void *context, uint32_t agents,
                        struct att_registry **registry);
void att_registry_destroy(struct att_registry *registry); /* NULL is fine */
/* REGISTER or RETIRE. */
void att_registry_message(struct att_registry *registry, uint32_t from,
                          const att_message_t *message);
/* Groups that it knows: registered and not ended on every node. */
uint32_t att_registry_groups(const struct att_registry *registry);
/* The owner of a group. */
static inline uint32_t att_registry_owner(const att_group_key_t *group, uint32_t agents)
{
    return (uint32_t)(group->hash % agents);
}

#endif
