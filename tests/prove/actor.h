/*
 * actor: the threads of the simulated processes, as coroutines of one thread under a virtual clock.
 *
 * An actor runs until it comes to an atomic operation (sim_step), sleeps, or waits for a message;
 * then the actor with the earliest time goes on. How much time each operation takes is drawn at
 * random, so that any interleaving of atomic operations happens. A process is a set of actors that
 * stop and die together; a process that dies loses its actors wherever they are, after its
 * buffered stores have reached memory.
 *
 * Everything is drawn from one generator: the same seed gives the same schedule.
 */
#ifndef ATT_PROVE_ACTOR_H
#define ATT_PROVE_ACTOR_H

#include "atomic_steps.h"

#define SIM_ACTORS 24
#define SIM_NEVER  UINT64_MAX

typedef void (*sim_actor_fn)(void *argument);

/* Random numbers of the schedule. */
void sim_seed(uint64_t seed);
uint64_t sim_random(void);
uint32_t sim_below(uint32_t limit);             /* 0 .. limit - 1 */
bool sim_chance(uint32_t parts_of_1024);        /* true in so many of 1024 cases */
uint64_t sim_span(uint64_t low, uint64_t high); /* log-uniform, in ns */

/* A new world without actors at time 0. */
void sim_reset(void);
/* Actor of `process`; `slowness` stretches its operations (1 = not). It starts at once. */
uint32_t sim_spawn(uint32_t process, uint32_t slowness, sim_actor_fn run, void *argument);
/* Run until nobody has anything to do, or `until`. */
void sim_run(uint64_t until);

uint64_t sim_now(void);                    /* virtual time in ns */
uint32_t sim_current(void);                /* the actor that runs */
void sim_wait_until(uint64_t t);           /* the running actor goes on at t, or when it is woken */
void sim_wake(uint32_t actor, uint64_t t); /* not later than t */

/* The clock of the running process is skewed by this. */
void sim_set_clock(uint32_t process, int64_t offset_ns, int32_t drift_ppm);

/* Processes. Killing or stopping the running actor's own process does not return to it (now). */
#define SIM_PROCESSES 24
void sim_kill(uint32_t process);
void sim_stop(uint32_t process, uint64_t duration_ns);
bool sim_dead(uint32_t process);
bool sim_stopped(uint32_t process);
uint32_t sim_process(void); /* of the running actor */

/* Called before every atomic operation; may kill or stop. NULL: nobody. */
extern void (*sim_on_step)(void);
/* Called after every death. NULL: nobody. */
extern void (*sim_on_death)(void);
/* Atomic operations so far, of all schedules. */
extern uint64_t sim_steps;

#endif
