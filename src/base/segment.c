#include "base/segment.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/ring.h"

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

/* Bytes of the file that carry the liveness locks. */
enum { LOCK_AGENT = 0, LOCK_HOOK = 1, LOCK_PROCESS = 16 /* + its index */ };

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
        return errno == EEXIST ? -ATT_EBUSY : att_fail_errno(error, "cannot create %s", path);
    int status;
    take_lock(fd, role);
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
static int check_private(const char *path, const struct stat *file, att_error_t *error)
{
    if (!S_ISREG(file->st_mode))
        return att_fail(error, ATT_EPERMISSION, "%s is no ordinary file: remove it", path);
    if (file->st_uid != geteuid())
        return att_fail(error, ATT_EPERMISSION, "%s belongs to another user", path);
    if ((file->st_mode & 0177) != 0)
        return att_fail(error, ATT_EPERMISSION,
                        "%s has mode %04o, but a segment is private (0600): remove it", path,
                        (unsigned)file->st_mode & 07777);
    if (file->st_nlink > 1)
        return att_fail(error, ATT_EPERMISSION, "%s has %lu names, but a segment has one", path,
                        (unsigned long)file->st_nlink);
    return ATT_OK;
}

/* Open an existing file and look whether it can be joined: 0 with *out, -ATT_ESTALE when nobody
 * holds it (a leftover), or the reason why not. */
static int join_file(const char *path, att_segment_role_t role, int *out, att_error_t *error)
{
    /* Not blocking: a FIFO must not hold us up. */
    int fd = att_descriptor_keep(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0)
        return errno == ENOENT ? -ATT_ESTALE : att_fail_errno(error, "cannot open %s", path);
    struct stat stat_now;
    int status = fstat(fd, &stat_now) != 0 ? att_fail_errno(error, "cannot look at %s", path)
                                           : check_private(path, &stat_now, error);
    if (status != ATT_OK)
        goto close_file;
    status = -ATT_ESTALE;
    /* The creator holds its lock before the file has its size: give it two seconds to finish. */
    att_segment_header_t header;
    for (int i = 0;; i++) {
        if (!locked_by_others(fd, LOCK_AGENT) && !locked_by_others(fd, LOCK_HOOK)) {
            if (i >= 20) /* 20 ms: between the creator's open and its lock */
                goto close_file;
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
    if (fstat(fd, &stat_now) != 0 || stat_now.st_size < (off_t)sizeof(att_segment_memory_t)) {
        status = att_fail(error, ATT_EVERSION, "%s has %lld bytes, but its layout needs %zu", path,
                          (long long)stat_now.st_size, sizeof(att_segment_memory_t));
        goto close_file;
    }
    if (role == ATT_SEGMENT_AGENT && locked_by_others(fd, LOCK_AGENT)) {
        status = att_fail(error, ATT_EBUSY, "another sidecar serves %s", path);
        goto close_file;
    }
    if (take_lock(fd, role) != 0) {
        status = att_fail(error, ATT_EBUSY, "%s: the lock is taken", path);
        goto close_file;
    }
    /* Between our look and our lock the file may have been replaced as stale. */
    struct stat stat_path;
    if (stat(path, &stat_path) != 0 || stat_path.st_ino != stat_now.st_ino)
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
        if (unlink(path) == 0)
            att_log(ATT_LOG_WARN, "replaced the stale segment %s of a dead run", path);
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
    struct stat by_path, by_fd;
    if (fcntl(segment->fd, F_SETLK, &all) == 0 && !locked_by_others(segment->fd, LOCK_AGENT) &&
        !locked_by_others(segment->fd, LOCK_HOOK) && stat(segment->path, &by_path) == 0 &&
        fstat(segment->fd, &by_fd) == 0 && by_path.st_ino == by_fd.st_ino)
        unlink(segment->path);
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
        struct stat file;
        if (fstat(fd, &file) == 0 && check_private(path, &file, NULL) == ATT_OK &&
            !locked_by_others(fd, LOCK_AGENT) && !locked_by_others(fd, LOCK_HOOK) &&
            unlink(path) == 0)
            removed++;
        close(fd);
    }
    closedir(dir);
    return removed;
}

/* --- entries ------------------------------------------------------------------------------- */

/* Claim the next entry of a table; the counter never passes the capacity. */
static uint32_t claim(att_segment_memory_t *memory, _Atomic uint32_t *count, uint32_t capacity)
{
    uint32_t index = atomic_load(count);
    do {
        if (index >= capacity) {
            atomic_store(&memory->header.full, 1);
            return ATT_NONE;
        }
    } while (!atomic_compare_exchange_weak(count, &index, index + 1));
    return index;
}

/* An entry claimed by a process that died stays unfinished; a walk over a table waits for such
 * entries no longer than this, all of them together: it may be inside of a training call. */
#define PATIENCE 2000 /* looks; with the kernel's timer slack about 70 us each */

static bool settle(_Atomic uint32_t *state, int *patience)
{
    for (;; --*patience) {
        uint32_t now = atomic_load_explicit(state, memory_order_acquire);
        if (now != ATT_ENTRY_FREE && now != ATT_ENTRY_CLAIMED)
            return now == ATT_ENTRY_LIVE;
        if (*patience <= 0)
            return false;
        if (*patience < PATIENCE - 100)
            att_clock_sleep_ns(10000);
    }
}

/* One that the agent has emptied, CLAIMED now. */
static uint32_t claim_again(att_segment_memory_t *memory)
{
    uint32_t count = att_segment_count(&memory->header.process_count, ATT_PROCESSES);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t empty = ATT_ENTRY_EMPTY;
        if (!atomic_compare_exchange_strong(&memory->processes[i].state, &empty, ATT_ENTRY_CLAIMED))
            continue;
        att_segment_process_t *process = &memory->processes[i];
        atomic_store(&process->guarded, 0);
        atomic_store(&process->capturing, 0);
        /* Counts and helper; what the agent wants of processes stays. */
        memset((void *)&process->decisions, 0,
               sizeof *process - offsetof(att_segment_process_t, decisions));
        return i;
    }
    return ATT_NONE;
}

