/*
 * bench_agent: what the sidecar costs and carries, with real processes.
 *
 *   idle     8 agents under mpirun, a rank attached on each, nothing searched: share of a core of
 *            each agent and of mpirun over a minute
 *   records  ranks that call through the hook's tables with kernel stamps at a given rate; hook ->
 *            ring -> agent -> aggregate -> task of the leader, on one node
 *   leader   the same over two agents: the second one reduces its node and sends parts to the first
 *
 * Every call is followed, to the record: calls made = records in rings + dropped (counted) + seen
 * but not stamped (counted by reason); records in rings = drained = in whole calls at the leader +
 * unused (before the group was ready) + incomplete (another rank's record was lost) + unsent (the
 * agent above was stopped) + still waiting
 * for the others' at the end. A row whose sums do not hold is an error, not a result.
 *
 * Usage: bench_agent LIBRARY ATTUNED [JSON]. ATTUNE_BENCH_IDLE_S shortens the minute,
 * ATTUNE_BENCH_RATE does one row over two agents at so many calls a second, with
 * ATTUNE_BENCH_STOP_S agent ATTUNE_BENCH_STOP (0 leads, 1) stopped for so long in the middle of it.
 */
#include "job.h"
#include "sidecar.h"

#include "base/clock.h"

#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 16, IDLE_AGENTS = 8 };

typedef struct row {
    uint32_t agents, ranks;
    double asked_s, made_s;                       /* calls a second over all ranks */
    uint64_t calls;                               /* made */
    uint64_t timed, dropped, unstamped, other;    /* by the hook: recorded, ring full, stamps off */
    uint64_t drained, left;                       /* by the agents; left in rings: must be 0 */
    uint64_t whole, lost;                         /* calls at the leader: complete, incomplete */
    uint64_t unused, incomplete, unsent, waiting; /* records, of all agents */
    uint32_t stopped;                             /* this agent, in the middle, for so long */
    double stopped_s;
    double grown_kib;                        /* the other agent's memory, meanwhile */
    double agent_share, rank_ns, slowest_ns; /* of a core; processor time of a rank's call */
    double records_per_agent_s;              /* what one core of the agent would carry */
    bool holds;
} row_t;

typedef struct idle {
    uint32_t agents;
    double seconds, most_share, mean_share, launcher_share, wakeups_s;
    uint64_t resident_kib;
} idle_t;

typedef struct paths {
    const char *library, *attuned;
    char folder[PATH_MAX];
} paths_t;

/* Sums over the observed tasks of tasks.json: whole calls and lost ones at the leader. */
static int read_leader(const char *folder, row_t *row)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    json_t *root = json_load_file(path, 0, NULL);
    if (root == NULL)
        return -1;
    size_t i;
    const json_t *task;
    json_array_foreach(json_object_get(root, "tasks"), i, task)
    {
        row->whole += (uint64_t)json_integer_value(json_object_get(task, "calls_seen"));
        row->lost += (uint64_t)json_integer_value(json_object_get(task, "lost"));
    }
    const json_t *coverage = json_object_get(root, "coverage");
    row->unused = (uint64_t)json_integer_value(json_object_get(coverage, "unused"));
    row->incomplete = (uint64_t)json_integer_value(json_object_get(coverage, "incomplete"));
    row->unsent = (uint64_t)json_integer_value(json_object_get(coverage, "unsent"));
    row->waiting = (uint64_t)json_integer_value(json_object_get(coverage, "waiting"));
    json_decref(root);
    return 0;
}

static void count(const bench_sidecar_t *sidecar, const bench_job_t *job, row_t *row)
{
    for (uint32_t r = 0; r < row->ranks; r++)
        row->calls += atomic_load(&job->ranks[r].calls);
    for (uint32_t a = 0; a < row->agents; a++) {
        const att_segment_memory_t *m = bench_sidecar_memory(sidecar, a);
        uint32_t processes = atomic_load(&m->header.process_count);
        for (uint32_t p = 0; p < processes && p < ATT_PROCESSES; p++) {
            const att_segment_process_t *process = &m->processes[p];
            row->timed += atomic_load(&process->timed);
            row->dropped += atomic_load(&m->rings[p].dropped);
            row->unstamped += atomic_load(&process->untimed[ATT_UNTIMED_OFF]);
            for (int i = ATT_UNTIMED_OFF + 1; i < ATT_UNTIMED_COUNT; i++)
                row->other += atomic_load(&process->untimed[i]);
            row->drained += atomic_load(&m->rings[p].tail);
            row->left += atomic_load(&m->rings[p].head) - atomic_load(&m->rings[p].tail);
        }
    }
}

