/* events: what happens next in the simulation: a heap by time, then by order of coming. */
#ifndef ATT_BENCH_EVENTS_H
#define ATT_BENCH_EVENTS_H

#include <stdint.h>

typedef enum sim_kind { SIM_MESSAGE = 0, SIM_WAKE = 1, SIM_CALL = 2 } sim_kind_t;

typedef struct sim_event {
    uint64_t ns, order;
    uint32_t kind; /* sim_kind_t */
    uint32_t who;  /* agent or group */
    void *bytes;   /* SIM_MESSAGE: the receiver's */
} sim_event_t;

typedef struct sim_events {
    sim_event_t *heap;
    uint32_t count, capacity;
    uint64_t pushed;
} sim_events_t;

void sim_events_push(sim_events_t *events, sim_event_t event); /* aborts without memory */
int sim_events_pop(sim_events_t *events, sim_event_t *event);  /* 0: none left */

#endif
