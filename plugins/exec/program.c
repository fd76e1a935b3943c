#include "program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 500 /* between the end of its input and the kill */

struct program {
    pid_t pid;
    int fd; /* both ways: a socket, so that a dead reader is an error and no signal */
    double timeout_s;
    size_t length, taken; /* of the buffer: filled, and of that given out */
    char buffer[PROGRAM_LINE + 1];
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static _Noreturn void become(const char *command, int fd, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
        signal(SIGPIPE, SIG_DFL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    _exit(127);
}

struct program *program_start(const char *command, double timeout_s, char *why, size_t size)
{
    int ends[2];
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(why, size, "no memory or socket for a program");
        free(p);
        return NULL;
    }
    pid_t parent = getpid();
    p->timeout_s = timeout_s;
    p->fd = ends[0];
    p->pid = fork();
    if (p->pid == 0)
        become(command, ends[1], parent);
    close(ends[1]);
    if (p->pid > 0)
        return p;
    snprintf(why, size, "cannot start a program: %s", strerror(errno));
    close(p->fd);
    free(p);
    return NULL;
}

/* True when it has ended by itself within the grace. */
static int ended(const struct program *p, int *status)
{
    for (int ms = 0; ms < GRACE_MS; ms += 10) {
        if (waitpid(p->pid, status, WNOHANG) == p->pid)
            return 1;
        (void)poll(NULL, 0, 10);
    }
    return 0;
}

void program_close(struct program *p)
{
    if (p == NULL)
        return;
    int status;
    shutdown(p->fd, SHUT_WR);
    int gone = p->pid < 0 || ended(p, &status);
    if (p->pid > 0)
        kill(-p->pid, SIGKILL); /* and what it left behind */
    if (!gone) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
    }
    close(p->fd);
    free(p);
}

static int over(struct program *p, char *why, size_t size)
{
    int status;
    if (p->pid < 0 || !ended(p, &status)) {
        snprintf(why, size, "the program closed its output");
        return -1;
    }
    if (WIFSIGNALED(status))
        snprintf(why, size, "the program was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(why, size, "the program ended with status %d%s", WEXITSTATUS(status),
                 WEXITSTATUS(status) == 127 ? " (command not found?)" : "");
    kill(-p->pid, SIGKILL);
    p->pid = -1;
    return -1;
}

/* 1 when ready; -1 and why. */
static int await(struct program *p, short events, double deadline, char *why, size_t size)
{
    for (;;) {
        double left = deadline - now_s();
        struct pollfd wait = {.fd = p->fd, .events = events};
        int n = left > 0 ? poll(&wait, 1, (int)(left * 1e3) + 1) : 0;
        if (n > 0)
            return 1;
        if (n == 0) {
            snprintf(why, size, "the program gave no answer within %g s", p->timeout_s);
            return -1;
        }
        if (errno != EINTR) {
            snprintf(why, size, "cannot wait for the program: %s", strerror(errno));
            return -1;
        }
    }
}

int program_put(struct program *p, const char *line, char *why, size_t size)
{
    double deadline = now_s() + p->timeout_s;
    size_t left = strlen(line);
    while (left > 0) {
        if (await(p, POLLOUT, deadline, why, size) < 0)
            return -1;
        ssize_t n = send(p->fd, line, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0)
            return over(p, why, size);
        line += n;
        left -= (size_t)n;
    }
    return 0;
}

const char *program_get(struct program *p, char *why, size_t size)
{
    double deadline = now_s() + p->timeout_s;
    memmove(p->buffer, p->buffer + p->taken, p->length - p->taken);
    p->length -= p->taken;
    p->taken = 0;
    for (;;) {
        char *end = memchr(p->buffer, '\n', p->length);
        if (end != NULL) {
            *end = '\0';
            p->taken = (size_t)(end - p->buffer) + 1;
            return p->buffer;
        }
        if (p->length == PROGRAM_LINE) {
            snprintf(why, size, "the program wrote a line of more than %u bytes", PROGRAM_LINE);
            return NULL;
        }
        if (await(p, POLLIN, deadline, why, size) < 0)
            return NULL;
        ssize_t n = recv(p->fd, p->buffer + p->length, PROGRAM_LINE - p->length, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            over(p, why, size);
            return NULL;
        }
        p->length += n > 0 ? (size_t)n : 0;
    }
}
