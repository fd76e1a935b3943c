/*
 * bench_record_options: the command line of `attune record`: what is recorded is its own, who
 * runs the collectives and what runs beside is `attune bench`'s.
 */
#ifndef ATT_CLI_BENCH_RECORD_OPTIONS_H
#define ATT_CLI_BENCH_RECORD_OPTIONS_H

#include "cli/bench_options.h"

#define ATT_RECORD_VALUES 128

typedef struct att_record_options {
    const char *from_sweep;  /* convert this instead of measuring */
    const char *out;         /* folder */
    const char *prefix;      /* of the surfaces' names */
    const char *device;      /* NULL: as the device names itself */
    const char *description; /* NULL: made up from the task */
    int device_units;        /* 0: as the device says */
    /* The grid; the counts are 0 where the default is meant. */
    uint32_t channels[ATT_RECORD_VALUES], chunks[ATT_RECORD_VALUES], threads[ATT_RECORD_VALUES];
    int channel_count, chunk_count, thread_count;
    int repeats;        /* samples of each setting */
    int again;          /* samples of the best ones, measured again */
    double again_share; /* of the grid */
    int front;          /* the fastest settings, which get more; 0: none does */
    int front_samples;  /* that each of these has then, at least; 0: no more */
    double budget_s;    /* for everything; 0: as long as it takes */
} att_record_options_t;

/* Takes record's own words out of argv and leaves the rest for bench, whose options are filled.
 * 0; or -ATT_EUSAGE with one line; empty text: help was asked for. */
int att_record_options_parse(att_record_options_t *options, att_bench_options_t *bench, int argc,
                             char **argv, att_error_t *error);
void att_record_options_help(FILE *out);

#endif
