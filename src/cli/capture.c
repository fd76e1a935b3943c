#include "cli/capture.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 127

static void become(char *const argv[], int out)
{
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    execvp(argv[0], argv);
    _exit(errno == ENOENT ? NOT_FOUND : 126);
}

/* Everything up to the end, or -ATT_ETIMEOUT. */
static int read_all(att_capture_t *capture, int fd, int limit_ms)
{
    uint64_t until_ns = att_clock_ns() + (uint64_t)limit_ms * 1000000u;
    char spill[4096];
    for (;;) {
        uint64_t now_ns = att_clock_ns();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (now_ns >= until_ns || poll(&wait, 1, (int)((until_ns - now_ns) / 1000000u) + 1) == 0)
            return -ATT_ETIMEOUT;
        size_t room = sizeof capture->text - 1 - capture->length;
        ssize_t n = room > 0 ? read(fd, capture->text + capture->length, room)
                             : read(fd, spill, sizeof spill);
        if (n == 0)
            return ATT_OK;
        if (n < 0 && errno != EINTR)
            return -ATT_ESYSTEM;
        if (n > 0 && room > 0)
            capture->length += (size_t)n;
    }
}

int att_capture_run(att_capture_t *capture, char *const argv[], int limit_ms, att_error_t *error)
{
    int ends[2], status = 0;
    capture->length = 0;
    capture->exit_status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return att_fail_errno(error, "pipe");
    pid_t child = fork();
    if (child == 0)
        become(argv, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return att_fail_errno(error, "fork");
    }
    int rc = read_all(capture, ends[0], limit_ms);
    close(ends[0]);
    if (rc != ATT_OK)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    capture->text[capture->length] = '\0';
    capture->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (rc == -ATT_ETIMEOUT)
        return att_fail(error, ATT_ETIMEOUT, "%s gave no answer within %d s", argv[0],
                        limit_ms / 1000);
    if (rc != ATT_OK)
        return att_fail(error, ATT_ESYSTEM, "cannot read what %s prints", argv[0]);
    if (capture->exit_status == NOT_FOUND && capture->length == 0)
        return att_fail(error, ATT_ENOENT, "%s is not in PATH", argv[0]);
    return ATT_OK;
}
