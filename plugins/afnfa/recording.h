/*
 * recording: settings and their durations, read from a file that somebody measured: Kernel Tuner's
 * T4 (JSON) as attune record writes it, or CSV with a header row, also gzip. Columns that count in
 * CSV: algorithm, protocol, transport, channels, threads, chunk (or chunk_bytes), measured_us (or
 * time_us), and collective and bytes where they are there; so what attune sim --trace writes will
 * do.
 */
#ifndef ATT_AFNFA_RECORDING_H
#define ATT_AFNFA_RECORDING_H

#include "attune/setting.h"

#define RECORDING_ROWS 100000
#define RECORDING_MOST (64u << 20) /* bytes, inflated */

typedef struct recorded {
    att_setting_t setting;
    int collective; /* -1 unknown */
    uint64_t bytes; /* 0 unknown */
    double us;
} recorded_t;

typedef struct recording {
    recorded_t *rows;
    int count;
} recording_t;

/* Rows of a file's bytes, after which stands a NUL; they are changed. Added to `recording`, whose
 * rows have room for RECORDING_ROWS. 0, or -1 and one line in `why`. */
int recording_parse(char *text, size_t length, recording_t *recording, char *why, size_t size);
/* Rows of FILE[:FILE...]. 0, or -1 and one line in `why`. */
int recording_read_all(const char *files, recording_t *recording, char *why, size_t size);
void recording_free(recording_t *recording);

#endif