/* The rows hold when every call and every record has exactly one fate. `other` includes what was
 * dropped, and both what has a record and what has none. */
static void judge(row_t *row)
{
    row->holds = row->calls == row->timed + row->unstamped + row->other && row->left == 0 &&
                 row->dropped <= row->other && row->drained <= row->calls &&
                 row->drained >= row->timed &&
                 row->drained == row->whole * row->ranks + row->unused + row->incomplete +
                                     row->unsent + row->waiting;
}

static int stop_for_a_while(const bench_sidecar_t *sidecar, row_t *row)
{
    pid_t stopped = bench_sidecar_agent(sidecar, row->stopped);
    pid_t other = bench_sidecar_agent(sidecar, 1 - row->stopped);
    bench_use_t before, after;
    int failed = bench_use_of(other, &before) | kill(stopped, SIGSTOP);
    att_clock_sleep_ns((uint64_t)(row->stopped_s * 1e9));
    failed |= bench_use_of(other, &after) | kill(stopped, SIGCONT);
    row->grown_kib = (double)after.resident_kib - (double)before.resident_kib;
    return failed;
}

static int measure(const paths_t *paths, row_t *row, double seconds)
{
    bench_sidecar_t sidecar;
    bench_job_t job = {0};
    bench_use_t before, after;
    bench_job_plan_t plan = {.library = paths->library,
                             .ranks = row->ranks,
                             .nodes = row->agents,
                             .calls_s = row->asked_s / row->ranks,
                             .warm_up_s = 0.5,
                             .seconds = seconds};
    int failed = bench_sidecar_start(&sidecar, paths->attuned, row->agents, paths->folder);
    if (!failed)
        failed = bench_job_start(&job, &plan);
    if (failed)
        goto free_both;
    pid_t agent = bench_sidecar_agent(&sidecar, 0);
    bench_job_go(&job);
    att_clock_sleep_ns((uint64_t)(plan.warm_up_s * 1e9));
    failed = bench_use_of(agent, &before);
    uint64_t begin = att_clock_ns();
    if (row->stopped_s > 0)
        failed |= stop_for_a_while(&sidecar, row);
    att_clock_sleep_ns((uint64_t)((seconds * 0.9 - row->stopped_s) * 1e9));
    failed |= bench_use_of(agent, &after);
    row->agent_share = (after.cpu_s - before.cpu_s) / ((double)(att_clock_ns() - begin) * 1e-9);
    failed |= bench_job_wait(&job);
    uint64_t spent = 0, counted = 0;
    for (uint32_t r = 0; r < row->ranks; r++) {
        const bench_rank_t *rank = &job.ranks[r];
        row->made_s += (double)rank->counted_calls / rank->counted_s;
        spent += rank->spent_ns;
        counted += rank->counted_calls;
        if ((double)rank->slowest_ns > row->slowest_ns)
            row->slowest_ns = (double)rank->slowest_ns;
    }
    row->rank_ns = counted > 0 ? (double)spent / (double)counted : 0;
    att_clock_sleep_ns(300000000); /* parts are sent every tenth of a second */
    failed |= bench_sidecar_stop(&sidecar);
    count(&sidecar, &job, row);
    failed |= read_leader(paths->folder, row);
    judge(row);
    row->records_per_agent_s =
        row->agent_share > 0 ? row->made_s / row->agents / row->agent_share : 0;

free_both:
    bench_job_free(&job);
    bench_sidecar_free(&sidecar);
    return failed;
}

