/*
 * Deterministic simulation of the fence protocol's real code: schedules of four nodes, eight ranks
 * and two overlapping groups under random delays, losses, skewed clocks, stops and deaths.
 *
 *     sim [--schedules N] [--first SEED] [--table]      until the first violation
 *     sim --seed SEED        exactly this schedule, with a trace
 *
 * The last line is "schedules N violations M". Exit status 1 when there was a violation.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HORIZON_NS 300000000000u /* no schedule needs so long */

static const char *const event_names[SIM_EVENTS] = {"taken", "killed", "stopped", "peer killed"};

/* Watches the sidecar as mpirun does, and ends the run. */
static void supervise(void *argument)
{
    (void)argument;
    bool restarts = sim_chance(512);
    uint64_t patience = 200000000000u; /* calls have become slow by then */
    for (;;) {
        sim_wait_until(sim_now() + sim_span(400000, 20000000));
        uint32_t first = FIRST_AGENT + world.generation * NODES, dead = 0;
        for (uint32_t n = 0; n < NODES; n++)
            dead += sim_dead(first + n);
        bool job_dead = false;
        for (uint32_t r = 0; r < RANKS; r++)
            job_dead |= sim_dead(r);
        /* The lanes of dead ranks take over nothing: there are no more switches then. */
        if (job_dead && patience > sim_now() + 4000000000u)
            patience = sim_now() + 4000000000u;
        if (dead > 0 && dead < NODES) {
            /* The others live on for a moment. */
            sim_wait_until(sim_now() + sim_span(10000, 500000000));
            for (uint32_t n = 0; n < NODES; n++)
                if (!sim_dead(first + n))
                    sim_kill(first + n);
            dead = NODES;
        }
        if (dead == NODES && restarts && world.generation == 0 && !job_dead) {
            sim_wait_until(sim_now() + sim_span(100000, 2000000000u));
            sim_trace("a second sidecar starts");
            totals.restarts++;
            sim_agents_start(1);
            continue;
        }
        if (dead == NODES || sim_agents_done() || sim_now() > patience)
            break;
    }
    sim_late_faults();
    uint64_t last = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        if (world.progress[r] > last)
            last = world.progress[r];
    for (uint32_t g = 0; g < GROUPS; g++)
        if (sim_list_end(g) > last)
            last = sim_list_end(g);
    world.last_call = last + 6;
    world.finished = true;
    sim_rank_moved();
}

static void run_schedule(uint64_t seed, bool trace)
{
    sim_world_build(seed, trace);
    for (uint32_t p = 0; p < FIRST_AGENT + 2 * NODES; p++)
        sim_set_clock(p, (int64_t)sim_below(1000000000), (int32_t)sim_below(4001) - 2000);
    sim_ranks_start();
    sim_agents_start(0);
    sim_spawn(SUPERVISOR, 1, supervise, NULL);
    sim_run(HORIZON_NS);
    sim_world_verify();
    totals.schedules++;
    totals.crashed += world.kills > 0;
    if (world.kills == 0 && (totals.fewest_fences == 0 || world.fences < totals.fewest_fences))
        totals.fewest_fences = world.fences;
}

static uint64_t number(const char *option, const char *text)
{
    char *end;
    uint64_t value = text == NULL ? 0 : strtoull(text, &end, 10);
    if (text == NULL || *text == '\0' || *end != '\0') {
        fprintf(stderr, "sim: %s needs a number, not '%s'\n", option, text == NULL ? "" : text);
        exit(2);
    }
    return value;
}

static void print_table(void)
{
    uint64_t least = UINT64_MAX;
    printf("%-12s", "step");
    for (int e = 0; e < SIM_EVENTS; e++)
        printf(" %12s", event_names[e]);
    putchar('\n');
    for (int s = 0; s < ATT_STEP_COUNT; s++) {
        if (totals.hits[s][SIM_TAKEN] == 0)
            continue;
        printf("%-12s", att_step_name((att_step_t)s));
        for (int e = 0; e < SIM_EVENTS; e++) {
            printf(" %12lu", (unsigned long)totals.hits[s][e]);
            if (totals.hits[s][e] < least)
                least = totals.hits[s][e];
        }
        putchar('\n');
    }
    printf("least hits of a (step, event) pair %lu\n", (unsigned long)least);
}

static void print_totals(double seconds)
{
    double n = (double)totals.schedules;
    printf("%.0f schedules/s; a schedule: %.1f atomic operations, %.1f fences (%.1f committed; at "
           "least "
           "%lu without a death), %.1f calls, %.1f messages, %.2f requests to a home, %.2f waits\n",
           n / seconds, (double)sim_steps / n, (double)totals.fences / n,
           (double)totals.commits / n, (unsigned long)totals.fewest_fences,
           (double)totals.calls / n, (double)totals.messages / n, (double)totals.resolves / n,
           (double)totals.waits / n);
    printf("with a death %.1f %%, with a second sidecar %.1f %%, calls in doubt (home dead) %lu\n",
           100 * (double)totals.crashed / n, 100 * (double)totals.restarts / n,
           (unsigned long)totals.in_doubt);
    printf(
        "longest wait with the home reachable %.1f ms of virtual time; W %.0f ms, bound %.0f ms\n",
        (double)totals.longest_wait_ns * 1e-6, WAIT_NS * 1e-6, BOUND_NS * 1e-6);
}

int main(int argc, char **argv)
{
    uint64_t schedules = 100000, first = 1;
    bool table = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0) {
            uint64_t seed = number("--seed", i + 1 < argc ? argv[i + 1] : NULL);
            run_schedule(seed, true);
            printf("schedules 1 violations %d\n", world.failed);
            return world.failed;
        } else if (strcmp(argv[i], "--schedules") == 0) {
            schedules = number("--schedules", i + 1 < argc ? argv[i + 1] : NULL);
            i++;
        } else if (strcmp(argv[i], "--first") == 0) {
            first = number("--first", i + 1 < argc ? argv[i + 1] : NULL);
            i++;
        } else if (strcmp(argv[i], "--table") == 0) {
            table = true;
        } else {
            fprintf(stderr, "usage: sim [--schedules N] [--first SEED] [--table] | --seed SEED\n");
            return 2;
        }
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    uint64_t violations = 0, done = 0;
    for (; done < schedules && violations == 0; done++) {
        run_schedule(first + done, false);
        if (!world.failed)
            continue;
        violations++;
        printf("seed %lu: %s\n", (unsigned long)(first + done), world.failure);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    if (table)
        print_table();
    printf("seeds %lu to %lu\n", (unsigned long)first, (unsigned long)(first + done - 1));
    print_totals(seconds);
    printf("schedules %lu violations %lu\n", (unsigned long)done, (unsigned long)violations);
    return violations > 0;
}
