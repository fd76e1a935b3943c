/* The simulated sidecar: one process a node, with the real coordinators and voters in it, and
 * messages between them. When one dies the others follow, and a second sidecar may start. */
#include "world.h"

#include <string.h>

#define MESSAGES 128
#define SWITCHES 6 /* a group and sidecar */
#define VOTE_NS  500000000u

typedef enum message_type {
    PREPARE = 1,
    OUTCOME = 2,
    VOTE = 3,
    RECORDED = 4,
    JOINED = 5 /* a new agent is done with what the one before left; txn = largest id it knows */
} message_type_t;

typedef struct message {
    bool used;
    message_type_t type;
    uint32_t to, group, from; /* from: position in the group's tree */
    uint64_t due_ns;
    uint32_t txn;
    att_home_state_t state;
    att_ballot_t ballot;
    att_schedule_t schedule;
} message_t;
static message_t messages[MESSAGES];
static uint32_t last_message; /* no used one at or beyond it */

struct agent;

/* One group at one agent. */
typedef struct part {
    struct agent *agent;
    uint32_t group, position; /* ATT_NONE: no ranks here */
    uint32_t children[NODES], child_count;
    att_voter_t voter;
    /* the leader's */
    att_coordinator_t coordinator;
    uint32_t joined, last_txn; /* agents that have recovered, largest id they know */
    uint32_t switches;
    uint64_t plan_ns; /* next proposal */
    uint64_t horizon; /* largest call number that a vote told */
    uint16_t settings;
    uint16_t incumbent;
} part_t;

typedef struct agent {
    uint32_t node, process, actor;
    part_t parts[GROUPS];
} agent_t;
static agent_t agents[NODES];

/* --- messages ----------------------------------------------------------------------------------
 */

static message_t *post(part_t *part, uint32_t position, message_type_t type, uint32_t txn)
{
    sim_drain();
    sim_step();
    const sim_group_t *g = &world.groups[part->group];
    for (uint32_t i = 0; i < MESSAGES; i++) {
        message_t *m = &messages[i];
        if (m->used)
            continue;
        m->used = true;
        if (i >= last_message)
            last_message = i + 1;
        m->type = type;
        m->to = g->nodes[position];
        m->group = part->group;
        m->from = part->position;
        m->txn = txn;
        m->due_ns =
            sim_now() + (sim_chance(20) ? sim_span(1000000, 2000000000u) : sim_span(2000, 120000));
        totals.messages++;
        sim_wake(agents[m->to].actor, m->due_ns);
        return m;
    }
    sim_fail("more than %d messages on their way", MESSAGES);
    return &messages[0];
}

/* Now and then the same PREPARE or OUTCOME comes again, much later. */
static void maybe_again(const message_t *m)
{
    if (!sim_chance(30))
        return;
    for (uint32_t i = 0; i < MESSAGES; i++)
        if (!messages[i].used) {
            messages[i] = *m;
            if (i >= last_message)
                last_message = i + 1;
            messages[i].due_ns += sim_span(10000, 1500000000u);
            sim_wake(agents[m->to].actor, messages[i].due_ns);
            return;
        }
}

/* --- the voter's ops ---------------------------------------------------------------------------
 */

static void pass_prepare(void *context, uint32_t child, const att_schedule_t *schedule)
{
    part_t *part = context;
    message_t *m = post(part, part->children[child], PREPARE, schedule->txn);
    m->schedule = *schedule;
    maybe_again(m);
}

static void pass_outcome(void *context, uint32_t child, uint32_t txn, att_home_state_t state)
{
    part_t *part = context;
    message_t *m = post(part, part->children[child], OUTCOME, txn);
    m->state = state;
    maybe_again(m);
}

static void send_vote(void *context, const att_ballot_t *ballot)
{
    part_t *part = context;
    if (part->position == 0) {
        if (ballot->horizon > part->horizon)
            part->horizon = ballot->horizon;
        att_coordinator_vote(&part->coordinator, 0, ballot);
        return;
    }
    message_t *m = post(part, world.groups[part->group].parent[part->position], VOTE, ballot->txn);
    m->ballot = *ballot;
}

static void send_recorded(void *context, uint32_t txn)
{
    part_t *part = context;
    if (part->position == 0)
        att_coordinator_recorded(&part->coordinator, 0, txn);
    else
        post(part, world.groups[part->group].parent[part->position], RECORDED, txn);
}

/* Rarely a node has a reason of its own to say no. */
static att_vote_t permits(void *context, const att_schedule_t *schedule)
{
    (void)context;
    (void)schedule;
    return sim_chance(24) ? ATT_VOTE_CHANNELS : ATT_VOTE_YES;
}

