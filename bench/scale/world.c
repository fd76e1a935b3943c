#include "world.h"

#include "base/step.h"
#include "control/message.h"
#include "events.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PERIOD_NS  1000000ull /* a call of each group */
#define TIMER_NS   20000000ull
#define FLUSH_NS   250000ull /* an agent that took records looks again: parts may wait */
#define LONGEST_NS 600000000000ull

typedef struct note {
    struct note *next;
    uint32_t from, size;
    unsigned char bytes[];
} note_t;

struct att_messenger {
    uint32_t self;
    note_t *inbox, **inbox_end;
};

typedef struct agent {
    bench_member_t member;
    struct att_messenger messenger;
    sim_load_t load;
    uint64_t busy_ns; /* does something until then */
    uint64_t wake_ns; /* next round, 0: none planned */
    uint32_t registered;
} agent_t;

typedef struct seat_of {
    uint32_t agent, first; /* seats first..first + ranks - 1 */
} seat_of_t;

typedef struct group {
    seat_of_t *seats;
    uint32_t done; /* seats that have entered the present call */
    uint64_t call_ns, settled_ns;
    int waiting;
} group_t;

static struct {
    uint64_t now_ns;
    const sim_costs_t *costs;
    const sim_layout_t *layout;
    agent_t *agents;
    group_t *groups;
    uint32_t ranks, settled;
    sim_events_t events;
    agent_t *running;
    uint64_t noise, planned_ns;
    double switch_ns, commit_ns;
    uint32_t switches, commits;
    int committed;
} sim;

/* --- in the place of the C library, MPI and base/step.c --- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    t->tv_sec = (time_t)(sim.now_ns / 1000000000u);
    t->tv_nsec = (long)(sim.now_ns % 1000000000u);
    return 0;
}

static uint32_t world_task(void)
{
    const sim_group_t *world = &sim.layout->groups[0];
    const agent_t *leader = &sim.agents[world->agents[world->root]];
    return sim.running == leader ? leader->member.seats[0].task_index : ATT_NONE;
}

void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call)
{
    if (sim.running == NULL || task != world_task())
        return;
    if (step == ATT_STEP_PLANNED) {
        sim.planned_ns = sim.now_ns;
    } else if (step == ATT_STEP_COMMITTED) {
        sim.committed = 1;
        sim.commit_ns += (double)(sim.now_ns - sim.planned_ns);
        sim.commits++;
    } else if (step == ATT_STEP_ABORTED) {
        sim.committed = 0;
    } else if (step == ATT_STEP_CLEARED && sim.committed) {
        sim.switch_ns += (double)(sim.now_ns - sim.planned_ns);
        sim.switches++;
    }
}

uint32_t att_messenger_self(const struct att_messenger *t)
{
    return t->self;
}

uint32_t att_messenger_count(const struct att_messenger *t)
{
    return sim.layout->agents;
}

uint32_t att_messenger_unsent(const struct att_messenger *t, uint32_t to)
{
    return 0;
}

int att_messenger_send(struct att_messenger *t, uint32_t to, const void *bytes, uint32_t size)
{
    agent_t *from = &sim.agents[t->self];
    note_t *note = malloc(sizeof *note + size);
    if (note == NULL)
        return -ATT_ENOMEM;
    *note = (note_t){.from = t->self, .size = size};
    memcpy(note->bytes, bytes, size);
    uint64_t arrives = sim.now_ns;
    if (to != t->self) {
        if (from->busy_ns < sim.now_ns)
            from->busy_ns = sim.now_ns;
        from->busy_ns += (uint64_t)sim.costs->send_ns;
        from->load.cpu_ns += sim.costs->send_ns;
        from->load.sent++;
        from->load.bytes += size;
        arrives = from->busy_ns + (uint64_t)(sim.costs->way_ns + sim.costs->byte_ns * size);
    }
    const att_message_t *message = bytes;
    sim.agents[to].registered += message->type == ATT_MESSAGE_REGISTER;
    sim_events_push(&sim.events,
                    (sim_event_t){.ns = arrives, .kind = SIM_MESSAGE, .who = to, .bytes = note});
    return ATT_OK;
}

uint32_t att_messenger_poll(struct att_messenger *t, att_message_fn each, void *context)
{
    agent_t *agent = &sim.agents[t->self];
    uint32_t count = 0;
    while (t->inbox != NULL) {
        note_t *note = t->inbox;
        t->inbox = note->next;
        if (t->inbox == NULL)
            t->inbox_end = &t->inbox;
        if (note->from != t->self) {
            if (agent->busy_ns < sim.now_ns)
                agent->busy_ns = sim.now_ns;
            agent->busy_ns += (uint64_t)sim.costs->receive_ns;
            agent->load.cpu_ns += sim.costs->receive_ns;
            agent->load.received++;
        }
        each(context, note->from, note->bytes, note->size);
        free(note);
        count++;
    }
    return count;
}

/* --- what happens --- */

