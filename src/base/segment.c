#include "base/segment.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the file that carry the liveness locks; LOCK_NAME is held for a moment by whoever joins
 * or removes the file. */
enum { LOCK_AGENT = 0, LOCK_HOOK = 1, LOCK_NAME = 2, LOCK_PROCESS = 16 /* + its index */ };

struct att_segment {
    struct att_segment *next;
    char path[PATH_MAX];
    int fd;
    pid_t pid;
    int references;
    bool agent;
    att_segment_memory_t *memory;
};

/* POSIX locks belong to the process and go with the first close of any descriptor of the file, so a
 * process keeps exactly one descriptor a path. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct att_segment *open_segments;

static bool valid_part(const char *text)
{
    return text[0] != '\0' && strlen(text) < 48 &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               strlen(text);
}

static const char *given_or_env(const char *given, const char *variable)
{
    const char *value = given != NULL ? given : getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

int att_segment_path(const att_segment_name_t *name, char *path, size_t size, att_error_t *error)
{
    const char *directory = given_or_env(name->directory, "ATTUNE_SHM_DIR");
    const char *run = given_or_env(name->run_id, "ATTUNE_RUN_ID");
    const char *node = given_or_env(name->node, "ATTUNE_NODE");
    if (run == NULL)
        run = given_or_env(NULL, "SLURM_JOB_ID");
    if (run == NULL)
        return att_fail(error, ATT_EUSAGE,
                        "no run id: set ATTUNE_RUN_ID, or start the job with `attune run`");
    if (!valid_part(run) || (node != NULL && !valid_part(node)))
        return att_fail(error, ATT_EUSAGE,
                        "run id or node name '%s' has characters other than [A-Za-z0-9._-] or is "
                        "longer than 47",
                        valid_part(run) ? node : run);
    int n = snprintf(path, size, "%s/attune-%u-%s%s%s", directory != NULL ? directory : "/dev/shm",
                     (unsigned)geteuid(), run, node != NULL ? "-" : "", node != NULL ? node : "");
    if (n < 0 || (size_t)n >= size)
        return att_fail(error, ATT_EUSAGE, "the segment's path is longer than %zu bytes", size);
    return ATT_OK;
}

static bool locked_by_others(int fd, int byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int take_lock(int fd, att_segment_role_t role)
{
    struct flock lock = {.l_type = role == ATT_SEGMENT_AGENT ? F_WRLCK : F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = role == ATT_SEGMENT_AGENT ? LOCK_AGENT : LOCK_HOOK,
                         .l_len = 1};
    return fcntl(fd, F_SETLK, &lock);
}

/* --- whose the name is ------------------------------------------------------------------------
 *
 * Several come to a leftover at once, or one leaves while another joins. So to look whether a file
 * is dead and to remove it, and to join a file and to look whether it still has the name, are done
 * under LOCK_NAME of that file; and since a name is given to another file only after a removal,
 * what is removed is the file that was looked at. */

#define NAME_PATIENCE 20000 /* tries 100 us apart: the holder makes a few system calls */

static bool lock_name(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_NAME, .l_len = 1};
    for (int i = 0; i < NAME_PATIENCE; i++) {
        if (fcntl(fd, F_SETLK, &lock) == 0)
            return true;
        att_clock_sleep_ns(100000);
    }
    return false;
}

static void unlock_name(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = LOCK_NAME, .l_len = 1};
    fcntl(fd, F_SETLK, &lock);
}

/* What stat(2) tells, which glibc has as a function of its own only since 2.33; the hook must load
 * with older ones. */
static int look_at(int fd, const char *path, struct statx *file)
{
    return statx(fd, path, AT_EMPTY_PATH, STATX_BASIC_STATS, file);
}

static bool has_name(int fd, const char *path)
{
    struct statx by_path, by_fd;
    return look_at(AT_FDCWD, path, &by_path) == 0 && look_at(fd, "", &by_fd) == 0 &&
           by_path.stx_ino == by_fd.stx_ino && by_path.stx_dev_major == by_fd.stx_dev_major &&
           by_path.stx_dev_minor == by_fd.stx_dev_minor;
}