static void reached(void *context, int step, const att_schedule_t *schedule)
{
    part_t *part = context;
    uint32_t task = world.groups[part->group].task[part->agent->node];
    sim_step_reached((att_step_t)step, task, schedule->txn, schedule->entries[0].first_call);
}

static const att_voter_ops_t voter_ops = {pass_prepare,  pass_outcome, send_vote,
                                          send_recorded, permits,      reached};

/* --- the coordinator's ops ---------------------------------------------------------------------
 */

static att_segment_task_t *task_of(part_t *part)
{
    uint32_t node = part->agent->node;
    return &world.memory[node]->tasks[world.groups[part->group].task[node]];
}

static int open_home(void *context, uint32_t txn)
{
    part_t *part = context;
    sim_proposed(part->group, &part->coordinator.schedule);
    return att_home_open(task_of(part), txn);
}

static att_home_state_t decide_home(void *context, uint32_t txn, att_home_state_t state)
{
    return att_home_decide(task_of(context), txn, state);
}

static void prepare_all(void *context, uint32_t participant, const att_schedule_t *schedule)
{
    (void)participant;
    att_voter_prepare(&((part_t *)context)->voter, schedule);
}

static void tell_all(void *context, uint32_t participant, uint32_t txn, att_home_state_t state)
{
    (void)participant;
    att_voter_outcome(&((part_t *)context)->voter, txn, state);
}

static void decided(void *context, const att_schedule_t *schedule, att_home_state_t state,
                    const att_ballot_t *ballot)
{
    part_t *part = context;
    (void)ballot;
    if (state == ATT_HOME_COMMITTED)
        part->incumbent = schedule->entries[schedule->count - 1].setting.channels;
    part->plan_ns = sim_now() + sim_span(1000, 300000);
}

static const att_coordinator_ops_t coordinator_ops = {open_home, decide_home, prepare_all,
                                                      decided,   tell_all,    reached};

/* --- leader ------------------------------------------------------------------------------------
 */

static att_schedule_entry_t entry(uint64_t first_call, uint16_t channels)
{
    att_schedule_entry_t e = {.first_call = first_call, .setting = ATT_SETTING_KEEP};
    e.setting.channels = channels;
    return e;
}

/* Some trials and then the incumbent, which is a new one now and then; a little ahead of the ranks
 * that are known of, mostly behind the list in force. */
static void propose(part_t *part)
{
    const sim_group_t *g = &world.groups[part->group];
    uint32_t node = part->agent->node;
    uint64_t own = att_vote_horizon(world.memory[node], g->lanes[node], g->lane_count[node]);
    if (own > part->horizon)
        part->horizon = own;
    uint64_t fence = part->horizon + sim_below(world.window + 4);
    if (fence < sim_list_end(part->group) && !sim_chance(200))
        fence = sim_list_end(part->group);
    att_schedule_entry_t entries[ATT_SCHEDULE];
    uint32_t count = 0, trials = sim_below(4);
    for (uint64_t first = fence;; first += 1 + sim_below(3)) {
        if (count == trials) {
            uint16_t last = sim_chance(200) || trials == 0 ? ++part->settings : part->incumbent;
            entries[count++] = entry(first, last);
            break;
        }
        entries[count++] = entry(first, ++part->settings);
    }
    part->switches++;
    sim_step_reached(ATT_STEP_PLANNED, g->task[node], part->coordinator.txn + 1, fence);
    att_coordinator_begin(&part->coordinator, entries, count, sim_clock_ns(), VOTE_NS);
}

static bool may_plan(part_t *part)
{
    const sim_group_t *g = &world.groups[part->group];
    return part->joined == g->node_count && part->switches < SWITCHES &&
           !att_coordinator_busy(&part->coordinator);
}

/* Returns when to look again. */
static uint64_t lead(part_t *part)
{
    const sim_group_t *g = &world.groups[part->group];
    uint32_t node = part->agent->node;
    att_coordinator_tick(&part->coordinator, sim_clock_ns());
    if (part->coordinator.voting)
        return sim_now() + 50000000;
    if (!may_plan(part))
        return SIM_NEVER;
    if (part->plan_ns > sim_now())
        return part->plan_ns;
    /* The ranks of the home's node have no copy of the outcome before. */
    if (!att_vote_ready(world.memory[node], g->lanes[node], g->lane_count[node], task_of(part)))
        return sim_now() + sim_span(20000, 200000000);
    propose(part);
    return sim_now();
}

/* --- agent -------------------------------------------------------------------------------------
 */

static void on_joined(part_t *part, uint32_t txn)
{
    part->joined++;
    if (txn > part->last_txn)
        part->last_txn = txn;
    if (part->joined == world.groups[part->group].node_count)
        att_coordinator_init(&part->coordinator, &coordinator_ops, part, 1, part->last_txn);
}

