/* What a command and its children have mapped. */
#include "cli/doctor.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TREE_MAX 4096
#define TICK_NS  50000000u
/* Processes of a job load one after another: stay this long after the first. */
#define SETTLE_NS 1000000000u

typedef struct tree {
    pid_t pids[TREE_MAX];
    int count;
} tree_t;

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')'); /* the name may hold anything */
    int parent = -1;
    return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

/* `top` and what descends from it. */
static void gather(tree_t *tree, pid_t top)
{
    tree->pids[0] = top;
    tree->count = 1;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return;
    static pid_t all[65536], parents[65536];
    int count = 0;
    for (struct dirent *e; (e = readdir(proc)) != NULL && count < 65536;) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid > 0) {
            all[count] = pid;
            parents[count++] = parent_of(pid);
        }
    }
    closedir(proc);
    for (int i = 0; i < tree->count; i++)
        for (int j = 0; j < count && tree->count < TREE_MAX; j++)
            if (parents[j] == tree->pids[i])
                tree->pids[tree->count++] = all[j];
}

/* libnccl.so.2 and copies under other names, not NCCL's plugins. */
static bool is_nccl(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    return strncmp(name, "libnccl", 7) == 0 && strstr(name, ".so") != NULL &&
           strncmp(name, "libnccl-", 8) != 0;
}

/* NCCL leaves its version in every image it is linked into (src/init.cc). */
static bool holds_nccl(const char *path, int *version)
{
    static const char mark[] = "NCCL version 2.";
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        const char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            const char *at = memmem(bytes, size, mark, sizeof mark - 1);
            unsigned minor, patch;
            char text[24] = "";
            if (at != NULL) {
                size_t left = size - (size_t)(at - bytes);
                memcpy(text, at + sizeof mark - 1,
                       left - (sizeof mark - 1) < sizeof text - 1 ? left - (sizeof mark - 1)
                                                                  : sizeof text - 1);
            }
            found = sscanf(text, "%u.%u", &minor, &patch) == 2;
            if (found)
                *version = (int)(20000 + minor * 100 + patch);
            munmap((void *)bytes, size);
        }
    }
    close(fd);
    return found;
}

/* Executable files that a process has mapped, each once. Returns how many NCCLs. */
static int look_at(att_doctor_t *d, pid_t pid, bool also_static)
{
    char path[64], line[PATH_MAX + 128], last[PATH_MAX] = "", first[PATH_MAX] = "";
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    int found = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char rights[5], *file = strchr(line, '/');
        if (file == NULL || sscanf(line, "%*s %4s", rights) != 1 || rights[2] != 'x')
            continue;
        file[strcspn(file, "\n")] = '\0';
        if (strcmp(file, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", file);
        int version = 0;
        if (is_nccl(file)) {
            att_doctor_copy(d, file, "mapped");
            d->mixed |= found > 0 && strcmp(first, file) != 0;
            snprintf(first, sizeof first, "%s", file);
            found++;
        } else if (also_static && holds_nccl(file, &version)) {
            int i = att_doctor_copy(d, file, "static");
            if (i >= 0)
                d->copies[i].version = version;
            found++;
        }
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void end(const tree_t *tree, att_job_t *job)
{
    for (int i = 0; i < tree->count; i++)
        kill(tree->pids[i], SIGTERM);
    uint64_t until = att_clock_ns() + 3000000000u;
    bool left = true;
    while (left && att_clock_ns() < until) {
        left = att_job_running(job);
        for (int i = 1; i < tree->count; i++)
            left |= kill(tree->pids[i], 0) == 0;
        if (left)
            att_clock_sleep_ns(TICK_NS);
    }
    for (int i = 0; i < tree->count && left; i++)
        kill(tree->pids[i], SIGKILL);
    while (att_job_running(job))
        att_clock_sleep_ns(TICK_NS);
}

void att_doctor_watch(att_doctor_t *d)
{
    att_job_t job = {0};
    att_error_t error = {""};
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    fflush(stdout);
    int own = dup(1);
    dup2(2, 1); /* standard output is the report's */
    int rc = att_job_start(&job, d->command, &mask, &error);
    dup2(own, 1);
    close(own);
    if (rc != ATT_OK) {
        att_doctor_add(d, "command", ATT_CHECK_FAIL, "name a command that runs", "%s", error.text);
        return;
    }
    static tree_t tree;
    uint64_t started = att_clock_ns(), until = started + (uint64_t)(d->seconds * 1e9);
    bool found = false;
    while (att_job_running(&job) && att_clock_ns() < until) {
        gather(&tree, job.pid);
        for (int i = 0; i < tree.count; i++)
            if (look_at(d, tree.pids[i], false) > 0 && !found) {
                found = true;
                if (att_clock_ns() + SETTLE_NS < until)
                    until = att_clock_ns() + SETTLE_NS;
            }
        att_clock_sleep_ns(TICK_NS);
    }
    double seconds = (double)(att_clock_ns() - started) * 1e-9;
    bool runs = att_job_running(&job);
    for (int i = 0; runs && !found && i < tree.count; i++)
        found = look_at(d, tree.pids[i], true) > 0;
    if (found)
        att_doctor_add(d, "command", ATT_CHECK_PASS, NULL, "loaded NCCL within %.1f s", seconds);
    else if (runs)
        att_doctor_add(d, "command", ATT_CHECK_WARN, "--seconds gives it more time",
                       "has loaded no NCCL after %.1f s", seconds);
    else
        att_doctor_add(d, "command", ATT_CHECK_WARN,
                       "give the command line that trains, as it is started",
                       "ended with status %d after %.1f s and was not seen with an NCCL",
                       job.exit_status, seconds);
    if (runs) {
        gather(&tree, job.pid);
        end(&tree, &job);
    }
}
