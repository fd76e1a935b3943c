/* trace mode: what --trace asks for: off, on[:SIZE], ring:SIZE. */
#ifndef ATT_PROFILE_TRACE_MODE_H
#define ATT_PROFILE_TRACE_MODE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_TRACE_LIMIT (16ull << 30) /* bytes a node of "on" without a size */

typedef struct att_trace_mode {
    bool on, ring;
    uint64_t limit_bytes; /* a node */
} att_trace_mode_t;

/* -ATT_EUSAGE with `where` in the text. */
int att_trace_mode_parse(const char *text, const char *where, att_trace_mode_t *mode,
                         att_error_t *error);
/* The inverse; 40 bytes are enough. Returns text. */
const char *att_trace_mode_text(const att_trace_mode_t *mode, char *text, size_t size);

#endif
