/*
 * t4_file: writes recorded durations in Kernel Tuner's T4 format, with a surface's "metadata"
 * (docs/surfaces.md). The file is replaced as a whole, compressed when its name ends in .gz.
 */
#ifndef ATT_CLI_T4_FILE_H
#define ATT_CLI_T4_FILE_H

#include "attune/setting.h"
#include "base/status.h"

#include <jansson.h>
#include <stdint.h>

typedef struct att_t4_header {
    const char *name, *description, *source;
    const char *note;  /* NULL: none */
    const char *state; /* "complete" or "partial" */
    int collective;
    uint64_t bytes;
    const char *load, *type;
    const char *device;
    int device_units, ranks, nodes;
    att_setting_t native;     /* NCCL's own choice, KEEP where a knob was not seen */
    const float *cost_us;     /* [ATT_PAIR_COUNT], negative unknown; NULL: none known */
    const json_t *provenance; /* borrowed; NULL: none */
} att_t4_header_t;

typedef struct att_t4_sampled {
    att_setting_t setting;
    const char *timestamp; /* ISO 8601, UTC */
    const double *samples_us, *again_us;
    uint32_t sample_count, again_count;
    double time_us;      /* median as it was reported; 0: that of the samples counts */
    uint32_t time_count; /* samples behind time_us where the samples are not there */
    double at_least_us;  /* above 0: not measured, slower than this */
} att_t4_sampled_t;

/* One element of "results"; NULL without memory. */
json_t *att_t4_result(const att_t4_sampled_t *sampled);
/* Takes over `results`. */
int att_t4_write(const char *path, const att_t4_header_t *header, json_t *results,
                 att_error_t *error);

#endif
