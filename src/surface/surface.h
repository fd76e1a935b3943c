/*
 * surface: gives the duration of a collective for a setting, from a model in a JSON file.
 *
 * Used by the host fabric's model mode and by the tools. A surface belongs to one machine setup
 * (ranks, nodes, device) and covers one or more tasks (collective, bytes) and loads ("none",
 * "light", "heavy"). No randomness inside: noise and drift are put on by the caller.
 */
#ifndef ATT_SURFACE_SURFACE_H
#define ATT_SURFACE_SURFACE_H

#include "attune/setting.h"
#include "base/status.h"

#define ATT_SURFACE_LOADS 4

struct att_surface;

typedef struct att_surface_info {
    const char *name;        /* "a40-nvlink-8-allgather" */
    const char *description; /* one line */
    const char *source;      /* where the numbers come from */
    int ranks;
    int nodes;
    int device_units;     /* SMs of one device */
    int channels_ceiling; /* comm->nChannels */
    int load_count;
    const char *loads[ATT_SURFACE_LOADS];
    double noise; /* suggested relative standard deviation of one sample */
} att_surface_info_t;

/* `name` is a path, or a name looked up as <dir>/<name>.json in ATTUNE_DATA_DIR, then the source
 * tree's data/surfaces, then the installed data folder. */
int att_surface_open(const char *name, struct att_surface **surface, att_error_t *error);
/* Parse bytes (fuzzed). */
int att_surface_parse(const char *bytes, size_t length, struct att_surface **surface,
                      att_error_t *error);
void att_surface_close(struct att_surface *surface);
const att_surface_info_t *att_surface_info(const struct att_surface *surface);
/* Index of a load word, -1 unknown. */
int att_surface_load_index(const struct att_surface *surface, const char *load);

/* (algorithm, protocol) bits that NCCL would offer for this collective on this setup. */
uint32_t att_surface_pairs(const struct att_surface *surface, int collective);
/* NCCL's own choice with every knob filled in (transport, channels, threads, chunk_bytes). */
att_setting_t att_surface_default(const struct att_surface *surface, int collective,
                                  uint64_t bytes);
/* NCCL's default channels, threads, chunk and transport for a given pair: what holds for knobs
 * that a tuner keeps. */
att_setting_t att_surface_resolve(const struct att_surface *surface, int collective, uint64_t bytes,
                                  att_setting_t setting);
/* NCCL's (idle) cost estimate for the table that a tuner sees, microseconds; negative = IGNORE. */
double att_surface_cost_us(const struct att_surface *surface, int collective, uint64_t bytes,
                           int algorithm, int protocol);
/* Duration in microseconds under load `load`; the setting is resolved first. Negative when the
 * setting has no meaning (pair not offered, channels above the ceiling). */
double att_surface_duration_us(const struct att_surface *surface, int collective, uint64_t bytes,
                               att_setting_t setting, int load);

#endif
