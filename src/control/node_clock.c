#include "control/node_clock.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

int att_node_clock_init(att_node_clock_t *clock, att_error_t *error)
{
    *clock = (att_node_clock_t){0};
    const char *text = getenv("ATTUNE_CLOCK_INJECT");
    if (text == NULL || text[0] == '\0')
        return ATT_OK;
    double offset_s, drift_ppm;
    char rest;
    if (sscanf(text, "%lf:%lf%c", &offset_s, &drift_ppm, &rest) != 2)
        return att_fail(error, ATT_EUSAGE,
                        "ATTUNE_CLOCK_INJECT: '%.60s' is not <seconds>:<ppm> (for tests only)",
                        text);
    clock->injected_offset_ns = (int64_t)(offset_s * 1e9);
    clock->injected_drift = drift_ppm * 1e-6;
    return ATT_OK;
}

int64_t att_node_clock_of(const att_node_clock_t *clock, uint64_t monotonic_ns)
{
    if (monotonic_ns == 0)
        return 0;
    return (int64_t)monotonic_ns + clock->injected_offset_ns +
           (int64_t)(clock->injected_drift * (double)monotonic_ns);
}

int64_t att_node_clock_now(const att_node_clock_t *clock)
{
    return att_node_clock_of(clock, att_clock_ns());
}