static void wake_at(agent_t *agent, uint64_t ns)
{
    if (agent->wake_ns != 0 && agent->wake_ns <= ns)
        return;
    agent->wake_ns = ns;
    sim_events_push(
        &sim.events,
        (sim_event_t){.ns = ns, .kind = SIM_WAKE, .who = (uint32_t)(agent - sim.agents)});
}

static void on_message(uint32_t who, note_t *note)
{
    agent_t *agent = &sim.agents[who];
    note->next = NULL;
    *agent->messenger.inbox_end = note;
    agent->messenger.inbox_end = &note->next;
    uint64_t seen = sim.now_ns + (note->from != who ? (uint64_t)sim.costs->look_ns : 0);
    wake_at(agent, seen > agent->busy_ns ? seen : agent->busy_ns);
}

static void on_wake(agent_t *agent, uint64_t ns)
{
    if (agent->wake_ns != ns) /* an earlier one took its place */
        return;
    agent->wake_ns = 0;
    if (agent->busy_ns > sim.now_ns) {
        wake_at(agent, agent->busy_ns);
        return;
    }
    sim.running = agent;
    uint32_t messages = bench_member_round(&agent->member, sim.now_ns);
    sim.running = NULL;
    if (messages > 0)
        wake_at(agent, sim.now_ns + FLUSH_NS);
    else if (agent->member.busy)
        wake_at(agent, sim.now_ns + TIMER_NS);
}

static uint64_t duration(att_setting_t s)
{
    double channels = s.channels == 0 ? 8 : s.channels;
    double us = 200 + (channels - 14) * (channels - 14) * 0.6 +
                (s.algorithm == ATT_ALGORITHM_TREE ? 30 : 0) +
                (s.protocol == ATT_PROTOCOL_SIMPLE ? 0 : 15);
    sim.noise = sim.noise * 6364136223846793005ull + 1442695040888963407ull;
    return (uint64_t)(us * 1e3 * (1 + 0.01 * (double)(sim.noise >> 40) / (1 << 24)));
}

/* A group's call: all ranks enter, it runs, every agent gets its records. */
static void on_call(uint32_t g)
{
    const sim_group_t *layout = &sim.layout->groups[g];
    group_t *group = &sim.groups[g];
    if (group->settled_ns != 0)
        return;
    int held = 0;
    for (uint32_t i = 0; i < layout->count; i++) {
        bench_member_t *m = &sim.agents[group->seats[i].agent].member;
        for (uint32_t r = 0; r < sim.ranks; r++) {
            uint32_t seat = group->seats[i].first + r;
            if (!group->waiting)
                held |= !bench_member_enter(m, seat, sim.now_ns);
            else if (m->seats[seat].waiting)
                held |= !bench_member_wait(m, seat, sim.now_ns);
        }
    }
    group->waiting = held;
    if (held) {
        sim_events_push(&sim.events,
                        (sim_event_t){.ns = sim.now_ns + 5000, .kind = SIM_CALL, .who = g});
        return;
    }
    const seat_of_t *root = &group->seats[layout->root];
    uint64_t took = duration(sim.agents[root->agent].member.seats[root->first].decision.setting);
    for (uint32_t i = 0; i < layout->count; i++) {
        agent_t *agent = &sim.agents[group->seats[i].agent];
        sim.running = agent;
        for (uint32_t r = 0; r < sim.ranks; r++) {
            bench_member_record(&agent->member, group->seats[i].first + r, sim.now_ns,
                                sim.now_ns + took);
            agent->load.cpu_ns += sim.costs->record_ns;
        }
        sim.running = NULL;
        wake_at(agent, sim.now_ns + took + ATT_PACE_BUSY_NS);
    }
    sim_events_push(&sim.events,
                    (sim_event_t){.ns = sim.now_ns + PERIOD_NS, .kind = SIM_CALL, .who = g});
}

