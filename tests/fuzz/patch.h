/*
 * patch: eight bytes of an input that change something in a segment, as a wild write of a job
 * would. Used by the targets that attach hook and agent to a segment with mutated contents.
 */
#ifndef FUZZ_PATCH_H
#define FUZZ_PATCH_H

#include "base/segment.h"

typedef struct fuzz_patch {
    uint8_t op; /* below 128: patch the table op % 7; else the target's own action */
    uint8_t entry;
    uint16_t offset;
    uint32_t value;
} fuzz_patch_t;

/* Take the next one; false at the end of the input. */
bool fuzz_patch_next(const uint8_t **data, size_t *size, fuzz_patch_t *patch);
/* Write 4 bytes into one of the first entries of a table, or into the header. The waiting times are
 * then set to a microsecond again: a rank waits as long as they say. */
void fuzz_patch_apply(att_segment_memory_t *memory, const fuzz_patch_t *patch);
void fuzz_patch_waits(att_segment_memory_t *memory);

#endif