static uint32_t child_of(const part_t *part, uint32_t position)
{
    for (uint32_t c = 0; c < part->child_count; c++)
        if (part->children[c] == position)
            return c;
    return ATT_NONE;
}

static void deliver(agent_t *agent, const message_t *m)
{
    part_t *part = &agent->parts[m->group];
    switch (m->type) {
    case PREPARE:
        att_voter_prepare(&part->voter, &m->schedule);
        break;
    case OUTCOME:
        att_voter_outcome(&part->voter, m->txn, m->state);
        break;
    case VOTE:
        att_voter_child_vote(&part->voter, child_of(part, m->from), &m->ballot);
        break;
    case RECORDED:
        att_voter_child_recorded(&part->voter, child_of(part, m->from), m->txn);
        break;
    case JOINED:
        on_joined(part, m->txn);
        break;
    }
}

/* Returns when the next message is due, 0 when one was delivered. */
static uint64_t receive(agent_t *agent)
{
    uint64_t next = SIM_NEVER;
    while (last_message > 0 && !messages[last_message - 1].used)
        last_message--;
    for (uint32_t i = 0; i < last_message; i++) {
        if (!messages[i].used || messages[i].to != agent->node)
            continue;
        if (messages[i].due_ns <= sim_now()) {
            message_t m = messages[i];
            messages[i].used = false;
            deliver(agent, &m);
            return 0;
        }
        if (messages[i].due_ns < next)
            next = messages[i].due_ns;
    }
    return next;
}

/* What an agent does before its first vote: what is undecided in its copy is asked of the home. */
static void join(part_t *part)
{
    const sim_group_t *g = &world.groups[part->group];
    uint32_t node = part->agent->node;
    att_voter_init(&part->voter, &voter_ops, part, world.memory[node], task_of(part),
                   g->lanes[node], g->lane_count[node], part->child_count);
    uint32_t open;
    uint32_t txn = att_voter_recover(&part->voter, part->position == 0, &open);
    while (open != 0) {
        att_home_request_t request;
        att_home_ask(world.memory[node], task_of(part), open, &request);
        att_home_state_t state = sim_ask(&request, node, NULL, NULL);
        if (state == ATT_HOME_NONE)
            continue;
        att_voter_outcome(&part->voter, open, state);
        open = 0;
    }
    if (part->position == 0)
        on_joined(part, txn);
    else
        post(part, 0, JOINED, txn);
}

static void agent_main(void *argument)
{
    agent_t *agent = argument;
    for (uint32_t g = 0; g < GROUPS; g++)
        if (agent->parts[g].position != ATT_NONE)
            join(&agent->parts[g]);
    for (;;) {
        uint64_t next = SIM_NEVER;
        for (uint32_t g = 0; g < GROUPS; g++) {
            if (agent->parts[g].position != 0 || agent->parts[g].coordinator.ops == NULL)
                continue;
            uint64_t look = lead(&agent->parts[g]);
            if (look < next)
                next = look;
        }
        /* Last, without a step before the wait: what came meanwhile is not missed. */
        uint64_t due = receive(agent);
        if (due < next)
            next = due;
        if (next > sim_now())
            sim_wait_until(next);
    }
}

static void place(agent_t *agent, uint32_t group)
{
    const sim_group_t *g = &world.groups[group];
    part_t *part = &agent->parts[group];
    *part = (part_t){.agent = agent, .group = group, .position = ATT_NONE};
    for (uint32_t p = 0; p < g->node_count; p++)
        if (g->nodes[p] == agent->node)
            part->position = p;
    if (part->position == ATT_NONE)
        return;
    for (uint32_t p = 1; p < g->node_count; p++)
        if (g->parent[p] == part->position)
            part->children[part->child_count++] = p;
    part->settings = (uint16_t)(1000 * world.generation); /* settings of all sidecars differ */
}

void sim_agents_start(uint32_t generation)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        messages[i].used = false;
    last_message = 0;
    world.generation = generation;
    uint32_t slowness = sim_chance(100) ? 20 : 1;
    for (uint32_t n = 0; n < NODES; n++) {
        agents[n] = (agent_t){.node = n, .process = FIRST_AGENT + generation * NODES + n};
        for (uint32_t g = 0; g < GROUPS; g++)
            place(&agents[n], g);
        agents[n].actor = sim_spawn(agents[n].process, slowness, agent_main, &agents[n]);
    }
}

bool sim_agents_done(void)
{
    for (uint32_t n = 0; n < NODES; n++) {
        if (sim_dead(agents[n].process))
            continue;
        for (uint32_t g = 0; g < GROUPS; g++) {
            const part_t *part = &agents[n].parts[g];
            if (part->position == 0 &&
                (part->switches < SWITCHES || att_coordinator_busy(&part->coordinator)))
                return false;
        }
    }
    return true;
}
