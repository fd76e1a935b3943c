/*
 * surface: gives the duration of a collective for a setting: from a model, or from a recording.
 *
 * Used by the host fabric's model mode and by the tools. A surface belongs to one machine setup
 * (ranks, nodes, device) and covers one or more tasks (collective, bytes) and loads ("none",
 * "light", "heavy"). No randomness inside: noise and drift are put on by the caller.
 *
 * Three forms are read, told apart by their first bytes, each plain or gzip (docs/surfaces.md):
 *   modelled   JSON with constants of the two-phase model; answers for every legal setting
 *   recorded   Kernel Tuner's T4 JSON, with the task under "metadata"; answers for what it recorded
 *   recorded   CSV
 * collective,ranks,bytes,algorithm,protocol,transport,channels,threads,chunk,time_us
 *
 * A recorded surface answers a setting that lies between recorded ones with the recorded setting
 * nearest to it (att_surface_nearest); att_surface_space gives the values that were recorded.
 */
#ifndef ATT_SURFACE_SURFACE_H
#define ATT_SURFACE_SURFACE_H

#include "attune/strategy.h"
#include "base/status.h"

#include <stddef.h>

#define ATT_SURFACE_LOADS     4
#define ATT_SURFACE_TASKS     64
#define ATT_SURFACE_SUBSPACES (ATT_PAIR_COUNT * (ATT_TRANSPORT_COUNT + 1) * 2)
/* Largest file, and largest text in a compressed one. */
#define ATT_SURFACE_BYTES_MAX (32u << 20)

struct att_surface;

typedef enum att_surface_kind {
    ATT_SURFACE_MODELLED = 0,
    ATT_SURFACE_RECORDED = 1
} att_surface_kind_t;

typedef struct att_surface_task {
    int collective; /* att_collective_t */
    uint64_t bytes;
} att_surface_task_t;

typedef struct att_surface_info {
    const char *name;        /* "a40-nvlink-8-allgather" */
    const char *description; /* one line */
    const char *source;      /* where the numbers come from */
    int ranks;
    int nodes;
    int device_units;     /* SMs of one device */
    int channels_ceiling; /* comm->nChannels */
    int load_count;
    const char *loads[ATT_SURFACE_LOADS]; /* a recorded surface has one, not always "none" */
    double noise; /* relative standard deviation of one sample: suggested, or that of the recorded
                     samples (robust; 0 when each setting has one sample) */
    att_surface_kind_t kind;
    int task_count; /* modelled: what the constants were fitted to; recorded: what there is */
    att_surface_task_t tasks[ATT_SURFACE_TASKS];
} att_surface_info_t;

/* A recorded setting. */
typedef struct att_surface_point {
    att_setting_t setting;
    double time_us;  /* median of the `again` samples, else of the samples, else as recorded */
    int at_least;    /* not measured to the end: it takes time_us or longer */
    uint32_t record; /* line of the CSV, element of T4's "results" */
    uint32_t sample_count, again_count;
    const double *samples_us; /* raw, as recorded; may be none */
    const double *again_us;   /* of the second, interleaved measurement of the best settings */
} att_surface_point_t;

/* `name` is a path (it has a '/', or ends in .json, .csv or .gz), or a name looked up as
 * <dir>/<name>.json, .json.gz and .csv in the folders of att_surface_folders (file.h). */
int att_surface_open(const char *name, struct att_surface **surface, att_error_t *error);
/* Parse bytes of any of the forms (fuzzed). */
int att_surface_parse(const char *bytes, size_t length, struct att_surface **surface,
                      att_error_t *error);
void att_surface_close(struct att_surface *surface);
const att_surface_info_t *att_surface_info(const struct att_surface *surface);
/* Index of a load word, -1 unknown. */
int att_surface_load_index(const struct att_surface *surface, const char *load);

/* (algorithm, protocol) bits that NCCL would offer for this collective on this setup. */
uint32_t att_surface_pairs(const struct att_surface *surface, int collective);
/* Modelled: every pair of it runs over this transport. */
bool att_surface_has_transport(const struct att_surface *surface, int transport);
/* NCCL's own choice with every knob filled in (transport, channels, threads, chunk_bytes).
 * Recorded: what was noted of it, the rest kept; all kept when nothing was noted. The duration of
 * ATT_SETTING_KEEP is that of NCCL's choice for both kinds. */
att_setting_t att_surface_default(const struct att_surface *surface, int collective,
                                  uint64_t bytes);
/* NCCL's default channels, threads, chunk and transport for a given pair: what holds for knobs
 * that a tuner keeps. Recorded: the setting as it is. */
att_setting_t att_surface_resolve(const struct att_surface *surface, int collective, uint64_t bytes,
                                  att_setting_t setting);
/* NCCL's (idle) cost estimate for the table that a tuner sees, microseconds; negative = IGNORE,
 * or not recorded. */
double att_surface_cost_us(const struct att_surface *surface, int collective, uint64_t bytes,
                           int algorithm, int protocol);
/* Duration in microseconds under load `load`; the setting is resolved first. Negative when the
 * setting has no meaning (pair not offered, channels above the ceiling), or lies outside of what
 * was recorded. */
double att_surface_duration_us(const struct att_surface *surface, int collective, uint64_t bytes,
                               att_setting_t setting, int load);

/* What strategies may search: one subspace per pair (modelled with `all_knobs`, or recorded so: per
 * pair and transport), sorted by prior_us. Without `all_knobs` a modelled surface leaves out what
 * stock NCCL cannot set per call, threads and transport. Recorded: the hull of the recorded values,
 * with their greatest common step; settings that keep the threads are a subspace of their own.
 * Returns the count (0: the task is not there); `subspaces` has room for ATT_SURFACE_SUBSPACES. */
uint32_t att_surface_space(const struct att_surface *surface, int collective, uint64_t bytes,
                           int all_knobs, att_subspace_t *subspaces);
/* Recorded: the recorded setting that answers for `setting`, of the same algorithm, protocol and
 * transport: nearest in the logarithms of channels, threads and chunk; the smaller one of two
 * equally near; a kept knob is met by a kept one if there is, else by the largest. Modelled: the
 * setting itself. ATT_SETTING_KEEP when NCCL's choice answers or nothing does (duration < 0). */
att_setting_t att_surface_nearest(const struct att_surface *surface, int collective, uint64_t bytes,
                                  att_setting_t setting);
/* The fastest setting of the space and its duration. Modelled: every value of channels and chunk;
 * with `all_knobs` chunks in steps of 3 %, then every chunk near the best. Takes up to a second.
 * Negative when the task or load is not there. */
double att_surface_optimum(const struct att_surface *surface, int collective, uint64_t bytes,
                           int load, int all_knobs, att_setting_t *setting);
/* Recorded: all settings of a task, sorted by algorithm, protocol, transport, channels, threads,
 * chunk (keep first). NULL and 0 otherwise. Valid until close. */
const att_surface_point_t *att_surface_points(const struct att_surface *surface, int collective,
                                              uint64_t bytes, size_t *count);
/* Recorded: sample / median - 1 of every raw sample of settings with at least 5, to draw noise
 * from. NULL and 0 when there are none. */
const double *att_surface_residuals(const struct att_surface *surface, int collective,
                                    uint64_t bytes, size_t *count);

#endif
