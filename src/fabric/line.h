/*
 * line: data and flag in one line, so that a receiver may read a chunk while it is being written.
 *
 * A line is good when its flag is the step's number + 1; older flags in a reused slot are smaller
 * and a new slot is zero.
 */
#ifndef ATT_FABRIC_LINE_H
#define ATT_FABRIC_LINE_H

#include "fabric/nccl_abi.h"

#include <stdbool.h>

/* Bytes of lines for so many bytes of data. */
size_t att_line_bytes(int protocol, size_t data);
/* Data bytes of one line: 4 (LL) or 120 (LL128). */
size_t att_line_data(int protocol);
/* Write bytes [0, bytes) at data offset `offset` of the slot; offset is a multiple of a line. */
void att_line_write(int protocol, uint8_t *slot, size_t offset, const void *data, size_t bytes,
                    uint32_t flag);
/* Read the same way; stops at the first line that is not there and returns the bytes read. */
size_t att_line_read(int protocol, const uint8_t *slot, size_t offset, void *data, size_t bytes,
                     uint32_t flag);

#endif
