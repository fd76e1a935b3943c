#include "base/descriptor.h"

#include "base/log.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int att_descriptor_keep(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int code = errno;
    close(fd);
    errno = code;
    return kept;
}

void att_descriptor_hold_standard(int flags)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        bool fails = fd == STDOUT_FILENO && flags == O_CLOEXEC;
        if (fcntl(fd, F_GETFD) != -1)
            continue;
        if (open("/dev/null", (fails ? O_RDONLY : O_RDWR) | flags) < 0) /* the lowest: this one */
            return;
    }
}

int att_descriptor_finish_output(int status)
{
    bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout))
        return status;
    att_log(ATT_LOG_ERROR, "cannot write to standard output: %s",
            flushed ? "an earlier write failed" : strerror(errno));
    return status != 0 ? status : ATT_ESYSTEM;
}