uint32_t att_segment_add_process(att_segment_memory_t *memory, const char *program)
{
    uint32_t index = claim_again(memory);
    if (index == ATT_NONE)
        index = claim(memory, &memory->header.process_count, ATT_PROCESSES);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_process_t *process = &memory->processes[index];
    process->pid = (int32_t)getpid();
    process->started_ns = att_clock_ns();
    const char *slash = strrchr(program, '/');
    snprintf(process->program, sizeof process->program, "%s", slash != NULL ? slash + 1 : program);
    att_ring_init(&memory->rings[index]);
    atomic_store_explicit(&process->state, ATT_ENTRY_LIVE, memory_order_release);
    return index;
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

/* Find-or-create in an append-only table: look at every entry, claim the next one, then look again
 * at those that others added meanwhile; the lowest equal entry wins, ours is retired. */
uint32_t att_segment_group(att_segment_memory_t *memory, uint64_t hash, uint32_t ranks,
                           uint32_t nodes)
{
    uint32_t mine = ATT_NONE;
    int patience = PATIENCE;
    for (uint32_t i = 0;; i++) {
        if (i >= att_segment_count(&memory->header.group_count, ATT_GROUPS)) {
            if (mine != ATT_NONE)
                return mine;
            mine = claim(memory, &memory->header.group_count, ATT_GROUPS);
            if (mine == ATT_NONE)
                return ATT_NONE;
            att_segment_group_t *group = &memory->groups[mine];
            group->hash = hash;
            group->ranks = ranks;
            group->nodes = nodes;
            atomic_store_explicit(&group->state, ATT_ENTRY_LIVE, memory_order_release);
            if (mine < i) /* cannot happen: the counter only grows */
                return mine;
        }
        att_segment_group_t *group = &memory->groups[i];
        if (!settle(&group->state, &patience) || group->hash != hash || group->ranks != ranks)
            continue;
        if (mine != ATT_NONE && i != mine)
            atomic_store(&memory->groups[mine].state, ATT_ENTRY_RETIRED);
        return i;
    }
}

uint32_t att_segment_add_member(att_segment_memory_t *memory, uint32_t group, uint32_t rank,
                                uint32_t process)
{
    uint32_t index = claim(memory, &memory->header.member_count, ATT_MEMBERS);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_member_t *member = &memory->members[index];
    member->group = group;
    member->rank = rank;
    member->process = process;
    snprintf(member->hook_version, sizeof member->hook_version, "%s", ATTUNE_VERSION);
    atomic_store_explicit(&member->state, ATT_ENTRY_CLAIMED, memory_order_release);
    return index;
}

void att_segment_publish_member(att_segment_memory_t *memory, uint32_t member)
{
    att_segment_member_t *mine = &memory->members[member];
    atomic_store(&mine->state, ATT_ENTRY_LIVE);
    uint32_t count = att_segment_count(&memory->header.member_count, ATT_MEMBERS);
    uint32_t group = mine->group;
    for (uint32_t i = 0; i < count && group < ATT_GROUPS; i++) {
        att_segment_member_t *other = &memory->members[i];
        if (i != member && atomic_load(&other->state) == ATT_ENTRY_LIVE && other->group == group &&
            other->rank == mine->rank)
            atomic_store(&memory->groups[group].duplicate, 1);
    }
}

void att_segment_retire_member(att_segment_memory_t *memory, uint32_t member)
{
    atomic_store(&memory->members[member].state, ATT_ENTRY_RETIRED);
}

uint32_t att_segment_task(att_segment_memory_t *memory, uint32_t group, uint32_t collective,
                          uint64_t bytes, uint32_t legal_pairs, const float cost_us[ATT_PAIR_COUNT])
{
    uint32_t mine = ATT_NONE;
    int patience = PATIENCE;
    for (uint32_t i = 0;; i++) {
        if (i >= att_segment_count(&memory->header.task_count, ATT_TASKS)) {
            if (mine != ATT_NONE)
                return mine;
            mine = claim(memory, &memory->header.task_count, ATT_TASKS);
            if (mine == ATT_NONE)
                return ATT_NONE;
            att_segment_task_t *task = &memory->tasks[mine];
            task->group = group;
            task->collective = collective;
            task->bytes = bytes;
            task->legal_pairs = legal_pairs;
            task->incumbent = ATT_SETTING_KEEP;
            memcpy(task->cost_us, cost_us, sizeof task->cost_us);
            atomic_store_explicit(&task->state, ATT_ENTRY_LIVE, memory_order_release);
        }
        att_segment_task_t *task = &memory->tasks[i];
        if (!settle(&task->state, &patience) || task->group != group ||
            task->collective != collective || task->bytes != bytes ||
            task->legal_pairs != legal_pairs)
            continue;
        if (mine != ATT_NONE && i != mine)
            atomic_store(&memory->tasks[mine].state, ATT_ENTRY_RETIRED);
        return i;
    }
}

uint32_t att_segment_add_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member)
{
    return att_segment_add_routed_lane(memory, task, member, 0);
}

uint32_t att_segment_add_routed_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member,
                                     uint32_t variants)
{
    uint32_t index = claim(memory, &memory->header.lane_count, ATT_LANES);
    if (index == ATT_NONE)
        return ATT_NONE;
    att_segment_lane_t *lane = &memory->lanes[index];
    lane->task = task;
    lane->member = member;
    atomic_store_explicit(&lane->variants, variants, memory_order_relaxed);
    /* A lane that comes late starts from what is decided; the agent counts lanes before it votes.
     */
    atomic_store(&lane->absorbed, (uint32_t)atomic_load(&memory->tasks[task].prepared));
    atomic_store_explicit(&lane->state, ATT_ENTRY_LIVE, memory_order_release);
    return index;
}
