#include "cli/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void att_job_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGQUIT);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
}

static int cannot_run(att_job_t *job, const char *program, int reason, att_error_t *error)
{
    *job = (att_job_t){.exit_status = reason == ENOENT ? 127 : 126};
    return att_fail(error, reason == ENOENT ? ATT_ENOENT : ATT_EPERMISSION,
                    "%.200s cannot be run: %s", program, strerror(reason));
}

static int why_not(const char *file)
{
    struct stat found;
    if (stat(file, &found) != 0)
        return errno;
    if (!S_ISREG(found.st_mode))
        return EACCES;
    return access(file, X_OK) == 0 ? 0 : errno;
}

/* As execvp(3) looks: the first that can be run; one that may not be is told rather than none. */
static int why_not_in_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    int reason = ENOENT;
    for (const char *at = path != NULL ? path : "/bin:/usr/bin"; at != NULL;) {
        int length = (int)strcspn(at, ":");
        int size =
            snprintf(file, sizeof file, "%.*s%s%s", length, at, length > 0 ? "/" : "", program);
        int here = size < PATH_MAX ? why_not(file) : ENOENT;
        if (here == 0)
            return 0;
        if (here == EACCES)
            reason = EACCES;
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return reason;
}

int att_job_check(att_job_t *job, char **argv, att_error_t *error)
{
    const char *program = argv[0];
    int reason = strchr(program, '/') != NULL ? why_not(program)
                 : program[0] != '\0'         ? why_not_in_path(program)
                                              : ENOENT;
    return reason == 0 ? ATT_OK : cannot_run(job, program, reason, error);
}

int att_job_start(att_job_t *job, char **argv, const sigset_t *mask, att_error_t *error)
{
    int fds[2], reason = 0;
    *job = (att_job_t){.exit_status = -1};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return att_fail_errno(error, "pipe");
    pid_t pid = fork();
    if (pid < 0) {
        close(fds[0]);
        close(fds[1]);
        return att_fail_errno(error, "fork");
    }
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(argv[0], argv);
        reason = errno;
        _exit(write(fds[1], &reason, sizeof reason) == sizeof reason ? 127 : 126);
    }
    close(fds[1]);
    ssize_t n;
    do
        n = read(fds[0], &reason, sizeof reason);
    while (n < 0 && errno == EINTR);
    close(fds[0]);
    job->pid = pid;
    if (n != sizeof reason)
        return ATT_OK;
    waitpid(pid, NULL, 0);
    return cannot_run(job, argv[0], reason, error);
}

void att_job_forward(const att_job_t *job, const siginfo_t *info)
{
    bool from_terminal = info->si_code == SI_KERNEL;
    if (job->pid != 0 && !from_terminal)
        kill(job->pid, info->si_signo);
}

bool att_job_running(att_job_t *job)
{
    int status;
    if (job->pid == 0 || waitpid(job->pid, &status, WNOHANG) != job->pid)
        return job->pid != 0;
    job->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    job->pid = 0;
    return false;
}
