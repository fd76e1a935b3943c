#include "fabric/signal.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About 1 us on few cores, where the peer probably needs ours, and 20 us where it has its own. */
#define SPINS_SHARED 40
#define SPINS_OWN    800
#define CORES_OWN    16

#define SLEEP_FIRST_NS 20000000L
#define SLEEP_MOST_NS  100000000L

int att_signal_spins(void)
{
    static _Atomic int spins;
    int known = atomic_load_explicit(&spins, memory_order_relaxed);
    if (!known) {
        cpu_set_t set;
        int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        known = cores >= CORES_OWN ? SPINS_OWN : SPINS_SHARED;
        atomic_store_explicit(&spins, known, memory_order_relaxed);
    }
    return known;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void att_signal_wake(att_signal_t *signal)
{
    futex(&signal->value, FUTEX_WAKE, INT32_MAX, NULL);
}

int att_signal_wait(att_signal_t *signal, uint32_t target, const att_watch_t *watch)
{
    for (int i = att_signal_spins(); i > 0; i--) {
        if (att_signal_reached(signal, target))
            return 0;
        att_clock_pause();
    }
    struct timespec timeout = {0, SLEEP_FIRST_NS};
    int result = 0;
    atomic_fetch_add(&signal->sleepers, 1);
    for (;;) {
        uint32_t value = atomic_load(&signal->value);
        if ((int32_t)(value - target) >= 0)
            break;
        long rc = futex(&signal->value, FUTEX_WAIT, value, watch ? &timeout : NULL);
        /* A wake-up without progress is answered like a time-out: it may carry bad news. */
        if (watch && rc != 0 && !att_signal_reached(signal, target)) {
            result = watch->check(watch->argument);
            if (result)
                break;
            if (timeout.tv_nsec < SLEEP_MOST_NS)
                timeout.tv_nsec += SLEEP_FIRST_NS;
        }
    }
    atomic_fetch_sub(&signal->sleepers, 1);
    return result;
}
