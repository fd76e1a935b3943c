#include "search/probe.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noreturn)) static void attempt_here(att_probe_fn attempt, void *context,
                                                   pid_t parent, int done)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    attempt(context);
    (void)!write(done, "", 1);
    _exit(0);
}

/* 1: the attempt returned, 0: it ended, -1: the time is up. */
static int await(int done, double deadline_s)
{
    uint64_t end_ns = att_clock_ns() + (uint64_t)(deadline_s * 1e9);
    for (;;) {
        uint64_t now_ns = att_clock_ns();
        uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / 1000000 + 1 : 0;
        struct pollfd wait = {.fd = done, .events = POLLIN};
        char byte;
        if (left_ms == 0)
            return -1;
        if (poll(&wait, 1, left_ms < 1000 ? (int)left_ms : 1000) > 0)
            return read(done, &byte, 1) == 1;
    }
}

int att_probe(att_probe_fn attempt, void *context, double deadline_s, const char *what,
              att_error_t *error)
{
    int pipes[2], status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return att_fail_errno(error, "cannot try a strategy first: no pipe");
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        attempt_here(attempt, context, parent, pipes[1]);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return att_fail_errno(error, "cannot try a strategy first: no process");
    }
    int outcome = await(pipes[0], deadline_s);
    close(pipes[0]);
    if (outcome != 0) /* what it does at its end is its own affair */
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (outcome > 0)
        return ATT_OK;
    if (outcome < 0)
        return att_fail(error, ATT_EPLUGIN, "%.300s took longer than %g s", what, deadline_s);
    if (WIFSIGNALED(status))
        return att_fail(error, ATT_EPLUGIN, "%.300s crashed (signal %d, %s)", what,
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    return att_fail(error, ATT_EPLUGIN, "%.300s ended its process (exit status %d)", what,
                    WEXITSTATUS(status));
}
