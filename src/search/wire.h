/*
 * wire: length-prefixed binary messages over a stream socket between the sidecar and a strategy
 * worker. Both ends are one program on one machine, so structs travel as they are.
 *
 * A message is {uint32 payload length, uint32 kind, payload}. On a nonblocking socket nothing here
 * waits: what the socket does not take is kept and sent later.
 */
#ifndef ATT_SEARCH_WIRE_H
#define ATT_SEARCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define ATT_WIRE_LONGEST (1u << 20) /* a longer message is an error */

struct att_wire;

/* Takes the socket over. NULL without memory (the socket is then closed). */
struct att_wire *att_wire_open(int fd);
void att_wire_close(struct att_wire *wire); /* NULL is fine */
int att_wire_fd(const struct att_wire *wire);

/* One piece of a payload. */
typedef struct att_wire_part {
    const void *bytes;
    size_t length;
} att_wire_part_t;

/* Queue one message and send what the socket takes. 0, or -1: the peer is gone or no memory. */
int att_wire_put(struct att_wire *wire, uint32_t kind, const att_wire_part_t *parts,
                 unsigned count);
/* Send more of what is queued. 0 or -1. */
int att_wire_flush(struct att_wire *wire);

/* Take one message. 1: *payload is valid until the next call; 0: none yet (nonblocking socket);
 * -1: the peer closed, or sent something malformed. */
int att_wire_get(struct att_wire *wire, uint32_t *kind, const uint8_t **payload, size_t *length);

/* Reads a payload piece by piece; `bad` is set and zeros are given when it is too short. */
typedef struct att_wire_reader {
    const uint8_t *at;
    size_t left;
    int bad;
} att_wire_reader_t;

void att_wire_read(att_wire_reader_t *reader, void *out, size_t length);
/* A pointer into the payload to `length` bytes, NULL when it is too short. */
const void *att_wire_peek(att_wire_reader_t *reader, size_t length);

#endif
