/*
 * atomic_steps: included before the simulated files of the protocol (-include): every atomic
 * operation of theirs becomes a step of the simulation, at which another actor may run or the
 * process may die, and time, sleep and the network become simulated ones.
 *
 * Plain atomic stores (release, relaxed) wait in the actor's store buffer of one entry, as on x86;
 * locked operations and sequentially consistent stores drain it.
 */
#ifndef ATT_PROVE_ATOMIC_STEPS_H
#define ATT_PROVE_ATOMIC_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* actor.h */
void sim_step(void);
void sim_drain(void);
void sim_store(volatile void *address, uint64_t value, uint32_t size);
bool sim_buffered(const volatile void *address, uint64_t *value);
uint64_t sim_clock_ns(void);
void sim_sleep_ns(uint64_t ns);
void sim_pause(void);

#define ATT_BASE_CLOCK_H   /* the simulation's clock instead */
#define att_clock_ns       sim_clock_ns
#define att_clock_sleep_ns sim_sleep_ns
#define att_clock_pause    sim_pause
#define att_step_reached   sim_step_reached
#define att_resolver_ask   sim_resolver_ask

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit

#define atomic_load_explicit(address, order)                                                       \
    __extension__({                                                                                \
        sim_step();                                                                                \
        uint64_t sim_value_;                                                                       \
        __auto_type sim_loaded_ = __atomic_load_n((address), __ATOMIC_RELAXED);                    \
        if (sim_buffered((address), &sim_value_))                                                  \
            sim_loaded_ = (__typeof__(sim_loaded_))sim_value_;                                     \
        sim_loaded_;                                                                               \
    })
#define atomic_load(address) atomic_load_explicit(address, 0)

#define atomic_store_explicit(address, value, order)                                               \
    __extension__({                                                                                \
        sim_step();                                                                                \
        sim_store((address), (uint64_t)(value), sizeof *(address));                                \
        if ((order) == memory_order_seq_cst)                                                       \
            sim_drain();                                                                           \
    })
#define atomic_store(address, value) atomic_store_explicit(address, value, memory_order_seq_cst)

#define SIM_FETCH(operation, address, value)                                                       \
    __extension__({                                                                                \
        sim_step();                                                                                \
        sim_drain();                                                                               \
        operation((address), (value), __ATOMIC_RELAXED);                                           \
    })
#define atomic_fetch_add_explicit(address, value, order)                                           \
    SIM_FETCH(__atomic_fetch_add, address, value)
#define atomic_fetch_sub_explicit(address, value, order)                                           \
    SIM_FETCH(__atomic_fetch_sub, address, value)
#define atomic_fetch_and_explicit(address, value, order)                                           \
    SIM_FETCH(__atomic_fetch_and, address, value)
#define atomic_fetch_or_explicit(address, value, order) SIM_FETCH(__atomic_fetch_or, address, value)
#define atomic_fetch_add(address, value)                SIM_FETCH(__atomic_fetch_add, address, value)
#define atomic_fetch_sub(address, value)                SIM_FETCH(__atomic_fetch_sub, address, value)

#define atomic_compare_exchange_strong(address, expected, desired)                                 \
    __extension__({                                                                                \
        sim_step();                                                                                \
        sim_drain();                                                                               \
        __atomic_compare_exchange_n((address), (expected), (desired), false, __ATOMIC_RELAXED,     \
                                    __ATOMIC_RELAXED);                                             \
    })
#define atomic_compare_exchange_weak(address, expected, desired)                                   \
    atomic_compare_exchange_strong(address, expected, desired)
#define atomic_compare_exchange_strong_explicit(address, expected, desired, success, failure)      \
    atomic_compare_exchange_strong(address, expected, desired)
#define atomic_compare_exchange_weak_explicit(address, expected, desired, success, failure)        \
    atomic_compare_exchange_strong(address, expected, desired)

#endif
