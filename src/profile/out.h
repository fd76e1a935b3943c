/*
 * out: a text file that is written fast: buffered, compressed when its name ends in ".gz", numbers
 * without printf. Errors are kept and told by close. The file gets its name when it is whole: until
 * then it is <name>.tmp, and what stood there before stays.
 */
#ifndef ATT_PROFILE_OUT_H
#define ATT_PROFILE_OUT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define ATT_OUT_BUFFER 262144u

typedef struct att_out {
    void *gzip;     /* gzFile; plain text passes through it unchanged */
    uint64_t bytes; /* of text so far, before compression */
    uint32_t used;
    int failed;       /* errno of the first write that failed; 0: none */
    char path[4096];  /* as it was given */
    char place[4096]; /* where it is written until it is whole; "": at once in place */
    char buffer[ATT_OUT_BUFFER];
} att_out_t;

/* "-" is standard output; what is there and no regular file (a pipe, a device) is written in place.
 * -ATT_ESYSTEM with the path. */
int att_out_open(att_out_t *out, const char *path, att_error_t *error);
/* 0, or -ATT_ESYSTEM when anything could not be written: then nothing is left of it. */
int att_out_close(att_out_t *out, att_error_t *error);
/* Instead of close: what was written is given up, and nothing is left of it. */
void att_out_discard(att_out_t *out);

void att_out_bytes(att_out_t *out, const char *bytes, size_t size);
void att_out_text(att_out_t *out, const char *text);
#define att_out_literal(out, literal) att_out_bytes(out, literal, sizeof(literal) - 1)
/* A JSON string with its quotes. */
void att_out_string(att_out_t *out, const char *text);
void att_out_u64(att_out_t *out, uint64_t number);
void att_out_i64(att_out_t *out, int64_t number);
/* Nanoseconds as microseconds with three decimals: 1234567 -> 1234.567. */
void att_out_us(att_out_t *out, int64_t ns);
/* "%.6g" */
void att_out_real(att_out_t *out, double number);
void att_out_hex(att_out_t *out, uint64_t number); /* 0x... */

#endif
