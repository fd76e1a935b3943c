/*
 * conditions: what happens around a simulated job: which load runs beside the collective from which
 * call on, and how all durations drift.
 */
#ifndef ATT_SIM_CONDITIONS_H
#define ATT_SIM_CONDITIONS_H

#include "base/status.h"

#include <stdint.h>

#define ATT_SIM_SPANS 32

struct att_surface;

typedef struct att_sim_conditions {
    double drift;   /* all durations grow by this fraction of the first ones every 1,000 calls */
    uint32_t count; /* >= 1, the first span begins at call 0 */
    struct {
        uint64_t from; /* call */
        int load;      /* index into the surface's loads */
    } spans[ATT_SIM_SPANS];
} att_sim_conditions_t;

/* "LOAD" or "0:LOAD,300:LOAD,...", calls ascending. -ATT_EUSAGE says what is wrong. */
int att_sim_conditions_parse(const struct att_surface *surface, const char *schedule,
                             att_sim_conditions_t *conditions, att_error_t *error);

int att_sim_conditions_load(const att_sim_conditions_t *conditions, uint64_t call);
/* Factor of the drift, at least 0.1. */
double att_sim_conditions_factor(const att_sim_conditions_t *conditions, uint64_t call);

#endif
