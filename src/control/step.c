#include "control/step.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[ATT_STEP_COUNT] = {"planned",   "opened",  "prepared", "voted",
                                                  "committed", "aborted", "played",   "settled"};
static int file = -1;
static int fault_step = -1;
static long fault_countdown;
static int fault_signal;

const char *att_step_name(att_step_t step)
{
    return step < ATT_STEP_COUNT ? names[step] : "unknown";
}

static int parse_fault(const char *text, att_error_t *error)
{
    char step[16], action[8];
    long count;
    if (sscanf(text, "%15[a-z]:%ld:%7[a-z]", step, &count, action) == 3 && count > 0) {
        fault_signal = strcmp(action, "kill") == 0   ? SIGKILL
                       : strcmp(action, "stop") == 0 ? SIGSTOP
                       : strcmp(action, "exit") == 0 ? SIGTERM
                                                     : 0;
        for (int i = 0; i < ATT_STEP_COUNT && fault_signal != 0; i++)
            if (strcmp(step, names[i]) == 0) {
                fault_step = i;
                fault_countdown = count;
                return ATT_OK;
            }
    }
    return att_fail(error, ATT_EUSAGE,
                    "ATTUNE_FAULT='%s': expected STEP:N:kill|stop|exit with a step of planned, "
                    "opened, prepared, voted, committed, aborted, played, settled",
                    text);
}

int att_step_init(const char *path, att_error_t *error)
{
    const char *fault = getenv("ATTUNE_FAULT");
    if (fault != NULL && fault[0] != '\0') {
        int status = parse_fault(fault, error);
        if (status != ATT_OK)
            return status;
    }
    if (path == NULL || path[0] == '\0')
        return ATT_OK;
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return file >= 0 ? ATT_OK : att_fail_errno(error, "cannot write --debug-steps %s", path);
}

void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call)
{
    if (file >= 0) {
        char line[128];
        int n = snprintf(line, sizeof line, "%.6f step=%s task=%u txn=%u call=%" PRIu64 "\n",
                         (double)att_clock_ns() * 1e-9, names[step], task, txn, call);
        if (write(file, line, (size_t)n) != n) {
            close(file);
            file = -1;
        }
    }
    if ((int)step == fault_step && --fault_countdown == 0)
        raise(fault_signal);
}

void att_step_close(void)
{
    if (file >= 0)
        close(file);
    file = -1;
}
