/*
 * wire: one direction between two ranks on one channel, and the step that moves a chunk along.
 *
 * A step takes a chunk from the incoming wire or from memory, reduces it with memory where asked,
 * and gives it to the outgoing wire, to memory, or both. Three protocols, after NCCL's: Simple  a
 * chunk is copied into a slot, then the slot is announced LL      lines of 8 bytes, 4 of data and 4
 * of flag, readable one by one LL128   lines of 128 bytes, 120 of data and 8 of flag Sender and
 * receiver of a wire go through the same sequence of steps; slots are reused in order.
 */
#ifndef ATT_FABRIC_WIRE_H
#define ATT_FABRIC_WIRE_H

#include "fabric/arena.h"
#include "fabric/datatype.h"

/* This rank's end of a wire; flow counters are kept here and published in the arena. */
typedef struct att_wire {
    att_arena_wire_t *shared; /* NULL: there is no such neighbour */
    uint8_t *slots[3];
    size_t bytes[3];       /* of the slots */
    size_t reserved[3];    /* sender: bytes from the start of the slots that are allocated */
    uint32_t steps[3];     /* steps taken by this end */
    uint32_t slot_size[3]; /* of the last step: another size needs an empty wire */
} att_wire_t;

/* How the steps of one task on one channel go. */
typedef struct att_transfer {
    att_arena_t *arena;
    int protocol;
    size_t chunk; /* bytes of the largest step */
    ncclDataType_t type;
    ncclRedOp_t op;
    int ranks;
} att_transfer_t;

typedef struct att_step {
    att_wire_t *in;     /* NULL: nothing comes in */
    att_wire_t *out;    /* NULL: nothing goes out */
    const void *source; /* memory to send, or to reduce with what comes in; NULL: none */
    void *target;       /* memory that also gets the result; NULL: none */
    size_t bytes;
    bool last; /* the result is final: an average is divided */
} att_step_t;

void att_wire_open(att_wire_t *wire, att_arena_t *arena, int sender, int channel,
                   att_wire_kind_t kind);
/* Slots for a chunk size and protocol, the same on both ends: 2 to 8. */
uint32_t att_wire_slot_count(const att_wire_t *wire, int protocol, size_t chunk);
/* A step of 0 bytes does nothing on either end. */
ncclResult_t att_wire_step(const att_transfer_t *transfer, const att_step_t *step);

#endif
