/* clock: nanoseconds of CLOCK_MONOTONIC, the clock that all processes of a node share, and the ways
 * to wait. */
#ifndef ATT_BASE_CLOCK_H
#define ATT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t att_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void att_clock_sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

/* Let the processor rest a moment inside a spin loop. */
static inline void att_clock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
