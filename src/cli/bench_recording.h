/*
 * bench_recording: one surface being recorded: which settings, what was measured of each, and what
 * is to be measured next. Only driver 0 has one.
 *
 * Every sample goes to a journal (NAME.partial.jsonl) at once, in one write, so that a killed
 * recording goes on where it was; a line that is not whole is dropped. The T4 file is replaced now
 * and then and is always valid; with its last, complete version the journal goes away.
 *
 * A setting whose first calls are slow (bench_candidate.h) gets the shorter of them as its only
 * sample.
 *
 * Order: settings are shuffled anew in each pass, so that drift of the machine does not favour any.
 * Then the best share of the grid and NCCL's choice are measured again, interleaved. A setting
 * outside of these that looked faster than the best of them turns out joins them, until there is
 * none: the optimum is then the best of many samples, not the luckiest of few. The fastest of many
 * medians is still a lucky one, so that at last the front is settled: the fastest few get more
 * samples, pass by pass, and who moves up as the lucky ones fall back gets as many.
 */
#ifndef ATT_CLI_BENCH_RECORDING_H
#define ATT_CLI_BENCH_RECORDING_H

#include "cli/bench_candidate.h"
#include "cli/t4_file.h"

#include <stdbool.h>

typedef enum att_recording_kind {
    ATT_RECORDING_PROBE = 0, /* one call: att_recording_probe */
    ATT_RECORDING_GRID = 1,  /* a sample: att_recording_sample */
    ATT_RECORDING_AGAIN = 2
} att_recording_kind_t;

typedef struct att_recording_point {
    att_setting_t setting;
    double *samples, *again; /* microseconds */
    double *again_sorted;    /* the shortest first */
    uint32_t sample_count, again_count, again_room, again_wanted;
    double first_us; /* the shorter of its probes; 0: not yet */
    int probes;
    double median_us, again_median_us;
    bool refused, slow;
    int64_t when; /* of its first sample, seconds since 1970 */
} att_recording_point_t;

typedef struct att_recording {
    char path[4096], journal[4096];
    int fd;                        /* of the journal */
    att_t4_header_t header;        /* borrowed strings */
    att_recording_point_t *points; /* [0] is NCCL's choice */
    int count;
    int repeats, again, front, front_samples;
    double again_share;
    uint64_t seed;
    double native_us[ATT_NATIVE_CALLS]; /* probes of NCCL's choice, made anew when going on */
    bool hurry; /* no further passes over the grid: measure the best again */
    /* where next looks */
    int *order, round, at;
    bool choosing_done, settling;
} att_recording_t;

typedef struct att_recording_plan {
    int repeats, again;
    double again_share;
    int front;         /* the fastest settings, which are settled; 0: none */
    int front_samples; /* of the second measurement, that each of them has then, at least */
    uint64_t seed;
    int batch; /* calls a sample: samples of another batch do not go with these */
} att_recording_plan_t;

/* True when the surface is there and complete. */
bool att_recording_is_complete(const char *path);
/* `settings` [count], NCCL's choice first. Reads the journal if there is one; -ATT_EMISMATCH when
 * it is of another grid, batch or NCCL. */
int att_recording_open(const char *path, const att_t4_header_t *header, const char *nccl_version,
                       const att_recording_plan_t *plan, const att_setting_t *settings, int count,
                       att_recording_t *recording, att_error_t *error);
void att_recording_close(att_recording_t *recording);

/* The next thing to measure; false: everything is. */
bool att_recording_next(att_recording_t *recording, int *index, att_recording_kind_t *kind);
/* What was measured. */
int att_recording_probe(att_recording_t *recording, int index, double us, att_error_t *error);
int att_recording_sample(att_recording_t *recording, int index, att_recording_kind_t kind,
                         double us, att_error_t *error);
int att_recording_refuse(att_recording_t *recording, int index, att_error_t *error);
/* Samples that are there already, of both measurements. */
uint64_t att_recording_samples(const att_recording_t *recording);
/* The fastest so far, by `again` where there are any. -1 without samples. */
int att_recording_best(const att_recording_t *recording);
/* Write the surface; complete: the journal goes away. */
int att_recording_save(att_recording_t *recording, bool complete, att_error_t *error);

#endif