static int measure_idle(const paths_t *paths, idle_t *idle)
{
    bench_sidecar_t sidecar;
    bench_job_t job = {0};
    bench_job_plan_t plan = {
        .library = paths->library, .ranks = idle->agents, .nodes = idle->agents};
    bench_use_t before[IDLE_AGENTS + 1], after;
    int failed = bench_sidecar_start(&sidecar, paths->attuned, idle->agents, paths->folder);
    if (!failed)
        failed = bench_job_start(&job, &plan);
    if (failed)
        goto free_both;
    bench_job_go(&job);
    att_clock_sleep_ns(2000000000); /* registration is over */
    uint64_t begin = att_clock_ns();
    failed |= bench_use_of(sidecar.pid, &before[IDLE_AGENTS]);
    for (uint32_t a = 0; a < idle->agents; a++)
        failed |= bench_use_of(bench_sidecar_agent(&sidecar, a), &before[a]);
    att_clock_sleep_ns((uint64_t)(idle->seconds * 1e9));
    double seconds = (double)(att_clock_ns() - begin) * 1e-9;
    for (uint32_t a = 0; a < idle->agents; a++) {
        failed |= bench_use_of(bench_sidecar_agent(&sidecar, a), &after);
        double share = (after.cpu_s - before[a].cpu_s) / seconds;
        if (share > idle->most_share)
            idle->most_share = share;
        idle->mean_share += share / idle->agents;
        idle->wakeups_s += (double)(after.switches - before[a].switches) / seconds / idle->agents;
        if (after.resident_kib > idle->resident_kib)
            idle->resident_kib = after.resident_kib;
    }
    failed |= bench_use_of(sidecar.pid, &after);
    idle->launcher_share = (after.cpu_s - before[IDLE_AGENTS].cpu_s) / seconds;
    idle->seconds = seconds;

free_both:
    bench_job_free(&job);
    bench_sidecar_free(&sidecar);
    return failed;
}

static void print_idle(const idle_t *i)
{
    printf(
        "# attune %s, the sidecar with nothing to do; target: at most 1 %% of a core an agent\n"
        "%u agents, %.0f s: %.3f %% of a core an agent (most %.3f %%), %.0f context switches/s an "
        "agent, %.1f MiB resident; mpirun %.3f %%\n",
        ATTUNE_VERSION, i->agents, i->seconds, 100 * i->mean_share, 100 * i->most_share,
        i->wakeups_s, (double)i->resident_kib / 1024, 100 * i->launcher_share);
}

static void print_rows(const row_t *rows, int n)
{
    printf("# calls with a record each, hook -> ring -> agent -> whole calls at the leader\n"
           "%6s %5s %11s %11s %10s %9s %9s %9s %9s %10s %7s %7s %9s %7s %9s %6s\n",
           "agents", "ranks", "asked", "made", "drained", "dropped", "unstamped", "whole", "unused",
           "incomplete", "unsent", "waiting", "agent", "call", "agent max", "sums");
    printf("%6s %5s %11s %11s %10s %9s %9s %9s %9s %10s %7s %7s %9s %7s %9s %6s\n", "", "", "(1/s)",
           "(1/s)", "", "", "", "(calls)", "", "", "", "", "(% core)", "(ns)", "(1/s)", "");
    for (int i = 0; i < n; i++) {
        const row_t *r = &rows[i];
        printf(
            "%6u %5u %11.0f %11.0f %10llu %9llu %9llu %9llu %9llu %10llu %7llu %7llu %9.1f %7.0f "
            "%9.2e %6s\n",
            r->agents, r->ranks, r->asked_s, r->made_s, (unsigned long long)r->drained,
            (unsigned long long)r->dropped, (unsigned long long)r->unstamped,
            (unsigned long long)r->whole, (unsigned long long)r->unused,
            (unsigned long long)r->incomplete, (unsigned long long)r->unsent,
            (unsigned long long)r->waiting, 100 * r->agent_share, r->rank_ns,
            r->records_per_agent_s, r->holds ? "hold" : "WRONG");
    }
}

static json_t *row_json(const row_t *r)
{
    return json_pack(
        "{s:i,s:i,s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:b}",
        "agents", (int)r->agents, "ranks", (int)r->ranks, "asked_per_s", r->asked_s, "made_per_s",
        r->made_s, "calls", (json_int_t)r->calls, "drained", (json_int_t)r->drained, "left",
        (json_int_t)r->left, "dropped", (json_int_t)r->dropped, "unstamped",
        (json_int_t)r->unstamped, "whole_calls", (json_int_t)r->whole, "lost_calls",
        (json_int_t)r->lost, "unused", (json_int_t)r->unused, "incomplete",
        (json_int_t)r->incomplete, "unsent", (json_int_t)r->unsent, "waiting",
        (json_int_t)r->waiting, "stopped_s", r->stopped_s, "grown_kib", r->grown_kib, "agent_share",
        r->agent_share, "rank_ns_per_call", r->rank_ns, "agent_records_per_core_s",
        r->records_per_agent_s, "holds", (int)r->holds);
}

