#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_world_t world;
sim_totals_t totals;

/* What the oracle knows of a group. */
typedef struct oracle {
    uint16_t launched[CALLS]; /* channels + 1 of the first launch, 0 = none */
    uint8_t by[CALLS];
    uint64_t calls; /* 1 + largest launched */
    att_schedule_t proposed[PROPOSALS];
    uint32_t proposals;
    att_schedule_t committed[PROPOSALS];
    uint32_t commits;
    uint64_t home; /* the home word as it was last seen */
} oracle_t;
static oracle_t oracles[GROUPS];

static struct {
    bool waiting, disturbed;
    uint64_t begin_ns;
    uint32_t group;
} waits[RANKS];
static uint64_t cut_off_until[NODES];

/* A fault waits for the n-th time that a step is taken, or for a number of atomic operations. */
typedef struct fault {
    bool armed;
    int step; /* -1: any operation */
    uint64_t count;
    sim_event_t event;
    uint64_t duration_ns; /* of a stop */
} fault_t;
static fault_t faults[3];
static uint32_t fault_count;

void sim_trace(const char *format, ...)
{
    if (!world.trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf("%12.6f ms  ", (double)sim_now() * 1e-6);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

void sim_fail(const char *format, ...)
{
    if (world.failed)
        return;
    world.failed = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world.failure, sizeof world.failure, format, arguments);
    va_end(arguments);
    sim_trace("VIOLATION: %s", world.failure);
}

/* --- building ----------------------------------------------------------------------------------
 */

static void clear_segment(uint32_t node)
{
    if (world.memory[node] == NULL) {
        size_t size = (sizeof(att_segment_memory_t) + 63) / 64 * 64;
        world.memory[node] = aligned_alloc(64, size);
        if (world.memory[node] == NULL) {
            fprintf(stderr, "sim: no memory for a segment\n");
            exit(2);
        }
        memset(world.memory[node], 0, size);
    }
    att_segment_memory_t *m = world.memory[node];
    memset(&m->header, 0, sizeof m->header);
    for (uint32_t g = 0; g < GROUPS; g++) {
        memset(&m->groups[g], 0, sizeof m->groups[g]);
        memset(&m->tasks[g], 0, sizeof m->tasks[g]);
    }
    for (uint32_t i = 0; i < GROUPS * RANKS; i++) {
        memset(&m->members[i], 0, sizeof m->members[i]);
        memset(&m->lanes[i], 0, sizeof m->lanes[i]);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        memset(&m->processes[r], 0, sizeof m->processes[r]);
    m->header.wait_ns = WAIT_NS;
    m->header.in_doubt_ns = DOUBT_NS;
}

/* Where the ranks of a group live, home first; and who is whose parent in its tree. */
static void place_group(sim_group_t *g)
{
    g->home_node = world.node_of[g->home_rank];
    g->nodes[0] = g->home_node;
    g->node_count = 1;
    for (uint32_t n = 0; n < NODES; n++) {
        bool holds = false;
        for (uint32_t r = 0; r < RANKS; r++)
            holds |= g->rank_of[r] != ATT_NONE && world.node_of[r] == n;
        if (holds && n != g->home_node)
            g->nodes[g->node_count++] = n;
    }
    for (uint32_t p = 1; p < g->node_count; p++)
        g->parent[p] = sim_below(p);
}

static void build_group(uint32_t index)
{
    sim_group_t *g = &world.groups[index];
    memset(g, 0, sizeof *g);
    /* All ranks; or those from two or three on, so that the groups overlap and their homes differ.
     */
    uint32_t first = index == 0 ? 0 : 2 + sim_below(2);
    uint32_t turn = sim_below(RANKS - first); /* rank numbers begin somewhere in the list */
    g->size = RANKS - first;
    for (uint32_t r = 0; r < RANKS; r++)
        g->rank_of[r] = r < first ? ATT_NONE : (r - first + turn) % g->size;
    for (uint32_t r = first; r < RANKS; r++)
        if (g->rank_of[r] == 0)
            g->home_rank = r;
    memset(g->key, 0x40 + (int)g->home_rank, sizeof g->key); /* one a process */
    place_group(g);
}

static void register_group(uint32_t index)
{
    sim_group_t *g = &world.groups[index];
    float cost[ATT_PAIR_COUNT] = {0};
    for (uint32_t p = 0; p < g->node_count; p++) {
        uint32_t n = g->nodes[p];
        att_segment_memory_t *m = world.memory[n];
        g->group[n] = att_segment_group(m, 0x1000 + index, g->size, g->node_count);
        g->task[n] = att_segment_task(m, g->group[n], ATT_COLLECTIVE_ALL_REDUCE, 1024, 7, cost);
        for (uint32_t r = 0; r < RANKS; r++) {
            if (g->rank_of[r] == ATT_NONE || world.node_of[r] != n)
                continue;
            uint32_t member = att_segment_add_member(m, g->group[n], g->rank_of[r], r);
            att_segment_publish_member(m, member);
            g->lane_of[r] = att_segment_add_lane(m, g->task[n], member);
            g->lanes[n][g->lane_count[n]++] = g->lane_of[r];
        }
    }
    for (uint32_t p = 0; p < g->node_count; p++) {
        uint32_t n = g->nodes[p];
        att_segment_memory_t *m = world.memory[n];
        memcpy(m->groups[g->group[n]].home_key, g->key, sizeof g->key);
        m->tasks[g->task[n]].home_task = g->task[g->home_node];
        m->tasks[g->task[n]].copied = n != g->home_node;
    }
}

/* The steps that the simulated parts take; those of the last line only now and then. */
static const att_step_t steps[] = {
    ATT_STEP_PLANNED,  ATT_STEP_OPENED,    ATT_STEP_RECEIVED,  ATT_STEP_PREPARED,
    ATT_STEP_ANSWERED, ATT_STEP_VOTED,     ATT_STEP_TOLD,      ATT_STEP_RECORDED,
    ATT_STEP_CLEARED,  ATT_STEP_HELD,      ATT_STEP_WAITING,   ATT_STEP_ABSORBED,
    ATT_STEP_ABORTED,  ATT_STEP_COMMITTED, ATT_STEP_RESOLVING, ATT_STEP_RESOLVING,
    ATT_STEP_QUERIED,  ATT_STEP_QUERIED,   ATT_STEP_RESOLVED,  ATT_STEP_RESOLVED};
#define STEPS (sizeof steps / sizeof steps[0])
#define RARE  6

/* Half of the schedules have one or two deaths, a quarter a process that stops for a while. */
static void draw_faults(void)
{
    uint32_t kills = sim_chance(540) ? 1 + sim_below(2) : 0;
    uint32_t stops = sim_chance(256) ? 1 : 0;
    fault_count = kills + stops;
    for (uint32_t i = 0; i < fault_count; i++) {
        fault_t *f = &faults[i];
        *f = (fault_t){.armed = true, .step = -1};
        if (sim_chance(256)) {
            f->count = 1 + sim_below(4000);
        } else {
            uint32_t s = sim_below(STEPS);
            f->step = (int)steps[s];
            f->count = s >= STEPS - RARE ? 1 : 1 + sim_below(10);
        }
        f->event = i >= kills ? SIM_STOPPED : sim_chance(300) ? SIM_PEER : SIM_KILLED;
        f->duration_ns = sim_span(1000000, 3u * (uint64_t)WAIT_NS);
    }
}

void sim_world_build(uint64_t seed, bool trace)
{
    sim_seed(seed);
    sim_reset();
    world.seed = seed;
    world.trace = trace;
    world.failed = false;
    world.generation = 0;
    world.restart_ns = SIM_NEVER;
    world.finished = false;
    world.last_call = 0;
    world.quiet_calls = 0;
    world.fences = world.kills = world.stops = 0;
    world.window = 1 + sim_below(8);
    memset(world.progress, 0, sizeof world.progress);
    memset(world.ended, 0, sizeof world.ended);
    memset(waits, 0, sizeof waits);
    memset(cut_off_until, 0, sizeof cut_off_until);
    bool round_robin = sim_chance(512);
    for (uint32_t r = 0; r < RANKS; r++)
        world.node_of[r] = round_robin ? r % NODES : r / (RANKS / NODES);
    for (uint32_t n = 0; n < NODES; n++) {
        clear_segment(n);
        /* Entry r is world rank r's. By hand: making the record rings would take all the time. */
        for (uint32_t r = 0; r < RANKS; r++)
            world.memory[n]->processes[r].state = ATT_ENTRY_LIVE;
        world.memory[n]->header.process_count = RANKS;
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        oracle_t *o = &oracles[g];
        memset(o->launched, 0, (size_t)o->calls * sizeof o->launched[0]);
        o->calls = o->proposals = o->commits = 0;
        o->home = 0;
        build_group(g);
        register_group(g);
    }
    draw_faults();
}

/* --- oracle ------------------------------------------------------------------------------------
 */

void sim_proposed(uint32_t group, const att_schedule_t *schedule)
{
    oracle_t *o = &oracles[group];
    if (o->proposals < PROPOSALS)
        o->proposed[o->proposals++] = *schedule;
    world.fences++;
    totals.fences++;
}

/* Every change of a home word: it is decided once, and ids grow. */
static void watch_home(uint32_t group)
{
    oracle_t *o = &oracles[group];
    const sim_group_t *g = &world.groups[group];
    uint64_t word = world.memory[g->home_node]->tasks[g->task[g->home_node]].home;
    if (word == o->home)
        return;
    uint64_t before = o->home;
    o->home = word;
    sim_trace("home word of group %u: %u %s", group, ATT_HOME_TXN(word),
              ATT_HOME_STATE(word) == ATT_HOME_OPEN        ? "open"
              : ATT_HOME_STATE(word) == ATT_HOME_COMMITTED ? "committed"
                                                           : "aborted");
    if (ATT_HOME_TXN(word) < ATT_HOME_TXN(before))
        sim_fail("group %u: the home word went back from %u to %u", group, ATT_HOME_TXN(before),
                 ATT_HOME_TXN(word));
    if (ATT_HOME_TXN(word) == ATT_HOME_TXN(before) && ATT_HOME_STATE(before) != ATT_HOME_OPEN)
        sim_fail("group %u: the outcome of %u changed", group, ATT_HOME_TXN(word));
    if (ATT_HOME_STATE(word) != ATT_HOME_COMMITTED)
        return;
    totals.commits++;
    /* The latest of that id: a leader that dies before it opens the word leaves the id unused. */
    uint32_t i = o->proposals;
    while (i > 0 && o->proposed[i - 1].txn != ATT_HOME_TXN(word))
        i--;
    if (i > 0 && o->commits < PROPOSALS)
        o->committed[o->commits++] = o->proposed[i - 1];
}

uint32_t sim_group_of(uint32_t node, uint32_t task)
{
    const sim_group_t *g = &world.groups[0];
    return g->lane_count[node] > 0 && g->task[node] == task ? 0 : 1;
}

void sim_launched(uint32_t group, uint32_t rank, const att_decision_t *decision)
{
    oracle_t *o = &oracles[group];
    uint16_t setting = (uint16_t)(decision->setting.channels + 1);
    totals.calls++;
    if (decision->call >= CALLS) {
        sim_fail("rank %u: call %lu", rank, (unsigned long)decision->call);
        return;
    }
    sim_trace("rank %u launches call %lu of group %u with setting %u (list %u)", rank,
              (unsigned long)decision->call, group, decision->setting.channels, decision->txn);
    if (o->launched[decision->call] == 0) {
        o->launched[decision->call] = setting;
        o->by[decision->call] = (uint8_t)rank;
        if (decision->call >= o->calls)
            o->calls = decision->call + 1;
    } else if (o->launched[decision->call] != setting) {
        sim_fail("call %lu of group %u: rank %u has setting %u, rank %u has setting %u",
                 (unsigned long)decision->call, group, o->by[decision->call],
                 o->launched[decision->call] - 1, rank, setting - 1);
    }
}

void sim_wait_begin(uint32_t rank, uint32_t group)
{
    waits[rank].waiting = true;
    waits[rank].disturbed = sim_dead(world.groups[group].home_rank) ||
                            sim_stopped(world.groups[group].home_rank) ||
                            sim_now() < cut_off_until[world.node_of[rank]];
    waits[rank].begin_ns = sim_now();
    waits[rank].group = group;
}

void sim_wait_end(uint32_t rank, bool in_doubt)
{
    if (!waits[rank].waiting)
        return;
    waits[rank].waiting = false;
    uint64_t waited = sim_now() - waits[rank].begin_ns;
    totals.waits++;
    totals.in_doubt += in_doubt;
    if (in_doubt && !sim_dead(world.groups[waits[rank].group].home_rank))
        sim_fail("rank %u is in doubt while its home lives", rank);
    if (waits[rank].disturbed)
        return;
    if (waited > totals.longest_wait_ns)
        totals.longest_wait_ns = waited;
    if (waited > BOUND_NS)
        sim_fail("rank %u waited %.3f ms while its home was reachable", rank,
                 (double)waited * 1e-6);
}

void sim_cut_off(uint32_t process, uint64_t until_ns)
{
    if (process >= RANKS)
        return;
    uint64_t *until = &cut_off_until[world.node_of[process]];
    if (*until < until_ns)
        *until = until_ns;
    sim_disturb(process);
}

void sim_disturb(uint32_t process)
{
    if (process >= RANKS)
        return;
    for (uint32_t r = 0; r < RANKS; r++)
        if (world.node_of[r] == world.node_of[process] ||
            (waits[r].waiting && world.groups[waits[r].group].home_rank == process))
            waits[r].disturbed = true;
}

uint64_t sim_list_end(uint32_t group)
{
    const oracle_t *o = &oracles[group];
    if (o->commits == 0)
        return 0;
    const att_schedule_t *last = &o->committed[o->commits - 1];
    return last->entries[last->count - 1].first_call;
}

/* What the committed lists say about a call: each holds from its fence until the next one's. */
static uint16_t expected(const oracle_t *o, uint64_t call)
{
    uint16_t setting = 0;
    for (uint32_t i = 0; i < o->commits; i++)
        for (uint32_t e = 0; e < o->committed[i].count; e++)
            if (o->committed[i].entries[e].first_call <= call)
                setting = o->committed[i].entries[e].setting.channels;
    return setting;
}

void sim_world_verify(void)
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        watch_home(g);
        for (uint64_t c = 0; c < oracles[g].calls; c++)
            if (oracles[g].launched[c] != 0 &&
                oracles[g].launched[c] != expected(&oracles[g], c) + 1)
                sim_fail("call %lu of group %u: rank %u has setting %u, the committed lists say %u",
                         (unsigned long)c, g, oracles[g].by[c], oracles[g].launched[c] - 1,
                         expected(&oracles[g], c));
    }
    for (uint32_t r = 0; r < RANKS; r++)
        if (!sim_dead(r) && !world.ended[r])
            sim_fail("rank %u did not end: call %lu of %lu%s", r, (unsigned long)world.progress[r],
                     (unsigned long)world.last_call, waits[r].waiting ? ", waiting" : "");
}