/* Remove the file when it still has the name and no other process holds it; true when it did. */
static bool remove_dead(int fd, const char *path)
{
    if (!lock_name(fd))
        return false;
    bool removed = !locked_by_others(fd, LOCK_AGENT) && !locked_by_others(fd, LOCK_HOOK) &&
                   has_name(fd, path) && unlink(path) == 0;
    unlock_name(fd);
    return removed;
}

/* Take the lock of the role: -ATT_ESTALE when the name is another file's by now. */
static int join_name(int fd, att_segment_role_t role, const char *path, att_error_t *error)
{
    if (!lock_name(fd))
        return att_fail(error, ATT_ETIMEOUT, "%s is held by a process that does not go on", path);
    int status = ATT_OK;
    if (!has_name(fd, path))
        status = -ATT_ESTALE;
    else if (take_lock(fd, role) != 0)
        status = att_fail(error, ATT_EBUSY, "another sidecar serves %s", path);
    unlock_name(fd);
    return status;
}

static void initialise(att_segment_memory_t *memory, const char *run_id)
{
    att_segment_header_t *header = &memory->header;
    header->magic = ATT_SEGMENT_MAGIC;
    header->layout = ATT_SEGMENT_LAYOUT;
    header->header_bytes = sizeof *header;
    header->total_bytes = sizeof *memory;
    header->wait_ns = 1000000000u;
    header->in_doubt_ns = 600000000000u;
    snprintf(header->version, sizeof header->version, "%s", ATTUNE_VERSION);
    snprintf(header->run_id, sizeof header->run_id, "%s", run_id);
    if (getrandom(header->node_id, sizeof header->node_id, 0) != sizeof header->node_id)
        memcpy(header->node_id, &(uint64_t){att_clock_ns()}, sizeof(uint64_t));
    atomic_store(&header->ready, 1);
}

static int make_file(const char *path, att_segment_role_t role, const char *run_id, int *out,
                     att_error_t *error)
{
    int fd =
        att_descriptor_keep(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0)
        return errno == EEXIST
                   ? -ATT_EBUSY
                   : att_fail_errno(error, "cannot create %s (ATTUNE_SHM_DIR moves it)", path);
    int status = join_name(fd, role, path, error);
    if (status != ATT_OK) {
        close(fd);
        return status == -ATT_ESTALE ? -ATT_EBUSY : status;
    }
    int failed = posix_fallocate(fd, 0, sizeof(att_segment_memory_t));
    if (failed != 0) {
        errno = failed;
        status =
            att_fail_errno(error, "no room for the %zu MiB segment %s (ATTUNE_SHM_DIR moves it)",
                           sizeof(att_segment_memory_t) >> 20, path);
        goto remove_file;
    }
    att_segment_memory_t *memory =
        mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        status = att_fail_errno(error, "cannot map %s", path);
        goto remove_file;
    }
    initialise(memory, run_id);
    munmap(memory, sizeof *memory);
    *out = fd;
    return ATT_OK;

remove_file:
    unlink(path);
    close(fd);
    return status;
}

/* Only a file that nobody else can have written may be mapped. */
static int check_private(const char *path, const struct statx *file, att_error_t *error)
{
    if (!S_ISREG(file->stx_mode))
        return att_fail(error, ATT_EPERMISSION, "%s is no ordinary file: remove it", path);
    if (file->stx_uid != geteuid())
        return att_fail(error, ATT_EPERMISSION, "%s belongs to another user", path);
    if ((file->stx_mode & 0177) != 0)
        return att_fail(error, ATT_EPERMISSION,
                        "%s has mode %04o, but a segment is private (0600): remove it", path,
                        (unsigned)file->stx_mode & 07777);
    if (file->stx_nlink > 1)
        return att_fail(error, ATT_EPERMISSION, "%s has %lu names, but a segment has one", path,
                        (unsigned long)file->stx_nlink);
    return ATT_OK;
}

/* Open an existing file and look whether it can be joined: 0 with *out, -ATT_ESTALE when the name
 * is free by now (a leftover was removed), or the reason why not. */
