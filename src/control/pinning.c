#include "control/pinning.h"

#include "base/log.h"
#include "base/names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS    200000000u
#define LINE_BYTES 64 /* of the longest line */

int att_pinning_parse(const char *bytes, size_t length, att_pinned_task_t *tasks, uint32_t most,
                      uint32_t *count, att_error_t *error)
{
    uint32_t found = 0;
    int number = 0;
    for (size_t at = 0; at < length; number++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - (bytes + at)) : length - at;
        char text[LINE_BYTES + 1] = "", word[24] = "", more[2];
        att_pinned_task_t task = {0};
        if (line > LINE_BYTES || found == most)
            return att_fail(error, ATT_EINPUT, "line %d: %s", number + 1,
                            found == most ? "too many tasks" : "longer than a task");
        memcpy(text, bytes + at, line);
        at += line + 1;
        if (line == 0)
            continue;
        if (sscanf(text, "0x%" SCNx64 " %23s %" SCNu64 " %1s", &task.group, word, &task.bytes,
                   more) != 3 ||
            (task.collective = att_collective_parse(word)) < 0)
            return att_fail(error, ATT_EINPUT, "line %d: expected GROUP COLLECTIVE BYTES",
                            number + 1);
        tasks[found++] = task;
    }
    *count = found;
    return ATT_OK;
}

static int compare(const void *left, const void *right)
{
    const att_pinned_task_t *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return (a->collective > b->collective) - (a->collective < b->collective);
}

void att_pinning_set(att_pinning_t *p, att_pinned_task_t *tasks, uint32_t count)
{
    free(p->tasks);
    p->version += count > 0 || p->count > 0;
    p->tasks = tasks;
    p->count = count;
    if (count > 0)
        qsort(tasks, count, sizeof *tasks, compare);
}

void att_pinning_clear(att_pinning_t *p)
{
    att_pinning_set(p, NULL, 0);
}

static int read_file(att_pinning_t *p, int fd, off_t size, att_error_t *error)
{
    if (size > (off_t)ATT_PINNED_MOST * (LINE_BYTES + 1))
        return att_fail(error, ATT_EINPUT, "larger than its most tasks take");
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    ssize_t got = read(fd, bytes, (size_t)size);
    uint32_t lines = 1, count = 0;
    for (ssize_t i = 0; i < got; i++)
        lines += bytes[i] == '\n';
    att_pinned_task_t *tasks = malloc(lines * sizeof *tasks);
    int status = got < 0 ? att_fail_errno(error, "cannot be read")
                 : tasks == NULL
                     ? att_fail(error, ATT_ENOMEM, "no memory")
                     : att_pinning_parse(bytes, (size_t)got, tasks, lines, &count, error);
    free(bytes);
    if (status == ATT_OK)
        att_pinning_set(p, tasks, count);
    else
        free(tasks);
    return status;
}

void att_pinning_step(att_pinning_t *p, const char *run_dir, uint64_t now_ns)
{
    char path[PATH_MAX];
    struct stat status;
    att_error_t error = {""};
    if (run_dir == NULL || run_dir[0] == '\0' || now_ns - p->looked_ns < LOOK_NS)
        return;
    p->looked_ns = now_ns;
    snprintf(path, sizeof path, "%s/" ATT_PINNED_FILE, run_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        if (errno == ENOENT)
            att_pinning_clear(p);
        return;
    }
    if (fstat(fd, &status) == 0 && memcmp(&status.st_mtim, &p->changed, sizeof p->changed) != 0) {
        p->changed = status.st_mtim;
        if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
            att_log(ATT_LOG_WARN,
                    "%s is not followed: it is not a file of this user that others cannot write",
                    path);
        else if (read_file(p, fd, status.st_size, &error) != ATT_OK)
            att_log(ATT_LOG_WARN, "%s is not followed: %s", path, error.text);
    }
    close(fd);
}

bool att_pinning_has(const att_pinning_t *p, uint64_t group, int collective, uint64_t bytes)
{
    att_pinned_task_t task = {.group = group, .bytes = bytes, .collective = collective};
    return p->count > 0 && bsearch(&task, p->tasks, p->count, sizeof task, compare) != NULL;
}
