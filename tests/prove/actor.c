#include "actor.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES 65536

typedef struct actor {
    jmp_buf context;
    bool started, over;
    uint32_t process;
    uint32_t slowness;
    sim_actor_fn run;
    void *argument;
    /* store buffer of one entry */
    volatile void *address;
    uint64_t value;
    uint32_t size;
    char *stack;
} actor_t;

typedef struct process {
    bool dead;
    uint64_t stopped_until;
    int64_t offset_ns;
    int32_t drift_ppm;
} process_t;

static actor_t actors[SIM_ACTORS];
static uint64_t wake[SIM_ACTORS]; /* apart: the scheduler looks at nothing else */
static process_t processes[SIM_PROCESSES];
static uint32_t actor_count, current;
static uint64_t now, random_state, until_ns;
static jmp_buf scheduler;
static ucontext_t prototype;

void (*sim_on_step)(void);
void (*sim_on_death)(void);
uint64_t sim_steps;

/* --- random numbers (splitmix64) ---------------------------------------------------------------
 */

void sim_seed(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

uint64_t sim_random(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t sim_below(uint32_t limit)
{
    return (uint32_t)((sim_random() >> 32) * limit >> 32);
}

bool sim_chance(uint32_t parts_of_1024)
{
    return sim_below(1024) < parts_of_1024;
}

uint64_t sim_span(uint64_t low, uint64_t high)
{
    uint32_t doublings = 0;
    while (low << doublings < high)
        doublings++;
    uint64_t base = low << sim_below(doublings + 1);
    uint64_t span = base + (sim_random() >> 16) % base;
    return span > high ? high : span;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void drain(actor_t *a)
{
    if (a->address == NULL)
        return;
    switch (a->size) {
    case 4:
        __atomic_store_n((volatile uint32_t *)a->address, (uint32_t)a->value, __ATOMIC_RELAXED);
        break;
    case 8:
        __atomic_store_n((volatile uint64_t *)a->address, a->value, __ATOMIC_RELAXED);
        break;
    default:
        fprintf(stderr, "sim: a store of %u bytes\n", a->size);
        abort();
    }
    a->address = NULL;
}

void sim_drain(void)
{
    drain(&actors[current]);
}

void sim_store(volatile void *address, uint64_t value, uint32_t size)
{
    actor_t *a = &actors[current];
    drain(a);
    a->address = address;
    a->value = value;
    a->size = size;
}

bool sim_buffered(const volatile void *address, uint64_t *value)
{
    const actor_t *a = &actors[current];
    *value = a->value;
    return a->address == address;
}

/* --- coroutines --------------------------------------------------------------------------------
 */

void sim_reset(void)
{
    for (uint32_t i = 0; i < SIM_ACTORS; i++) {
        actors[i].started = false;
        actors[i].address = NULL;
    }
    memset(processes, 0, sizeof processes);
    actor_count = 0;
    now = 0;
}

uint32_t sim_spawn(uint32_t process, uint32_t slowness, sim_actor_fn run, void *argument)
{
    if (actor_count == SIM_ACTORS) {
        fprintf(stderr, "sim: too many actors\n");
        abort();
    }
    uint32_t id = actor_count++;
    actor_t *a = &actors[id];
    char *stack = a->stack != NULL ? a->stack : malloc(STACK_BYTES);
    if (stack == NULL)
        abort();
    *a = (actor_t){.process = process, .slowness = slowness, .run = run, .argument = argument};
    a->stack = stack;
    wake[id] = now + sim_below(1000);
    return id;
}

static uint32_t earliest(void)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < actor_count; i++)
        if (wake[i] < wake[first])
            first = i;
    return first;
}

static _Noreturn void go_on(uint32_t first, bool over)
{
    if (over || !actors[first].started)
        _longjmp(scheduler, 1);
    current = first;
    if (wake[first] > now)
        now = wake[first];
    _longjmp(actors[first].context, 1);
}

/* Let the earliest go on: maybe oneself. */
static void switch_out(void)
{
    const uint32_t first = earliest();
    const bool over = wake[first] >= until_ns;
    if (!over && first == current) {
        if (wake[first] > now)
            now = wake[first];
        return;
    }
    if (_setjmp(actors[current].context) == 0)
        go_on(first, over);
}

static void trampoline(void)
{
    actor_t *a = &actors[current];
    a->run(a->argument);
    sim_drain();
    actors[current].over = true;
    wake[current] = SIM_NEVER;
    _longjmp(scheduler, 1);
}

static void start(actor_t *a)
{
    static bool have_prototype;
    if (!have_prototype && getcontext(&prototype) != 0)
        abort();
    have_prototype = true;
    static ucontext_t context;
    context = prototype;
    context.uc_stack.ss_sp = a->stack;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    a->started = true;
    makecontext(&context, trampoline, 0);
    setcontext(&context);
}

void sim_run(uint64_t until)
{
    until_ns = until;
    _setjmp(scheduler);
    uint32_t first = earliest();
    if (actor_count == 0 || wake[first] >= until_ns)
        return;
    current = first;
    if (wake[first] > now)
        now = wake[first];
    if (actors[first].started)
        _longjmp(actors[first].context, 1);
    start(&actors[first]);
}

/* --- time --------------------------------------------------------------------------------------
 */

uint64_t sim_now(void)
{
    return now;
}

uint32_t sim_current(void)
{
    return current;
}

uint32_t sim_process(void)
{
    return actors[current].process;
}

void sim_wait_until(uint64_t t)
{
    const process_t *p = &processes[actors[current].process];
    wake[current] = t < p->stopped_until ? p->stopped_until : t;
    if (sim_chance(768))
        sim_drain();
    switch_out();
}

void sim_wake(uint32_t actor, uint64_t t)
{
    const process_t *p = &processes[actors[actor].process];
    if (p->dead || actors[actor].over)
        return;
    if (t < p->stopped_until)
        t = p->stopped_until;
    if (t < wake[actor])
        wake[actor] = t;
}

/* Most operations take some ns; now and then the kernel has something better to do. */
void sim_step(void)
{
    sim_steps++;
    if (sim_on_step != NULL)
        sim_on_step();
    uint64_t dice = sim_random();
    actor_t *a = &actors[current];
    if (a->address != NULL && (dice & 3) == 0)
        drain(a);
    uint64_t cost = (5 + (dice >> 8 & 63)) * a->slowness;
    if ((dice >> 16 & 31) == 0)
        cost += (dice >> 24 & 0xffff) * a->slowness; /* up to 65 us */
    wake[current] = now + cost;
    switch_out();
}

uint64_t sim_clock_ns(void)
{
    const process_t *p = &processes[actors[current].process];
    int64_t t = (int64_t)now + p->offset_ns + (int64_t)now / 1000000 * p->drift_ppm;
    return (uint64_t)t + 1000000000000u;
}

/* A sleeper may oversleep, which also spares the simulation most of the polls of a long wait. */
void sim_sleep_ns(uint64_t ns)
{
    sim_wait_until(now + sim_span(ns, 150000000u));
}

void sim_pause(void)
{
    sim_wait_until(now + sim_span(500, 100000000u));
}

void sim_set_clock(uint32_t process, int64_t offset_ns, int32_t drift_ppm)
{
    processes[process].offset_ns = offset_ns;
    processes[process].drift_ppm = drift_ppm;
}

/* --- faults ------------------------------------------------------------------------------------
 */

void sim_kill(uint32_t process)
{
    processes[process].dead = true;
    for (uint32_t i = 0; i < actor_count; i++)
        if (actors[i].process == process) {
            drain(&actors[i]);
            wake[i] = SIM_NEVER;
        }
    if (sim_on_death != NULL)
        sim_on_death();
    if (actors[current].process == process)
        _longjmp(scheduler, 1);
}

void sim_stop(uint32_t process, uint64_t duration_ns)
{
    process_t *p = &processes[process];
    p->stopped_until = now + duration_ns;
    bool running = actors[current].process == process;
    for (uint32_t i = 0; i < actor_count; i++)
        if (actors[i].process == process && (i != current || !running) && !actors[i].over &&
            wake[i] < p->stopped_until)
            wake[i] = p->stopped_until;
    if (running) {
        wake[current] = p->stopped_until;
        switch_out();
    }
}

bool sim_dead(uint32_t process)
{
    return processes[process].dead;
}

bool sim_stopped(uint32_t process)
{
    return processes[process].stopped_until > now;
}
