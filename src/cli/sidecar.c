#include "cli/sidecar.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS 64

/* argv of attuned; the strings are the caller's to free. -ATT_ENOMEM. */
static int make_arguments(const char *program, const att_config_t *config, int ready_fd,
                          char *argv[ARGUMENTS], att_error_t *error)
{
    char value[4 * PATH_MAX], flag[4 * PATH_MAX + 64];
    size_t n = 0;
    argv[n++] = strdup(program);
    for (size_t i = 0; i < att_option_row_count && n < ARGUMENTS - 3; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        if ((row->programs & ATT_FOR_AGENT) == 0)
            continue;
        att_config_text(config, row, value, sizeof value);
        snprintf(flag, sizeof flag, "--%s=%s", row->flag, value);
        argv[n++] = strdup(flag);
    }
    snprintf(value, sizeof value, "%d", ready_fd);
    argv[n++] = strdup("--ready-fd");
    argv[n++] = strdup(value);
    for (size_t i = 0; i < n; i++)
        if (argv[i] == NULL)
            return att_fail(error, ATT_ENOMEM, "out of memory");
    return ATT_OK;
}

/* In the child. Errors go to ready_fd, as attuned's own would. */
static void become(char **argv, int ready_fd, const char *log_file, const sigset_t *mask,
                   pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);
    int log = open(log_file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        dprintf(ready_fd, "%s: %s\n", log_file, strerror(errno));
        _exit(125);
    }
    if (null > 2)
        close(null);
    if (log > 2)
        close(log);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(125);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    fcntl(ready_fd, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(argv[0], argv);
    dprintf(ready_fd, "%s: %s\n", argv[0], strerror(errno));
    _exit(125);
}

int att_sidecar_start(att_sidecar_t *sidecar, const char *program, const att_config_t *config,
                      const char *log_file, const sigset_t *mask, att_error_t *error)
{
    int fds[2];
    char *argv[ARGUMENTS] = {NULL};
    *sidecar = (att_sidecar_t){.ready_fd = -1};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return att_fail_errno(error, "pipe");
    int rc = make_arguments(program, config, fds[1], argv, error);
    if (rc != ATT_OK)
        goto close_pipe;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(argv, fds[1], log_file, mask, parent);
    if (pid < 0) {
        rc = att_fail_errno(error, "fork");
        goto close_pipe;
    }
    sidecar->pid = pid;
    sidecar->ready_fd = fds[0];
    fds[0] = -1;
close_pipe:
    close(fds[1]);
    if (fds[0] >= 0)
        close(fds[0]);
    for (size_t i = 0; i < ARGUMENTS; i++)
        free(argv[i]);
    return rc;
}

static void describe_end(att_sidecar_t *sidecar, int status)
{
    if (WIFSIGNALED(status))
        snprintf(sidecar->end, sizeof sidecar->end, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(sidecar->end, sizeof sidecar->end, "exit status %d", WEXITSTATUS(status));
    sidecar->pid = 0;
}

bool att_sidecar_running(att_sidecar_t *sidecar)
{
    int status;
    if (sidecar->pid == 0)
        return false;
    pid_t pid = waitpid(sidecar->pid, &status, WNOHANG);
    if (pid == sidecar->pid)
        describe_end(sidecar, status);
    return sidecar->pid != 0;
}

static void close_ready(att_sidecar_t *sidecar)
{
    if (sidecar->ready_fd >= 0)
        close(sidecar->ready_fd);
    sidecar->ready_fd = -1;
}

/* What the sidecar wrote: one byte is "ready", more is the line that says why not (with a mark before
 * it where the user asked for what cannot be had, or named a file that is malformed: -ATT_EUSAGE),
 * nothing more to come means that it ended. 1: nothing yet. */
static int read_answer(att_sidecar_t *sidecar, att_error_t *error)
{
    char text[400];
    struct pollfd fd = {.fd = sidecar->ready_fd, .events = POLLIN};
    if (poll(&fd, 1, 20) <= 0)
        return 1;
    ssize_t n = read(sidecar->ready_fd, text, sizeof text - 1);
    if (n < 0)
        return errno == EINTR ? 1 : att_fail_errno(error, "the sidecar's answer");
    if (n == 1)
        return ATT_OK;
    if (n == 0)
        return att_fail(error, ATT_EFAIL, "it ended before it was ready");
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (text[0] == '!')
        return att_fail(error, ATT_EUSAGE, "%s", text + 1);
    return att_fail(error, ATT_EFAIL, "%s", text);
}

int att_sidecar_wait_ready(att_sidecar_t *sidecar, const sigset_t *wake, int limit_ms,
                           att_error_t *error)
{
    uint64_t end_ns = att_clock_ns() + (uint64_t)limit_ms * 1000000u;
    sigset_t pending;
    int rc = 1;
    while (rc == 1) {
        rc = read_answer(sidecar, error);
        if (rc == 1 && !att_sidecar_running(sidecar)) {
            rc = read_answer(sidecar, error); /* it may have written between the two */
            if (rc == 1)
                rc = att_fail(error, ATT_EFAIL, "it ended before it was ready (%s)", sidecar->end);
        }
        sigpending(&pending);
        for (int s = 1; rc == 1 && s < NSIG; s++)
            if (sigismember(wake, s) == 1 && sigismember(&pending, s) == 1)
                rc = -ATT_EBUSY;
        if (rc == 1 && att_clock_ns() > end_ns)
            rc = att_fail(error, ATT_ETIMEOUT, "it was not ready within %d s", limit_ms / 1000);
    }
    close_ready(sidecar);
    return rc;
}

void att_sidecar_stop(att_sidecar_t *sidecar, int limit_ms)
{
    close_ready(sidecar);
    if (!att_sidecar_running(sidecar))
        return;
    pid_t session = sidecar->pid;
    kill(sidecar->pid, SIGTERM);
    kill(sidecar->pid, SIGCONT); /* one that was paused ends well too */
    uint64_t end_ns = att_clock_ns() + (uint64_t)limit_ms * 1000000u;
    while (att_sidecar_running(sidecar) && att_clock_ns() < end_ns)
        att_clock_sleep_ns(2000000);
    if (sidecar->pid != 0) {
        int status;
        kill(sidecar->pid, SIGKILL);
        if (waitpid(sidecar->pid, &status, 0) == sidecar->pid)
            describe_end(sidecar, status);
    }
    kill(-session, SIGKILL); /* what it may have left behind in its session */
}
