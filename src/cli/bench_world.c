#include "cli/bench_world.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORLD_MAGIC 0x61747462u

/* The memory file. */
struct shared {
    uint32_t magic;
    uint32_t drivers;
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t generation; /* futex */
    _Alignas(64) _Atomic int32_t failed;      /* negative status; 0: none */
    _Atomic uint32_t failure_taken;           /* the first failing driver writes the text */
    char failure[512];
    att_nccl_id_t id;
    uint64_t word;
    struct {
        _Alignas(64) double value;
    } slots[ATT_WORLD_MAX_DRIVERS];
};

struct att_world {
    struct shared *shared;
    int descriptor;
    int spin; /* one core a driver: spin before sleeping, for sharp starts */
};

static struct att_world *wrap(int descriptor, att_error_t *error)
{
    struct att_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        att_fail(error, ATT_ENOMEM, "no memory for the drivers' shared state");
        return NULL;
    }
    world->descriptor = descriptor;
    world->shared =
        mmap(NULL, sizeof *world->shared, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (world->shared == MAP_FAILED) {
        att_fail_errno(error, "cannot map the drivers' shared state");
        free(world);
        return NULL;
    }
    return world;
}

static void decide_spin(struct att_world *world)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    world->spin = cores > (long)world->shared->drivers;
}

int att_world_create(int drivers, struct att_world **world, att_error_t *error)
{
    if (drivers < 1 || drivers > ATT_WORLD_MAX_DRIVERS)
        return att_fail(error, ATT_EUSAGE, "%d driver threads: 1 to %d are possible", drivers,
                        ATT_WORLD_MAX_DRIVERS);
    int descriptor = memfd_create("attune-bench", 0);
    if (descriptor < 0)
        return att_fail_errno(error, "cannot create the drivers' shared state");
    if (ftruncate(descriptor, sizeof(struct shared)) != 0) {
        int rc = att_fail_errno(error, "cannot size the drivers' shared state");
        close(descriptor);
        return rc;
    }
    struct att_world *made = wrap(descriptor, error);
    if (made == NULL) {
        close(descriptor);
        return -ATT_ESYSTEM;
    }
    made->shared->magic = WORLD_MAGIC;
    made->shared->drivers = (uint32_t)drivers;
    decide_spin(made);
    *world = made;
    return ATT_OK;
}

int att_world_attach(int descriptor, struct att_world **world, att_error_t *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0 || status.st_size != sizeof(struct shared))
        return att_fail(error, ATT_EINPUT, "descriptor %d is not the shared state of a bench run",
                        descriptor);
    struct att_world *made = wrap(descriptor, error);
    if (made == NULL)
        return -ATT_ESYSTEM;
    if (made->shared->magic != WORLD_MAGIC) {
        att_world_close(made);
        return att_fail(error, ATT_EVERSION, "descriptor %d belongs to another version of attune",
                        descriptor);
    }
    decide_spin(made);
    *world = made;
    return ATT_OK;
}

void att_world_close(struct att_world *world)
{
    if (world == NULL)
        return;
    munmap(world->shared, sizeof *world->shared);
    close(world->descriptor);
    free(world);
}

int att_world_descriptor(const struct att_world *world)
{
    return world->descriptor;
}

int att_world_drivers(const struct att_world *world)
{
    return (int)world->shared->drivers;
}

att_nccl_id_t *att_world_id(struct att_world *world)
{
    return &world->shared->id;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    /* The limit covers a wake lost because its sender died between store and wake. */
    struct timespec limit = {0, 100 * 1000 * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int att_world_barrier(struct att_world *world)
{
    struct shared *s = world->shared;
    uint32_t generation = atomic_load(&s->generation);
    if (atomic_fetch_add(&s->arrived, 1) + 1 == s->drivers) {
        atomic_store(&s->arrived, 0);
        atomic_fetch_add(&s->generation, 1);
        futex_wake_all(&s->generation);
        return atomic_load(&s->failed);
    }
    uint64_t spin_until = world->spin ? att_clock_ns() + 200000 : 0;
    while (atomic_load(&s->generation) == generation) {
        int failed = atomic_load(&s->failed);
        if (failed != 0)
            return failed;
        if (spin_until != 0 && att_clock_ns() < spin_until)
            continue;
        futex_wait(&s->generation, generation);
    }
    return atomic_load(&s->failed);
}

int att_world_reduce(struct att_world *world, int driver, att_world_fold_t fold, double mine,
                     double *result)
{
    struct shared *s = world->shared;
    s->slots[driver].value = mine;
    int rc = att_world_barrier(world);
    if (rc != 0)
        return rc;
    double folded = s->slots[0].value;
    for (uint32_t i = 1; i < s->drivers; i++) {
        double value = s->slots[i].value;
        if (fold == ATT_WORLD_SUM)
            folded += value;
        else if ((fold == ATT_WORLD_MIN) == (value < folded))
            folded = value;
    }
    rc = att_world_barrier(world); /* nobody writes the next value before all have read */
    if (rc != 0)
        return rc;
    *result = folded;
    return ATT_OK;
}

int att_world_broadcast(struct att_world *world, int driver, uint64_t *word)
{
    if (driver == 0)
        world->shared->word = *word;
    int rc = att_world_barrier(world);
    if (rc != 0)
        return rc;
    *word = world->shared->word;
    return att_world_barrier(world);
}

void att_world_fail(struct att_world *world, int status, const char *text)
{
    struct shared *s = world->shared;
    if (atomic_fetch_add(&s->failure_taken, 1) == 0) {
        snprintf(s->failure, sizeof s->failure, "%s", text);
        atomic_store(&s->failed, status < 0 ? status : -ATT_EFAIL);
    }
    futex_wake_all(&s->generation);
}

int att_world_failure(const struct att_world *world, att_error_t *error)
{
    int failed = atomic_load(&world->shared->failed);
    if (failed != 0)
        att_fail(error, (att_status_t)-failed, "%s", world->shared->failure);
    return failed;
}