static int join_file(const char *path, att_segment_role_t role, int *out, att_error_t *error)
{
    /* Not blocking: a FIFO must not hold us up. */
    int fd = att_descriptor_keep(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0)
        return errno == ENOENT ? -ATT_ESTALE : att_fail_errno(error, "cannot open %s", path);
    struct statx now;
    int status = look_at(fd, "", &now) != 0 ? att_fail_errno(error, "cannot look at %s", path)
                                            : check_private(path, &now, error);
    if (status != ATT_OK)
        goto close_file;
    status = -ATT_ESTALE;
    /* The creator holds its lock before the file has a size, and that before it is ready: give it
     * two seconds for either. */
    att_segment_header_t header;
    for (int i = 0;; i++) {
        if (!locked_by_others(fd, LOCK_AGENT) && !locked_by_others(fd, LOCK_HOOK)) {
            if (look_at(fd, "", &now) != 0 || now.stx_size > 0 || i > 2000) {
                if (remove_dead(fd, path))
                    att_log(ATT_LOG_WARN, "replaced the stale segment %s of a dead run", path);
                goto close_file;
            }
        } else if (pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                   atomic_load(&header.ready) != 0) {
            break;
        } else if (i > 2000) {
            status = att_fail(error, ATT_ETIMEOUT, "%s is not finished by its creator", path);
            goto close_file;
        }
        att_clock_sleep_ns(1000000);
    }
    if (header.magic != ATT_SEGMENT_MAGIC || header.layout != ATT_SEGMENT_LAYOUT ||
        header.total_bytes != sizeof(att_segment_memory_t)) {
        header.version[sizeof header.version - 1] = '\0';
        status = att_fail(error, ATT_EVERSION,
                          "%s was made by attune %s (layout %u) and is in use; this is attune %s "
                          "(layout %u): use one version for hook and sidecar",
                          path, header.magic == ATT_SEGMENT_MAGIC ? header.version : "(unknown)",
                          header.layout, ATTUNE_VERSION, ATT_SEGMENT_LAYOUT);
        goto close_file;
    }
    /* Whoever touches a mapping beyond the end of its file gets SIGBUS. */
    if (look_at(fd, "", &now) != 0 || now.stx_size < sizeof(att_segment_memory_t)) {
        status = att_fail(error, ATT_EVERSION, "%s has %llu bytes, but its layout needs %zu", path,
                          (unsigned long long)now.stx_size, sizeof(att_segment_memory_t));
        goto close_file;
    }
    if (role == ATT_SEGMENT_AGENT && locked_by_others(fd, LOCK_AGENT)) {
        status = att_fail(error, ATT_EBUSY, "another sidecar serves %s", path);
        goto close_file;
    }
    status = join_name(fd, role, path, error);
    if (status != ATT_OK)
        goto close_file;
    *out = fd;
    return ATT_OK;

close_file:
    close(fd);
    return status;
}

static int open_file(const char *path, att_segment_role_t role, const char *run_id, int *fd,
                     att_error_t *error)
{
    for (int tries = 0; tries < 8; tries++) {
        int status = make_file(path, role, run_id, fd, error);
        if (status != -ATT_EBUSY)
            return status;
        status = join_file(path, role, fd, error);
        if (status != -ATT_ESTALE)
            return status;
    }
    return att_fail(error, ATT_EBUSY, "%s changes hands too quickly", path);
}

int att_segment_open(const att_segment_name_t *name, att_segment_role_t role,
                     struct att_segment **out, att_error_t *error)
{
    char path[PATH_MAX];
    int status = att_segment_path(name, path, sizeof path, error);
    if (status != ATT_OK)
        return status;
    pthread_mutex_lock(&open_lock);
    struct att_segment *segment = open_segments;
    while (segment != NULL && (strcmp(segment->path, path) != 0 || segment->pid != getpid()))
        segment = segment->next;
    if (segment != NULL) {
        if (role == ATT_SEGMENT_AGENT && locked_by_others(segment->fd, LOCK_AGENT)) {
            status = att_fail(error, ATT_EBUSY, "another sidecar serves %s", path);
            goto unlock;
        }
        take_lock(segment->fd, role);
        segment->agent |= role == ATT_SEGMENT_AGENT;
        segment->references++;
        *out = segment;
        goto unlock;
    }
    segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        status = att_fail(error, ATT_ENOMEM, "no memory");
        goto unlock;
    }
    const char *run = strrchr(path, '/') + 1;
    status = open_file(path, role, run, &segment->fd, error);
    if (status != ATT_OK)
        goto free_segment;
    segment->memory =
        mmap(NULL, sizeof *segment->memory, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (segment->memory == MAP_FAILED) {
        status = att_fail_errno(error, "cannot map %s", path);
        close(segment->fd);
        goto free_segment;
    }
    memcpy(segment->path, path, sizeof path);
    segment->pid = getpid();
    segment->references = 1;
    segment->agent = role == ATT_SEGMENT_AGENT;
    segment->next = open_segments;
    open_segments = segment;
    *out = segment;
    goto unlock;

free_segment:
    free(segment);
unlock:
    pthread_mutex_unlock(&open_lock);
    return status;
}

