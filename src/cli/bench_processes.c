#include "cli/bench_processes.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "ATTUNE_BENCH_PROCESS"
/* For processes that have seen the failure to end by themselves. */
#define GRACE_NS 8000000000ull

struct command_line {
    char *bytes;
    char **argv;
};

bool att_bench_process_self(int *process, int *world, int *setting)
{
    const char *text = getenv(VARIABLE);
    return text != NULL && sscanf(text, "%d:%d:%d", process, world, setting) == 3;
}

int att_bench_process_bind(int process, int processes, att_error_t *error)
{
    cpu_set_t allowed, mine;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return att_fail_errno(error, "--bind: the processors of this process are not known");
    int share = CPU_COUNT(&allowed) / processes;
    if (share == 0)
        return att_fail(error, ATT_EUNSUPPORTED, "--bind: %d processors for %d processes",
                        CPU_COUNT(&allowed), processes);
    CPU_ZERO(&mine);
    for (int cpu = 0, at = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && at++ / share == process)
            CPU_SET(cpu, &mine);
    return sched_setaffinity(0, sizeof mine, &mine) == 0
               ? ATT_OK
               : att_fail_errno(error, "--bind: process %d cannot be bound", process);
}

/* The words of this process's own command line: the words before "bench" included. */
static int read_command_line(struct command_line *line, att_error_t *error)
{
    size_t size = 0, capacity = 1u << 21; /* the kernel's limit on argument bytes */
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    line->bytes = malloc(capacity + 1);
    if (file < 0 || line->bytes == NULL) {
        if (file >= 0)
            close(file);
        free(line->bytes);
        return att_fail_errno(error, "/proc/self/cmdline");
    }
    ssize_t n;
    while ((n = read(file, line->bytes + size, capacity - size)) > 0)
        size += (size_t)n;
    close(file);
    line->bytes[size] = '\0';
    size_t words = 0;
    for (size_t i = 0; i < size; i++)
        words += line->bytes[i] == '\0';
    line->argv = calloc(words + 1, sizeof *line->argv);
    if (line->argv == NULL) {
        free(line->bytes);
        return att_fail(error, ATT_ENOMEM, "no memory for the command line");
    }
    char *at = line->bytes;
    for (size_t i = 0; i < words; i++) {
        line->argv[i] = at;
        at += strlen(at) + 1;
    }
    return ATT_OK;
}

/* Between fork and exec: async-signal-safe calls only. */
static void become(char **argv, char **environment, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    execve("/proc/self/exe", argv, environment);
    _exit(127);
}

static char **make_environment(const char *own)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **made = calloc(count + 2, sizeof *made);
    if (made == NULL)
        return NULL;
    memcpy(made, environ, count * sizeof *made);
    made[count] = (char *)own;
    return made;
}

static int start_all(int count, struct att_world *world, struct att_bench_setting *setting,
                     pid_t *pids, att_error_t *error)
{
    struct command_line line;
    int rc = read_command_line(&line, error);
    if (rc != 0)
        return rc;
    pid_t parent = getpid();
    for (int i = 0; rc == 0 && i < count; i++) {
        char own[64];
        snprintf(own, sizeof own, VARIABLE "=%d:%d:%d", i, att_world_descriptor(world),
                 setting != NULL ? att_bench_setting_descriptor(setting) : -1);
        char **environment = make_environment(own);
        if (environment == NULL) {
            rc = att_fail(error, ATT_ENOMEM, "no memory for the environment of process %d", i);
            break;
        }
        pids[i] = fork();
        if (pids[i] == 0)
            become(line.argv, environment, parent);
        free(environment);
        if (pids[i] < 0) {
            pids[i] = 0;
            rc = att_fail_errno(error, "cannot start process %d", i);
        }
    }
    free(line.argv);
    free(line.bytes);
    return rc;
}

/* Take the end of process i into account. */
static void note_end(int i, int wait_status, struct att_world *world, int *status)
{
    char text[128];
    if (WIFSIGNALED(wait_status)) {
        snprintf(text, sizeof text, "process %d was killed by signal %d (%s)", i,
                 WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
        att_world_fail(world, -ATT_EFAIL, text);
        if (*status == 0)
            *status = 128 + WTERMSIG(wait_status);
        return;
    }
    int code = WEXITSTATUS(wait_status);
    /* Wrong results are reported, not failed: everybody reaches the end. */
    if (code > 1) {
        snprintf(text, sizeof text, "process %d ended with status %d", i, code);
        att_world_fail(world, -ATT_EFAIL, text);
    }
    if (*status == 0 && code != 0)
        *status = code;
}

static void kill_all(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

static void wait_all(pid_t *pids, int count, struct att_world *world, int *status)
{
    uint64_t failed_ns = 0;
    bool killed = false;
    int alive = 0;
    for (int i = 0; i < count; i++)
        alive += pids[i] > 0;
    while (alive > 0) {
        int wait_status;
        bool failed = att_world_failure(world, NULL) != 0;
        if (failed && failed_ns == 0)
            failed_ns = att_clock_ns();
        if (failed && !killed && att_clock_ns() - failed_ns > GRACE_NS) {
            kill_all(pids, count);
            killed = true;
        }
        for (int i = 0; i < count; i++) {
            if (pids[i] <= 0 || waitpid(pids[i], &wait_status, WNOHANG) != pids[i])
                continue;
            pids[i] = 0;
            alive--;
            if (!killed)
                note_end(i, wait_status, world, status);
        }
        att_clock_sleep_ns(10000000);
    }
}

int att_bench_processes_run(int count, struct att_world *world, struct att_bench_setting *setting,
                            int *status, att_error_t *error)
{
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (pids == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %d processes", count);
    *status = 0;
    int rc = start_all(count, world, setting, pids, error);
    if (rc != 0) {
        att_world_fail(world, rc, error != NULL ? error->text : "cannot start a process");
        kill_all(pids, count);
    }
    wait_all(pids, count, world, status);
    free(pids);
    return rc;
}
