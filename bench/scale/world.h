/*
 * world: many agents in virtual time. Every agent is a bench_member_t: the sidecar's own code.
 * Sending and receiving a message, its way and taking a record cost what was measured
 * (sim_costs_t); an agent does one thing after the other, so that one with too much to do falls
 * behind. Computing inside of a message's handling is in its measured cost.
 */
#ifndef ATT_BENCH_WORLD_H
#define ATT_BENCH_WORLD_H

#include "layout.h"
#include "member.h"

typedef struct sim_costs {
    double send_ns, receive_ns; /* processor time of an agent a message */
    double way_ns, byte_ns;     /* from agent to agent */
    double record_ns;           /* processor time of an agent a record */
    double look_ns;             /* until an agent that sleeps sees a message or records */
} sim_costs_t;

typedef struct sim_load {
    uint64_t sent, received, bytes; /* messages; bytes sent */
    double cpu_ns;
} sim_load_t;

/* What one case shows. Times are virtual. */
typedef struct sim_result {
    uint32_t agents, groups, ranks;     /* of an agent and group */
    double placed_ms;                   /* all groups of all agents registered, leaders found */
    double settle_ms, settle_median_ms; /* last group, median group: search over */
    double world_settle_ms;
    double switch_us, commit_us; /* of the world group: proposed -> recorded everywhere, decided */
    double messages, bytes;      /* of all agents */
    double agent_messages;       /* sent and received, mean over agents */
    double leader_messages, leader_load; /* the world's leader; share of a core until settled */
    double keeper_messages, keeper_load; /* agent 0, which keeps the turns */
    double busiest_load;
    double owner_messages; /* most registrations that one agent took */
    double switches;       /* of the world group */
    double calls, waited;
    double agent_kib; /* memory of an agent */
    double host_s;    /* real time of the simulation */
} sim_result_t;

int sim_world_run(const sim_layout_t *layout, uint32_t ranks, const sim_costs_t *costs,
                  const att_config_t *config, struct att_strategy_host *host, sim_result_t *result);

#endif