/* Drop our locks first: of two who go at the same time one then sees that nobody is left. */
void att_segment_let_go(struct att_segment *segment)
{
    if (segment->pid != getpid()) /* in a forked child the lock is not ours */
        return;
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 2};
    if (fcntl(segment->fd, F_SETLK, &all) == 0)
        remove_dead(segment->fd, segment->path);
}

void att_segment_close(struct att_segment *segment)
{
    if (segment == NULL)
        return;
    pthread_mutex_lock(&open_lock);
    if (--segment->references > 0) {
        pthread_mutex_unlock(&open_lock);
        return;
    }
    struct att_segment **link = &open_segments;
    while (*link != segment)
        link = &(*link)->next;
    *link = segment->next;
    att_segment_let_go(segment);
    munmap(segment->memory, sizeof *segment->memory);
    close(segment->fd);
    pthread_mutex_unlock(&open_lock);
    free(segment);
}

att_segment_memory_t *att_segment_memory(struct att_segment *segment)
{
    return segment->memory;
}

const char *att_segment_file(const struct att_segment *segment)
{
    return segment->path;
}

bool att_segment_agent_alive(struct att_segment *segment)
{
    return locked_by_others(segment->fd, LOCK_AGENT);
}

bool att_segment_hooks_alive(struct att_segment *segment)
{
    return locked_by_others(segment->fd, LOCK_HOOK);
}

void att_segment_guard(struct att_segment *segment, uint32_t process)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = LOCK_PROCESS + (off_t)process,
                         .l_len = 1};
    if (process < ATT_PROCESSES && fcntl(segment->fd, F_SETLK, &lock) == 0)
        atomic_store(&segment->memory->processes[process].guarded, 1);
}

bool att_segment_process_alive(struct att_segment *segment, uint32_t process)
{
    return process >= ATT_PROCESSES ||
           atomic_load(&segment->memory->processes[process].guarded) == 0 ||
           locked_by_others(segment->fd, LOCK_PROCESS + (int)process);
}

static bool open_here(const char *path)
{
    bool found = false;
    pthread_mutex_lock(&open_lock);
    for (struct att_segment *s = open_segments; s != NULL; s = s->next)
        found |= strcmp(s->path, path) == 0;
    pthread_mutex_unlock(&open_lock);
    return found;
}

int att_segment_sweep(const char *directory)
{
    const char *where = given_or_env(directory, "ATTUNE_SHM_DIR");
    if (where == NULL)
        where = "/dev/shm";
    char prefix[32];
    int length = snprintf(prefix, sizeof prefix, "attune-%u-", (unsigned)geteuid());
    DIR *dir = opendir(where);
    if (dir == NULL)
        return 0;
    int removed = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, prefix, (size_t)length) != 0 ||
            snprintf(path, sizeof path, "%s/%s", where, entry->d_name) >= (int)sizeof path ||
            open_here(path))
            continue;
        int fd = att_descriptor_keep(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (fd < 0)
            continue;
        att_clock_sleep_ns(1000000); /* a creator locks right after it opened */
        struct statx file;
        if (look_at(fd, "", &file) == 0 && check_private(path, &file, NULL) == ATT_OK &&
            remove_dead(fd, path))
            removed++;
        close(fd);
    }
    closedir(dir);
    return removed;
}
