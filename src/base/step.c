#include "base/step.h"

#include "base/clock.h"
#include "base/descriptor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    att_step_role_t role;
} steps[ATT_STEP_COUNT] = {
    [ATT_STEP_PLANNED] = {"planned", ATT_ROLE_LEADER},
    [ATT_STEP_OPENED] = {"opened", ATT_ROLE_LEADER},
    [ATT_STEP_PREPARED] = {"prepared", ATT_ROLE_AGENT},
    [ATT_STEP_VOTED] = {"voted", ATT_ROLE_LEADER},
    [ATT_STEP_COMMITTED] = {"committed", ATT_ROLE_LEADER},
    [ATT_STEP_ABORTED] = {"aborted", ATT_ROLE_LEADER},
    [ATT_STEP_PLAYED] = {"played", ATT_ROLE_LEADER},
    [ATT_STEP_SETTLED] = {"settled", ATT_ROLE_LEADER},
    [ATT_STEP_TOLD] = {"told", ATT_ROLE_LEADER},
    [ATT_STEP_CLEARED] = {"cleared", ATT_ROLE_LEADER},
    [ATT_STEP_ASKED] = {"asked", ATT_ROLE_LEADER},
    [ATT_STEP_TAKEN] = {"taken", ATT_ROLE_LEADER},
    [ATT_STEP_GIVEN] = {"given", ATT_ROLE_LEADER},
    [ATT_STEP_REGISTERED] = {"registered", ATT_ROLE_AGENT},
    [ATT_STEP_JOINED] = {"joined", ATT_ROLE_AGENT},
    [ATT_STEP_REACHED] = {"reached", ATT_ROLE_AGENT},
    [ATT_STEP_RECEIVED] = {"received", ATT_ROLE_AGENT},
    [ATT_STEP_ANSWERED] = {"answered", ATT_ROLE_AGENT},
    [ATT_STEP_RECORDED] = {"recorded", ATT_ROLE_AGENT},
    [ATT_STEP_YIELDED] = {"yielded", ATT_ROLE_AGENT},
    [ATT_STEP_ENTERED] = {"entered", ATT_ROLE_REGISTRY},
    [ATT_STEP_ANNOUNCED] = {"announced", ATT_ROLE_REGISTRY},
    [ATT_STEP_GRANTED] = {"granted", ATT_ROLE_REGISTRY},
    [ATT_STEP_DROPPED] = {"dropped", ATT_ROLE_REGISTRY},
    [ATT_STEP_HELD] = {"held", ATT_ROLE_RANK},
    [ATT_STEP_WAITING] = {"waiting", ATT_ROLE_RANK},
    [ATT_STEP_RESOLVING] = {"resolving", ATT_ROLE_RANK},
    [ATT_STEP_ABSORBED] = {"absorbed", ATT_ROLE_RANK},
    [ATT_STEP_LISTENING] = {"listening", ATT_ROLE_HOME},
    [ATT_STEP_QUERIED] = {"queried", ATT_ROLE_HOME},
    [ATT_STEP_RESOLVED] = {"resolved", ATT_ROLE_HOME},
};

static int file = -1;
static int fault_step = -1;
static _Atomic long fault_countdown;
static int fault_signal;
static const char *fault_target; /* NULL: this process, once */

const char *att_step_name(att_step_t step)
{
    return (unsigned)step < ATT_STEP_COUNT ? steps[step].name : "unknown";
}

att_step_role_t att_step_role(att_step_t step)
{
    return (unsigned)step < ATT_STEP_COUNT ? steps[step].role : ATT_ROLE_COUNT;
}

const char *att_step_role_name(att_step_role_t role)
{
    static const char *const names[] = {"leader", "agent", "registry", "rank", "home"};
    return (unsigned)role < ATT_ROLE_COUNT ? names[role] : "unknown";
}

static int parse_fault(const char *text, att_error_t *error)
{
    char step[16], action[8], node[64] = "";
    long count;
    if (sscanf(text, "%15[a-z]:%ld:%7[a-z]:%63s", step, &count, action, node) >= 3 && count > 0) {
        fault_signal = strcmp(action, "kill") == 0   ? SIGKILL
                       : strcmp(action, "stop") == 0 ? SIGSTOP
                       : strcmp(action, "exit") == 0 ? SIGTERM
                                                     : 0;
        const char *here = getenv("ATTUNE_NODE");
        for (int i = 0; i < ATT_STEP_COUNT && fault_signal != 0; i++)
            if (strcmp(step, steps[i].name) == 0) {
                if (node[0] == '\0' || (here != NULL && strcmp(node, here) == 0))
                    fault_step = i;
                atomic_store(&fault_countdown, count);
                return ATT_OK;
            }
    }
    char names[512] = "";
    for (int i = 0; i < ATT_STEP_COUNT; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", steps[i].name);
    }
    return att_fail(error, ATT_EUSAGE,
                    "ATTUNE_FAULT='%s': expected STEP:N:kill|stop|exit[:NODE] with a step of %s",
                    text, names);
}

int att_step_init(const char *path, att_error_t *error)
{
    const char *fault = getenv("ATTUNE_FAULT");
    if (fault != NULL && fault[0] != '\0') {
        int status = parse_fault(fault, error);
        if (status != ATT_OK)
            return status;
        fault_target = getenv("ATTUNE_FAULT_TARGET");
    }
    if (path == NULL || path[0] == '\0')
        return ATT_OK;
    file = att_descriptor_keep(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    return file >= 0 ? ATT_OK : att_fail_errno(error, "cannot write --debug-steps %s", path);
}

/* Whoever renames the file first does it, so that it happens once however many processes come here;
 * until the file is there nothing happens. */
static void hit_target(void)
{
    char done[1024], text[32] = "";
    snprintf(done, sizeof done, "%s.done", fault_target);
    if (rename(fault_target, done) != 0)
        return;
    int target = open(done, O_RDONLY | O_CLOEXEC);
    if (target < 0 || read(target, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    if (target >= 0)
        close(target);
    long pid = strtol(text, NULL, 10);
    if (pid > 1)
        kill((pid_t)pid, fault_signal);
    else
        raise(fault_signal);
}

static void maybe_fault(att_step_t step)
{
    if ((int)step != fault_step)
        return;
    long left = atomic_fetch_sub(&fault_countdown, 1);
    if (fault_target != NULL && left <= 1)
        hit_target();
    else if (left == 1)
        raise(fault_signal);
}

void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call)
{
    if (file >= 0) {
        char line[160];
        int n = snprintf(line, sizeof line, "%.6f step=%s task=%u txn=%u call=%" PRIu64 " pid=%d\n",
                         (double)att_clock_ns() * 1e-9, att_step_name(step), task, txn, call,
                         (int)getpid());
        if (write(file, line, (size_t)n) != n) {
            close(file);
            file = -1;
        }
    }
    maybe_fault(step);
}

void att_step_close(void)
{
    if (file >= 0)
        close(file);
    file = -1;
}
