/*
 * agent: the sidecar's process on one node. Watches the segment, leads the groups whose ranks are
 * all here, and writes the run folder. One loop, no threads; MPI only for groups over several
 * nodes.
 */
#ifndef ATT_CONTROL_AGENT_H
#define ATT_CONTROL_AGENT_H

#include "base/config.h"
#include "base/segment.h"
#include "base/status.h"

struct att_agent;
struct att_strategy_host;
struct att_messenger;
struct att_pinger;

/* Opens the segment as the agent. config, host, messenger and pinger (NULL: alone) must outlive it.
 */
int att_agent_create(const att_config_t *config, struct att_strategy_host *host,
                     struct att_messenger *messenger, struct att_pinger *pinger,
                     struct att_agent **agent, att_error_t *error);
/* One round; returns how long the caller may sleep, in nanoseconds. */
uint64_t att_agent_round(struct att_agent *agent);
/* Write the last tasks.json and let go of the job: it keeps what is committed. */
void att_agent_finish(struct att_agent *agent);
void att_agent_destroy(struct att_agent *agent); /* NULL is fine */

#endif
