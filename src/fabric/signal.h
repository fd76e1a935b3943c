/*
 * signal: a counter in shared or private memory that one side raises and others wait for.
 *
 * Waiting spins briefly, then sleeps on a futex, so that a rank never burns a core while its peer
 * is not running. Values are 32-bit and wrap; "reached" is the signed distance.
 */
#ifndef ATT_FABRIC_SIGNAL_H
#define ATT_FABRIC_SIGNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct att_signal {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} att_signal_t;
_Static_assert(sizeof(att_signal_t) == 64, "one cache line");

/* Asked now and then while waiting (first after about 20 ms); anything but 0 ends the wait. */
typedef struct att_watch {
    int (*check)(void *argument);
    void *argument;
} att_watch_t;

static inline bool att_signal_reached(const att_signal_t *signal, uint32_t target)
{
    uint32_t value = atomic_load_explicit(&((att_signal_t *)signal)->value, memory_order_acquire);
    return (int32_t)(value - target) >= 0;
}

/* Wake whoever sleeps; after the value was changed with sequential consistency. */
void att_signal_wake(att_signal_t *signal);

static inline void att_signal_set(att_signal_t *signal, uint32_t value)
{
    atomic_store(&signal->value, value);
    if (atomic_load(&signal->sleepers))
        att_signal_wake(signal);
}

/* Returns the new value. */
static inline uint32_t att_signal_add(att_signal_t *signal, uint32_t amount)
{
    uint32_t value = atomic_fetch_add(&signal->value, amount) + amount;
    if (atomic_load(&signal->sleepers))
        att_signal_wake(signal);
    return value;
}

/* Wait until the value has reached `target`. 0, or what the watch said. `watch` may be NULL. */
int att_signal_wait(att_signal_t *signal, uint32_t target, const att_watch_t *watch);

/* Turns of a spin loop that are worth more than going to sleep, on this machine. */
int att_signal_spins(void);

#endif
