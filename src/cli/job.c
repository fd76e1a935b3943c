#include "cli/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
    job->pid = 0;
    job->exit_status = reason == ENOENT ? 127 : 126;
    return att_fail(error, reason == ENOENT ? ATT_ENOENT : ATT_EPERMISSION,
                    "%.200s cannot be run: %s", argv[0], strerror(reason));
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
