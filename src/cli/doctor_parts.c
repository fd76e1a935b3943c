/* attune's own parts: switches, plugin variables, segment, sidecar, clock, namespaces. */
#include "cli/doctor.h"

#include "base/segment.h"
#include "base/variables.h"
#include "cli/job_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNKNOWN_ROOM 800 /* of the variables that are not known; the rest is cut */

static void check_switches(att_doctor_t *d)
{
    if (att_variable_is_on("ATTUNE_DISABLE"))
        att_doctor_add(d, "switch", ATT_CHECK_FAIL, "unset ATTUNE_DISABLE",
                       "ATTUNE_DISABLE=%.40s: the hook does nothing", getenv("ATTUNE_DISABLE"));
    else
        att_doctor_add(d, "switch", ATT_CHECK_PASS, NULL, "ATTUNE_DISABLE is not set");
    const char *run = getenv("ATTUNE_RUN_ID"), *job = getenv("SLURM_JOB_ID");
    if (run != NULL || job != NULL)
        att_doctor_add(d, "run-id", ATT_CHECK_PASS, NULL, "run %s", run != NULL ? run : job);
    else
        att_doctor_add(d, "run-id", ATT_CHECK_SKIP, NULL,
                       "neither ATTUNE_RUN_ID nor SLURM_JOB_ID is set; attune run sets one");
}

static void add_name(void *context, const char *name, const char *hint)
{
    char *list = context;
    size_t used = strlen(list);
    snprintf(list + used, UNKNOWN_ROOM - used, "%s%s%s", used > 0 ? ", " : "", name, hint);
}

static void check_names(att_doctor_t *d)
{
    char list[UNKNOWN_ROOM] = "";
    if (att_variables_unknown((const char *const *)environ, add_name, list) == 0)
        att_doctor_add(d, "variables", ATT_CHECK_PASS, NULL,
                       "every ATTUNE_ variable that is set is one of attune's");
    else
        att_doctor_add(d, "variables", ATT_CHECK_WARN,
                       "correct or unset them: attune info lists the variables of the options",
                       "no variable of attune, and without effect: %s", list);
}

static void check_variables(att_doctor_t *d)
{
    const char *tuner = att_job_environment_other("NCCL_TUNER_PLUGIN");
    const char *profiler = att_job_environment_other("NCCL_PROFILER_PLUGIN");
    if (tuner == NULL && profiler == NULL)
        att_doctor_add(d, "plugin-variables", ATT_CHECK_PASS, NULL,
                       "no other plugin is named to NCCL");
    else
        att_doctor_add(d, "plugin-variables", ATT_CHECK_PASS, NULL,
                       "attune run chains%s%.80s%s%.80s", tuner != NULL ? " tuner " : "",
                       tuner != NULL ? tuner : "", profiler != NULL ? " profiler " : "",
                       profiler != NULL ? profiler : "");
}

static void check_segment(att_doctor_t *d)
{
    const char *chosen = getenv("ATTUNE_SHM_DIR");
    const char *folder = chosen != NULL && chosen[0] != '\0' ? chosen : "/dev/shm";
    double need = (double)sizeof(att_segment_memory_t) / (1 << 20);
    struct statvfs space;
    if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &space) != 0) {
        att_doctor_add(d, "segment", ATT_CHECK_FAIL,
                       "ATTUNE_SHM_DIR names a folder in memory that all processes of the node "
                       "share, containers included",
                       "%s: %s", folder, strerror(errno));
        return;
    }
    double left = (double)space.f_bavail * (double)space.f_frsize / (1 << 20);
    if (left < need)
        att_doctor_add(d, "segment", ATT_CHECK_FAIL,
                       "make room there, or set ATTUNE_SHM_DIR (docker: --shm-size)",
                       "%s has %.0f MiB left, attune needs %.0f MiB", folder, left, need);
    else
        att_doctor_add(d, "segment", ATT_CHECK_PASS, NULL, "%s: needs %.0f MiB, %.0f MiB are left",
                       folder, need, left);
}

/* Shared memory crosses every namespace but the mount one, where the folder may be another. */
static void check_namespaces(att_doctor_t *d)
{
    static const char *const names[] = {"mnt", "ipc", "pid", "net"};
    char other[64] = "", list[64] = "";
    bool known = false;
    for (int i = 0; i < 4; i++) {
        char path[64], one[64], own[64];
        snprintf(path, sizeof path, "/proc/1/ns/%s", names[i]);
        ssize_t a = readlink(path, one, sizeof one - 1);
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        ssize_t b = readlink(path, own, sizeof own - 1);
        if (a <= 0 || b <= 0)
            continue;
        known = true;
        bool same = a == b && memcmp(one, own, (size_t)a) == 0;
        snprintf(same ? list + strlen(list) : other + strlen(other), 8, " %s", names[i]);
    }
    if (!known)
        att_doctor_add(d, "namespaces", ATT_CHECK_SKIP, NULL,
                       "those of process 1 cannot be seen from here");
    else if (other[0] != '\0')
        att_doctor_add(d, "namespaces", ATT_CHECK_WARN,
                       "sidecar and job must see the same ATTUNE_SHM_DIR: mount it into both",
                       "others than process 1:%s", other);
    else
        att_doctor_add(d, "namespaces", ATT_CHECK_PASS, NULL, "those of process 1:%s", list);
}

static void check_sidecar(att_doctor_t *d)
{
    if (d->places.sidecar[0] == '\0') {
        att_doctor_add(d, "sidecar", ATT_CHECK_FAIL,
                       "build attune with MPI, or install the package with attuned",
                       "attuned is not there; looked for %s", d->places.sidecar_searched);
        return;
    }
    char line[256] = "";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execl(d->places.sidecar, d->places.sidecar, "--version", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (child < 0 || status != 0)
        att_doctor_add(d, "sidecar", ATT_CHECK_FAIL,
                       "load the MPI module that attune was built with", "%s does not run: %s",
                       d->places.sidecar, line);
    else
        att_doctor_add(d, "sidecar", ATT_CHECK_PASS, NULL, "%s: %s", d->places.sidecar, line);
}

static void check_clock(att_doctor_t *d)
{
    char line[64];
    if (!att_doctor_line(d, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                         line, sizeof line)) {
        att_doctor_add(d, "clock", ATT_CHECK_SKIP, NULL,
                       "the kernel does not tell its clock source");
        return;
    }
    static const char *const quick[] = {"tsc", "arch_sys_counter", "kvm-clock", "timebase"};
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (strcmp(line, quick[i]) == 0) {
            att_doctor_add(d, "clock", ATT_CHECK_PASS, NULL, "clock source %s", line);
            return;
        }
    att_doctor_add(d, "clock", ATT_CHECK_WARN,
                   "a slow clock source costs every time stamp a system call: boot with "
                   "clocksource=tsc where the processor's is stable",
                   "clock source %s", line);
}

void att_doctor_parts(att_doctor_t *d)
{
    check_switches(d);
    check_names(d);
    check_variables(d);
    check_segment(d);
    check_namespaces(d);
    check_sidecar(d);
    check_clock(d);
}