/* --- faults ------------------------------------------------------------------------------------
 */

static uint32_t random_living(void)
{
    uint32_t process;
    do
        process = sim_chance(512) ? sim_below(RANKS)
                                  : FIRST_AGENT + world.generation * NODES + sim_below(NODES);
    while (sim_dead(process));
    return process;
}

static void happen(fault_t *f, int step)
{
    uint32_t process = f->event == SIM_PEER ? random_living() : sim_process();
    f->armed = false;
    if (process == SUPERVISOR || sim_dead(process))
        return;
    if (step >= 0)
        totals.hits[step][f->event]++;
    sim_disturb(process);
    if (f->event == SIM_STOPPED) {
        sim_trace("process %u stops for %.3f ms", process, (double)f->duration_ns * 1e-6);
        world.stops++;
        sim_stop(process, f->duration_ns);
        return;
    }
    sim_trace("process %u dies", process);
    world.kills++;
    sim_kill(process);
}

static void count_operation(void)
{
    watch_home(0);
    watch_home(1);
    for (uint32_t i = 0; i < fault_count; i++)
        if (faults[i].armed && faults[i].step < 0 && --faults[i].count == 0)
            happen(&faults[i], -1);
}

void sim_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call)
{
    totals.hits[step][SIM_TAKEN]++;
    sim_trace("process %u: %s %u, call %lu", sim_process(), att_step_name(step), txn,
              (unsigned long)call);
    if (sim_process() >= FIRST_AGENT)
        world.quiet_calls = 0;
    if (step == ATT_STEP_WAITING)
        sim_wait_begin(sim_process(), sim_group_of(world.node_of[sim_process()], task));
    for (uint32_t i = 0; i < fault_count; i++)
        if (faults[i].armed && faults[i].step == (int)step && --faults[i].count == 0)
            happen(&faults[i], (int)step);
}

void sim_late_faults(void)
{
    for (uint32_t i = 0; i < fault_count; i++) {
        if (!faults[i].armed)
            continue;
        faults[i].step = -1;
        faults[i].count = 1 + sim_below(300);
    }
}

__attribute__((constructor)) static void install(void)
{
    sim_on_step = count_operation;
    sim_on_death = sim_rank_moved;
}
