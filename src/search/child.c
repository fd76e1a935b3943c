#include "search/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum att_slot_state {
    SLOT_FREE = 0,
    SLOT_LIVE = 1,
    SLOT_ENDED = 2,   /* ended, the caller still holds the number */
    SLOT_RELEASED = 3 /* the caller is done, the end was not reported yet */
} att_slot_state_t;

struct att_child {
    pid_t supervisor;
    int control; /* our end, nonblocking */
    bool gone;
    att_slot_state_t slots[ATT_CHILD_WORKERS];
    int status[ATT_CHILD_WORKERS];
};

/* Caller to supervisor; START carries the worker's socket. */
enum { COMMAND_START = 1, COMMAND_KILL = 2 };
typedef struct att_child_command {
    int32_t command;
    int32_t slot;
} att_child_command_t;

/* Supervisor to caller. */
typedef struct att_child_report {
    int32_t slot;
    int32_t status;
} att_child_report_t;

/* ---- supervisor ---- */

static void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(0);
}

static void reset_signals(void)
{
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    /* ^C in a terminal reaches the whole process group; the caller decides what it means. */
    signal(SIGINT, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_files(int keep)
{
    DIR *files = opendir("/proc/self/fd");
    int own = files != NULL ? dirfd(files) : -1;
    for (struct dirent *entry; files != NULL && (entry = readdir(files)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd > 2 && fd != keep && fd != own)
            close(fd);
    }
    if (files != NULL)
        closedir(files);
    /* A strategy that prints must not end up in the caller's output or read its input. */
    dup2(2, 1);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) {
        dup2(null, 0);
        close(null);
    }
}

static int receive(int control, att_child_command_t *command, int *fd)
{
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {command, sizeof *command};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    *fd = -1;
    ssize_t n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n != (ssize_t)sizeof *command)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return 1;
}

static void report(int control, int slot, int status)
{
    att_child_report_t r = {slot, status};
    (void)!send(control, &r, sizeof r, MSG_NOSIGNAL);
}

static void start_worker(int control, int signals, pid_t *pids, int slot, int fd,
                         att_child_fn serve)
{
    pid_t supervisor = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        die_with(supervisor);
        close(control);
        close(signals);
        reset_signals();
        serve(fd);
        _exit(0);
    }
    close(fd);
    if (pid < 0)
        report(control, slot, W_EXITCODE(127, 0));
    else
        pids[slot] = pid;
}

static void reap(int control, pid_t *pids)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int slot = 0; slot < ATT_CHILD_WORKERS; slot++)
            if (pids[slot] == pid) {
                pids[slot] = 0;
                report(control, slot, status);
            }
}

__attribute__((noreturn)) static void supervise(int control, att_child_fn serve)
{
    static pid_t pids[ATT_CHILD_WORKERS];
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    for (bool more = signals >= 0; more;) {
        struct pollfd watch[2] = {{.fd = control, .events = POLLIN},
                                  {.fd = signals, .events = POLLIN}};
        if (poll(watch, 2, -1) < 0)
            continue;
        if (watch[1].revents) {
            struct signalfd_siginfo info;
            while (read(signals, &info, sizeof info) > 0)
                ;
            reap(control, pids);
        }
        if (watch[0].revents) {
            att_child_command_t command;
            int fd;
            int n = receive(control, &command, &fd);
            more = n >= 0;
            if (n > 0 && command.command == COMMAND_START && fd >= 0)
                start_worker(control, signals, pids, command.slot, fd, serve);
            else if (n > 0 && command.command == COMMAND_KILL && pids[command.slot] > 0)
                kill(pids[command.slot], SIGKILL);
        }
    }
    for (int slot = 0; slot < ATT_CHILD_WORKERS; slot++)
        if (pids[slot] > 0)
            kill(pids[slot], SIGKILL);
    _exit(0);
}

/* ---- caller ---- */

int att_child_start(att_child_fn serve, struct att_child **out, att_error_t *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return att_fail_errno(error, "cannot make a socket for the strategy process");
    struct att_child *child = calloc(1, sizeof *child);
    pid_t caller = getpid();
    pid_t pid = child == NULL ? -1 : fork();
    if (pid == 0) {
        die_with(caller);
        prctl(PR_SET_NAME, "attune-strategy");
        reset_signals();
        close_files(pair[1]);
        supervise(pair[1], serve);
    }
    close(pair[1]);
    if (pid < 0) {
        int rc = att_fail_errno(error, "cannot start the strategy process");
        close(pair[0]);
        free(child);
        return rc;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    child->supervisor = pid;
    child->control = pair[0];
    *out = child;
    return ATT_OK;
}

void att_child_stop(struct att_child *child)
{
    if (child == NULL)
        return;
    close(child->control);
    kill(child->supervisor, SIGCONT); /* stopped, it would not see that */
    while (waitpid(child->supervisor, NULL, 0) < 0 && errno == EINTR)
        ;
    free(child);
}

static void take_reports(struct att_child *child)
{
    att_child_report_t r;
    for (;;) {
        ssize_t n = recv(child->control, &r, sizeof r, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n != (ssize_t)sizeof r || r.slot < 0 || r.slot >= ATT_CHILD_WORKERS) {
            child->gone = true;
            return;
        }
        child->status[r.slot] = r.status;
        child->slots[r.slot] = child->slots[r.slot] == SLOT_RELEASED ? SLOT_FREE : SLOT_ENDED;
    }
}

static int command(struct att_child *child, int kind, int slot, int fd)
{
    att_child_command_t c = {kind, slot};
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&c, sizeof c};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(child->control, &message, MSG_NOSIGNAL) == (ssize_t)sizeof c ? 0 : -1;
}

int att_child_worker(struct att_child *child, int *number, int *fd, att_error_t *error)
{
    take_reports(child);
    int slot = 0;
    while (slot < ATT_CHILD_WORKERS && child->slots[slot] != SLOT_FREE)
        slot++;
    if (child->gone)
        return att_fail(error, ATT_EPLUGIN, "the strategy process is gone");
    if (slot == ATT_CHILD_WORKERS)
        return att_fail(error, ATT_EBUSY, "%d searches are running already", ATT_CHILD_WORKERS);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return att_fail_errno(error, "cannot make a socket for a strategy");
    int rc = command(child, COMMAND_START, slot, pair[1]);
    close(pair[1]);
    if (rc != 0) {
        child->gone = errno != EAGAIN;
        rc = child->gone ? att_fail(error, ATT_EPLUGIN, "the strategy process is gone")
                         : att_fail(error, ATT_EBUSY, "the strategy process is busy");
        close(pair[0]);
        return rc;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    child->slots[slot] = SLOT_LIVE;
    *number = slot;
    *fd = pair[0];
    return ATT_OK;
}

void att_child_kill(struct att_child *child, int number)
{
    if (child->slots[number] == SLOT_LIVE || child->slots[number] == SLOT_RELEASED)
        (void)command(child, COMMAND_KILL, number, -1);
}

int att_child_ended(struct att_child *child, int number, int *status)
{
    take_reports(child);
    if (child->slots[number] == SLOT_ENDED) {
        *status = child->status[number];
        return 1;
    }
    return child->gone ? -1 : 0;
}

void att_child_release(struct att_child *child, int number)
{
    take_reports(child);
    child->slots[number] = child->slots[number] == SLOT_ENDED ? SLOT_FREE : SLOT_RELEASED;
}
