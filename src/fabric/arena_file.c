#include "fabric/arena_file.h"

#include "base/descriptor.h"
#include "fabric/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Rank r locks byte LOCK_RANKS + r; the maker holds LOCK_MAKER from before the file has its name.
 */
#define LOCK_MAKER 0
#define LOCK_RANKS 16

/* A nameless-to-be file without a lock may be one that is just being made. */
#define UNFINISHED_S 60

static const char *directory(void)
{
    const char *word = getenv("ATTUNE_FABRIC_SHM_DIR");
    return word && *word ? word : "/dev/shm";
}

static int lock_byte(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock);
}

static ncclResult_t system_error(const char *what, const char *path)
{
    return att_fabric_error(ncclSystemError, "%s %s: %s", what, path, strerror(errno));
}

static int allocate(int fd, off_t offset, off_t bytes)
{
    int code;
    do
        code = posix_fallocate(fd, offset, bytes);
    while (code == EINTR);
    errno = code;
    return code;
}

static void *map_file(int fd, size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base != MAP_FAILED)
        madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

/* Make the file under a temporary name, then give it its own. EEXIST in errno: another was first.
 */
static int make(att_arena_file_t *file, size_t total, size_t eager,
                void (*initialise)(void *base, void *argument), void *argument)
{
    char temporary[560];
    snprintf(temporary, sizeof temporary, "%s/.attfab-%u-XXXXXX", directory(), (unsigned)geteuid());
    int fd = att_descriptor_keep(mkostemp(temporary, O_CLOEXEC));
    if (fd < 0)
        return -1;
    int code = 0;
    void *base = MAP_FAILED;
    if (lock_byte(fd, LOCK_MAKER) || ftruncate(fd, (off_t)total) || allocate(fd, 0, (off_t)eager) ||
        (base = map_file(fd, total)) == MAP_FAILED) {
        code = errno;
    } else {
        initialise(base, argument);
        code = link(temporary, file->path) ? errno : 0;
    }
    unlink(temporary);
    if (code) {
        if (base != MAP_FAILED)
            munmap(base, total);
        close(fd);
        errno = code;
        return -1;
    }
    file->fd = fd;
    file->base = base;
    file->bytes = total;
    return 0;
}

static int join(att_arena_file_t *file)
{
    int fd = att_descriptor_keep(open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0)
        return -1;
    struct stat status;
    void *base = MAP_FAILED;
    if (fstat(fd, &status) == 0)
        base = map_file(fd, (size_t)status.st_size);
    if (base == MAP_FAILED) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    file->fd = fd;
    file->base = base;
    file->bytes = (size_t)status.st_size;
    return 0;
}

ncclResult_t att_arena_file_open(att_arena_file_t *file, const char *name, size_t total,
                                 size_t eager, void (*initialise)(void *base, void *argument),
                                 void *argument)
{
    snprintf(file->path, sizeof file->path, "%s/attfab-%u-%s", directory(), (unsigned)geteuid(),
             name);
    for (int tries = 0; tries < 8; tries++) {
        if (join(file) == 0 ||
            (errno == ENOENT && make(file, total, eager, initialise, argument) == 0))
            return ncclSuccess;
        if (errno != EEXIST && errno != ENOENT)
            break;
    }
    return system_error("cannot make the shared memory", file->path);
}

void att_arena_file_close(att_arena_file_t *file)
{
    munmap(file->base, file->bytes);
    close(file->fd);
}

void att_arena_file_unlink(att_arena_file_t *file)
{
    unlink(file->path);
}

ncclResult_t att_arena_file_hold(att_arena_file_t *file, int rank)
{
    if (lock_byte(file->fd, LOCK_RANKS + rank) == 0)
        return ncclSuccess;
    if (errno == EAGAIN || errno == EACCES)
        return att_fabric_error(ncclInvalidUsage, "rank %d exists twice", rank);
    return system_error("cannot lock", file->path);
}

static bool range_held(int fd, off_t start, off_t bytes)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = bytes};
    return fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool att_arena_file_held(const att_arena_file_t *file, int rank)
{
    return range_held(file->fd, LOCK_RANKS + rank, 1);
}

ncclResult_t att_arena_file_reserve(att_arena_file_t *file, const void *pointer, size_t bytes)
{
    off_t offset = (const char *)pointer - (const char *)file->base;
    return allocate(file->fd, offset, (off_t)bytes) == 0
               ? ncclSuccess
               : att_fabric_error(ncclSystemError,
                                  "no room for the shared memory %s (ATTUNE_FABRIC_SHM_DIR moves "
                                  "it): %s",
                                  file->path, strerror(errno));
}

static void sweep_one(int folder, const char *name)
{
    int fd = att_descriptor_keep(openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0)
        return;
    struct stat status;
    bool unfinished = name[0] == '.';
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && !range_held(fd, 0, 0) &&
        (!unfinished || status.st_mtime + UNFINISHED_S < time(NULL)))
        unlinkat(folder, name, 0);
    close(fd);
}

void att_arena_file_sweep(void)
{
    char named[32], unnamed[32];
    snprintf(named, sizeof named, "attfab-%u-", (unsigned)geteuid());
    snprintf(unnamed, sizeof unnamed, ".attfab-%u-", (unsigned)geteuid());
    DIR *folder = opendir(directory());
    if (!folder)
        return; /* the caller's next step reports it */
    struct dirent *entry;
    while ((entry = readdir(folder)))
        if (!strncmp(entry->d_name, named, strlen(named)) ||
            !strncmp(entry->d_name, unnamed, strlen(unnamed)))
            sweep_one(dirfd(folder), entry->d_name);
    closedir(folder);
}