/* --- a run --- */

static int build(const att_config_t *config, struct att_strategy_host *host)
{
    const sim_layout_t *layout = sim.layout;
    for (uint32_t a = 0; a < layout->agents; a++) {
        sim.agents[a].messenger.self = a;
        sim.agents[a].messenger.inbox_end = &sim.agents[a].messenger.inbox;
        if (bench_member_create(&sim.agents[a].member, config, host, &sim.agents[a].messenger,
                                sim.now_ns) != ATT_OK)
            return -1;
    }
    for (uint32_t g = 0; g < layout->count; g++) {
        const sim_group_t *group = &layout->groups[g];
        sim.groups[g].seats = calloc(group->count, sizeof *sim.groups[g].seats);
        if (sim.groups[g].seats == NULL)
            return -1;
        for (uint32_t i = 0; i < group->count; i++)
            for (uint32_t r = 0; r < sim.ranks; r++) {
                uint32_t at = (i + group->count - group->root) % group->count;
                bench_member_t *m = &sim.agents[group->agents[i]].member;
                if (m->seat_count >= BENCH_SEATS) {
                    fprintf(stderr, "bench_scale: more than %d ranks on an agent\n", BENCH_SEATS);
                    return -1;
                }
                uint32_t seat = bench_member_join(m, group->hash, group->count * sim.ranks,
                                                  group->count, at * sim.ranks + r);
                if (r == 0)
                    sim.groups[g].seats[i] = (seat_of_t){group->agents[i], seat};
            }
        sim_events_push(&sim.events,
                        (sim_event_t){.ns = sim.now_ns + PERIOD_NS + group->hash % PERIOD_NS,
                                      .kind = SIM_CALL,
                                      .who = g});
    }
    for (uint32_t a = 0; a < layout->agents; a++)
        wake_at(&sim.agents[a], sim.now_ns + 1 + a % 1000);
    return 0;
}