static int write_json(const char *path, const idle_t *i, const row_t *rows, int n)
{
    json_t *list = json_array();
    for (int r = 0; r < n; r++)
        json_array_append_new(list, row_json(&rows[r]));
    json_t *root =
        json_pack("{s:i,s:s,s:s,s:{s:i,s:f,s:f,s:f,s:f,s:f,s:I},s:o}", "version", 1, "attune",
                  ATTUNE_VERSION, "units", "shares of one core, calls and records a second", "idle",
                  "agents", (int)i->agents, "seconds", i->seconds, "mean_share", i->mean_share,
                  "most_share", i->most_share, "mpirun_share", i->launcher_share, "switches_per_s",
                  i->wakeups_s, "resident_kib", (json_int_t)i->resident_kib, "rows", list);
    int failed = root == NULL || json_dump_file(root, path, JSON_INDENT(1)) != 0;
    if (failed)
        perror(path);
    json_decref(root);
    return failed;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *level)
{
    (void)status;
    (void)type;
    (void)level;
    return remove(path);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: bench_agent LIBRARY ATTUNED [JSON]\n");
        return ATT_EUSAGE;
    }
    paths_t paths = {.library = argv[1], .attuned = argv[2]};
    char directory[] = "/dev/shm/attune-bench-XXXXXX", run[64];
    if (mkdtemp(directory) == NULL) {
        perror("bench_agent");
        return ATT_ESYSTEM;
    }
    snprintf(paths.folder, sizeof paths.folder, "%s/run", directory);
    setenv("ATTUNE_SHM_DIR", directory, 1);
    unsetenv("SLURM_JOB_ID");
    double seconds = getenv("FULL") != NULL ? 10 : 2;
    const char *idle_s = getenv("ATTUNE_BENCH_IDLE_S");
    idle_t idle = {.agents = IDLE_AGENTS, .seconds = idle_s != NULL ? atof(idle_s) : 60};
    row_t rows[ROWS] = {
        {.agents = 1, .ranks = 2, .asked_s = 2.5e5}, {.agents = 1, .ranks = 2, .asked_s = 5e5},
        {.agents = 1, .ranks = 2, .asked_s = 1e6},   {.agents = 1, .ranks = 8, .asked_s = 1e6},
        {.agents = 1, .ranks = 2, .asked_s = 2e6},   {.agents = 2, .ranks = 4, .asked_s = 2e5},
        {.agents = 2, .ranks = 4, .asked_s = 1e6}};
    const char *rate = getenv("ATTUNE_BENCH_RATE"), *stop_s = getenv("ATTUNE_BENCH_STOP_S"),
               *stop = getenv("ATTUNE_BENCH_STOP");
    if (rate != NULL) {
        memset(rows, 0, sizeof rows);
        rows[0] = (row_t){.agents = 2, .ranks = 4, .asked_s = atof(rate)};
        rows[0].stopped_s = stop_s != NULL ? atof(stop_s) : 0;
        rows[0].stopped = stop != NULL && strcmp(stop, "0") == 0 ? 0 : 1;
    }
    int failed = 0, n = 0;
    setenv("ATTUNE_RUN_ID", "idle", 1);
    if (idle.seconds > 0)
        failed = measure_idle(&paths, &idle);
    for (; !failed && n < ROWS && rows[n].agents > 0; n++) {
        snprintf(run, sizeof run, "row%d", n);
        setenv("ATTUNE_RUN_ID", run, 1);
        failed = measure(&paths, &rows[n], seconds);
    }
    if (!failed) {
        print_idle(&idle);
        print_rows(rows, n);
        failed = argc > 3 && write_json(argv[3], &idle, rows, n);
    } else {
        fprintf(stderr, "bench_agent: a part of it failed\n");
    }
    for (int i = 0; i < n; i++) {
        failed |= !rows[i].holds;
        if (!rows[i].holds)
            fprintf(stderr,
                    "bench_agent: row %d: %llu calls are not %llu recorded + %llu unstamped + %llu "
                    "other, or %llu records were left in rings, or %llu drained are not %llu in "
                    "whole calls + %llu unused + %llu incomplete + %llu unsent + %llu waiting\n",
                    i + 1, (unsigned long long)rows[i].calls, (unsigned long long)rows[i].timed,
                    (unsigned long long)rows[i].unstamped, (unsigned long long)rows[i].other,
                    (unsigned long long)rows[i].left, (unsigned long long)rows[i].drained,
                    (unsigned long long)(rows[i].whole * rows[i].ranks),
                    (unsigned long long)rows[i].unused, (unsigned long long)rows[i].incomplete,
                    (unsigned long long)rows[i].unsent, (unsigned long long)rows[i].waiting);
    }
    if (nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "bench_agent: %s is still there\n", directory);
    return failed ? ATT_EFAIL : ATT_OK;
}
