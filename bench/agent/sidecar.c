#include "sidecar.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = BENCH_NODES * 12 + 8 };

/* mpirun -np 1 -x ATTUNE_NODE=n0 attuned ... : -np 1 -x ATTUNE_NODE=n1 attuned ... */
static void execute(const char *attuned, uint32_t agents, const char *run_dir)
{
    char *words[WORDS];
    static char nodes[BENCH_NODES][32];
    int n = 0;
    if (agents > 1)
        words[n++] = (char *)"mpirun";
    for (uint32_t a = 0; a < agents; a++) {
        snprintf(nodes[a], sizeof nodes[a], "ATTUNE_NODE=n%u", a);
        if (agents == 1) {
            putenv(nodes[a]);
        } else {
            if (a > 0)
                words[n++] = (char *)":";
            words[n++] = (char *)"-np";
            words[n++] = (char *)"1";
            words[n++] = (char *)"-x";
            words[n++] = nodes[a];
        }
        words[n++] = (char *)attuned;
        words[n++] = (char *)"--observe";
        words[n++] = (char *)"--run-dir";
        words[n++] = (char *)run_dir;
    }
    words[n] = NULL;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(words[0], words);
    perror(words[0]);
    _exit(127);
}

int bench_sidecar_start(bench_sidecar_t *s, const char *attuned, uint32_t agents,
                        const char *run_dir)
{
    memset(s, 0, sizeof *s);
    s->agents = agents;
    s->pid = fork();
    if (s->pid == 0)
        execute(attuned, agents, run_dir);
    att_error_t error = {""};
    for (uint32_t a = 0; a < agents; a++) {
        char node[16];
        snprintf(node, sizeof node, "n%u", a);
        att_segment_name_t name = {.node = node};
        if (att_segment_open(&name, ATT_SEGMENT_HOOK, &s->segments[a], &error) != ATT_OK) {
            fprintf(stderr, "bench_agent: %s\n", error.text);
            return -1;
        }
    }
    for (uint32_t a = 0; a < agents; a++)
        for (int i = 0; atomic_load(&bench_sidecar_memory(s, a)->header.agent_tuning) == 0; i++) {
            if (i > 30000 || waitpid(s->pid, NULL, WNOHANG) != 0) {
                fprintf(stderr, "bench_agent: the sidecar did not start\n");
                return -1;
            }
            att_clock_sleep_ns(1000000);
        }
    return 0;
}

att_segment_memory_t *bench_sidecar_memory(const bench_sidecar_t *s, uint32_t node)
{
    return att_segment_memory(s->segments[node]);
}

pid_t bench_sidecar_agent(const bench_sidecar_t *s, uint32_t node)
{
    return (pid_t)atomic_load(&bench_sidecar_memory(s, node)->header.agent_pid);
}

int bench_sidecar_stop(bench_sidecar_t *s)
{
    int status = 1;
    if (s->pid <= 0)
        return -1;
    kill(s->pid, SIGTERM);
    pid_t got = waitpid(s->pid, &status, 0);
    s->pid = 0;
    /* mpirun reports that it was told to end its processes. */
    return got > 0 && (s->agents > 1 || status == 0) ? 0 : -1;
}

void bench_sidecar_free(bench_sidecar_t *s)
{
    if (s->pid > 0)
        bench_sidecar_stop(s);
    for (uint32_t a = 0; a < s->agents; a++)
        att_segment_close(s->segments[a]);
    memset(s, 0, sizeof *s);
}

int bench_use_of(pid_t pid, bench_use_t *use)
{
    char path[64], text[4096];
    memset(use, 0, sizeof *use);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    unsigned long user = 0, kernel = 0;
    const char *after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                &user, &kernel) != 2)
        return -1;
    use->cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (fgets(text, sizeof text, file) != NULL) {
        unsigned long long value;
        if (sscanf(text, "voluntary_ctxt_switches: %llu", &value) == 1 ||
            sscanf(text, "nonvoluntary_ctxt_switches: %llu", &value) == 1)
            use->switches += value;
        else if (sscanf(text, "VmRSS: %llu", &value) == 1)
            use->resident_kib = value;
    }
    fclose(file);
    return 0;
}