/* Leaders' tasks that are settled now; placed: every leader has its task. */
static int look(uint64_t begin_ns, double *placed_ms)
{
    int placed = 1;
    for (uint32_t g = 0; g < sim.layout->count; g++) {
        const sim_group_t *group = &sim.layout->groups[g];
        if (sim.groups[g].settled_ns != 0)
            continue;
        const bench_member_t *m = &sim.agents[group->agents[group->root]].member;
        int state = bench_member_settled(m, sim.groups[g].seats[group->root].first);
        placed &= state >= 0;
        if (state == 1) {
            sim.groups[g].settled_ns = sim.now_ns;
            sim.settled++;
        }
    }
    if (placed && *placed_ms == 0)
        *placed_ms = (double)(sim.now_ns - begin_ns) * 1e-6;
    return placed;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double load_of(const agent_t *agent, double elapsed_ns)
{
    return agent->load.cpu_ns / elapsed_ns;
}

static void gather(uint64_t begin_ns, sim_result_t *result)
{
    const sim_layout_t *layout = sim.layout;
    double *settle = malloc(layout->count * sizeof *settle);
    for (uint32_t g = 0; g < layout->count; g++)
        settle[g] = (double)(sim.groups[g].settled_ns - begin_ns) * 1e-6;
    result->world_settle_ms = settle[0];
    qsort(settle, layout->count, sizeof *settle, by_value);
    result->settle_ms = settle[layout->count - 1];
    result->settle_median_ms = settle[layout->count / 2];
    free(settle);
    double elapsed = (double)(sim.now_ns - begin_ns);
    for (uint32_t a = 0; a < layout->agents; a++) {
        const agent_t *agent = &sim.agents[a];
        result->messages += (double)agent->load.sent;
        result->bytes += (double)agent->load.bytes;
        result->calls += (double)agent->member.calls;
        result->waited += (double)agent->member.waited;
        if (load_of(agent, elapsed) > result->busiest_load)
            result->busiest_load = load_of(agent, elapsed);
        if (agent->registered > result->owner_messages)
            result->owner_messages = agent->registered;
    }
    result->agent_messages = 2 * result->messages / layout->agents;
    const agent_t *leader = &sim.agents[layout->groups[0].agents[layout->groups[0].root]];
    result->leader_messages = (double)(leader->load.sent + leader->load.received);
    result->leader_load = load_of(leader, elapsed);
    result->keeper_messages = (double)(sim.agents[0].load.sent + sim.agents[0].load.received);
    result->keeper_load = load_of(&sim.agents[0], elapsed);
    result->switches = sim.switches;
    result->switch_us = sim.switches > 0 ? sim.switch_ns / sim.switches * 1e-3 : 0;
    result->commit_us = sim.commits > 0 ? sim.commit_ns / sim.commits * 1e-3 : 0;
}

static void tear_down(void)
{
    sim_event_t event;
    while (sim_events_pop(&sim.events, &event))
        if (event.kind == SIM_MESSAGE)
            free(event.bytes);
    free(sim.events.heap);
    for (uint32_t a = 0; a < sim.layout->agents; a++) {
        bench_member_destroy(&sim.agents[a].member);
        for (note_t *n = sim.agents[a].messenger.inbox, *next; n != NULL; n = next) {
            next = n->next;
            free(n);
        }
    }
    for (uint32_t g = 0; g < sim.layout->count; g++)
        free(sim.groups[g].seats);
    free(sim.agents);
    free(sim.groups);
    malloc_trim(0);
}

static double resident_kib(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * 4;
}

static double host_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec * 1e-6;
}

int sim_world_run(const sim_layout_t *layout, uint32_t ranks, const sim_costs_t *costs,
                  const att_config_t *config, struct att_strategy_host *host, sim_result_t *result)
{
    double begin_s = host_s(), begin_kib = resident_kib();
    memset(&sim, 0, sizeof sim);
    sim.now_ns = 1000000000;
    sim.costs = costs;
    sim.layout = layout;
    sim.ranks = ranks;
    sim.noise = 1;
    sim.agents = calloc(layout->agents, sizeof *sim.agents);
    sim.groups = calloc(layout->count, sizeof *sim.groups);
    *result = (sim_result_t){.agents = layout->agents, .groups = layout->count, .ranks = ranks};
    int failed = sim.agents == NULL || sim.groups == NULL || build(config, host) != 0;
    uint64_t begin_ns = sim.now_ns, next_look = begin_ns;
    sim_event_t event;
    while (!failed && sim.settled < layout->count && sim_events_pop(&sim.events, &event)) {
        sim.now_ns = event.ns;
        if (event.kind == SIM_MESSAGE)
            on_message(event.who, event.bytes);
        else if (event.kind == SIM_WAKE)
            on_wake(&sim.agents[event.who], event.ns);
        else
            on_call(event.who);
        if (sim.now_ns >= next_look) {
            look(begin_ns, &result->placed_ms);
            next_look = sim.now_ns + 1000000;
        }
        failed = sim.now_ns - begin_ns > LONGEST_NS;
    }
    failed |= sim.settled < layout->count;
    if (!failed) {
        gather(begin_ns, result);
        result->agent_kib = (resident_kib() - begin_kib) / layout->agents;
    } else {
        fprintf(stderr, "bench_scale: %u of %u groups settled with %u agents\n", sim.settled,
                layout->count, layout->agents);
    }
    tear_down();
    result->host_s = host_s() - begin_s;
    return failed;
}
