#include "fabric/device.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define UNITS 32
/* Virtual clocks do not start at 0, which many readers take for "no stamp". */
#define CLOCK_START_NS 1000000000ull

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static att_device_t *every; /* keeps devices of ended threads known */
static att_device_t *_Atomic last;
static uint64_t process; /* random, 0 = not drawn yet */

static _Thread_local att_device_t *devices; /* of this thread, by number */
static _Thread_local att_device_t *current;
static _Thread_local uint64_t taken_hash;
static _Thread_local int taken;

static void fill_random(void *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) != (ssize_t)size) {
        uint64_t seed = att_clock_ns() ^ (uint64_t)getpid() << 40;
        for (size_t i = 0; i < size; i++) {
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            ((uint8_t *)bytes)[i] = (uint8_t)(seed >> 56);
        }
    }
}

/* A child by fork is another process on other devices. */
static void forget(void)
{
    pthread_mutex_init(&mutex, NULL);
    process = 0;
    devices = current = NULL;
    taken_hash = 0;
    atomic_store(&last, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget);
}

uint64_t att_device_process(void)
{
    pthread_mutex_lock(&mutex);
    while (!process)
        fill_random(&process, sizeof process);
    uint64_t value = process;
    pthread_mutex_unlock(&mutex);
    return value;
}

static att_device_t *new_device(void)
{
    att_device_t *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    fill_random(device->uuid, sizeof device->uuid);
    device->units = UNITS;
    atomic_store(&device->clock_ns, CLOCK_START_NS);
    pthread_mutex_lock(&mutex);
    device->number = every ? every->number + 1 : 0;
    device->older = every;
    every = device;
    pthread_mutex_unlock(&mutex);
    return device;
}

att_device_t *att_device_take(uint64_t hash)
{
    if (hash != taken_hash) {
        taken_hash = hash;
        taken = 0;
    }
    att_device_t **link = &devices;
    for (int i = 0; i < taken && *link; i++)
        link = &(*link)->next;
    if (!*link)
        *link = new_device();
    taken++;
    return *link;
}

void att_device_use(att_device_t *device)
{
    current = device;
    atomic_store(&last, device);
}

att_device_t *att_device_current(void)
{
    return current ? current : atomic_load(&last);
}
