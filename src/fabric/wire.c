#include "fabric/wire.h"

#include "base/clock.h"
#include "fabric/copy.h"
#include "fabric/line.h"

#include <string.h>

enum { SIMPLE = 2 };

/* Part of a chunk that is handled at a time in the line protocols: a multiple of both lines' data
 * and of every element size. */
#define PART 3840u

#define SLOTS_MOST 8u

void att_wire_open(att_wire_t *wire, att_arena_t *arena, int sender, int channel,
                   att_wire_kind_t kind)
{
    memset(wire, 0, sizeof *wire);
    wire->shared = att_arena_wire(arena, sender, channel, kind);
    for (int p = 0; p < 3; p++)
        wire->slots[p] = att_arena_slots(arena, sender, channel, kind, p, &wire->bytes[p]);
}

static size_t slot_size(int protocol, size_t chunk)
{
    size_t size = protocol == SIMPLE ? chunk : att_line_bytes(protocol, chunk);
    return (size + 127) / 128 * 128;
}

static uint32_t slots_of(size_t total, size_t size)
{
    size_t count = total / size;
    return count > SLOTS_MOST ? SLOTS_MOST : (uint32_t)count;
}

uint32_t att_wire_slot_count(const att_wire_t *wire, int protocol, size_t chunk)
{
    return slots_of(wire->bytes[protocol], slot_size(protocol, chunk));
}

/* Where the next step's chunk lies. Both ends compute the same. */
static uint8_t *next_slot(const att_wire_t *wire, int protocol, size_t size, uint32_t slots)
{
    return wire->slots[protocol] + wire->steps[protocol] % slots * size;
}

static ncclResult_t wait_for_room(const att_transfer_t *transfer, att_wire_t *out, size_t size,
                                  uint32_t slots)
{
    int p = transfer->protocol;
    att_arena_flow_t *flow = &out->shared->flows[p];
    /* Slots of another size overlap what is still unread: start with an empty wire. */
    uint32_t open = out->slot_size[p] == size ? slots : 1;
    if (out->reserved[p] < slots * size) {
        ncclResult_t result = att_arena_reserve(transfer->arena, out->slots[p], slots * size);
        if (result != ncclSuccess)
            return result;
        out->reserved[p] = slots * size;
    }
    out->slot_size[p] = (uint32_t)size;
    uint32_t needed = out->steps[p] + 1 - open; /* steps that the receiver must be through with */
    if (att_signal_reached(&flow->head, needed))
        return ncclSuccess;
    return att_arena_wait(transfer->arena, &flow->head, needed);
}

static void finish(const att_transfer_t *transfer, const att_step_t *step)
{
    int p = transfer->protocol;
    if (step->out)
        att_signal_set(&step->out->shared->flows[p].tail, ++step->out->steps[p]);
    if (step->in)
        att_signal_set(&step->in->shared->flows[p].head, ++step->in->steps[p]);
}

/* The arithmetic of a step: incoming (NULL: none) and source into `into`. */
static void combine(const att_transfer_t *transfer, const att_step_t *step, void *into,
                    const void *incoming, const void *source, size_t bytes)
{
    if (incoming && source) {
        size_t count = bytes / att_datatype_size(transfer->type);
        att_datatype_reduce(into, incoming, source, count, transfer->type, transfer->op);
        if (step->last && transfer->op == ncclAvg)
            att_datatype_scale(into, count, transfer->type, transfer->ranks);
    } else {
        att_copy(into, incoming ? incoming : source, bytes);
    }
}

static void simple_step(const att_transfer_t *transfer, const att_step_t *step,
                        const uint8_t *incoming, uint8_t *outgoing)
{
    if (outgoing) {
        combine(transfer, step, outgoing, incoming, step->source, step->bytes);
        if (step->target && (incoming || step->target != step->source))
            att_copy(step->target, outgoing, step->bytes);
    } else if (step->target) {
        combine(transfer, step, step->target, incoming, step->source, step->bytes);
    }
}

/* Read a part; sleep when the sender is not running. */
static ncclResult_t read_part(const att_transfer_t *transfer, att_wire_t *in, const uint8_t *slot,
                              size_t offset, uint8_t *part, size_t bytes)
{
    int p = transfer->protocol;
    uint32_t flag = in->steps[p] + 1;
    size_t done = 0;
    for (int spins = att_signal_spins(); spins > 0; spins--) {
        done += att_line_read(p, slot, offset + done, part + done, bytes - done, flag);
        if (done == bytes)
            return ncclSuccess;
        att_clock_pause();
    }
    ncclResult_t result = att_arena_wait(transfer->arena, &in->shared->flows[p].tail, flag);
    if (result == ncclSuccess)
        att_line_read(p, slot, offset + done, part + done, bytes - done, flag);
    return result;
}

static ncclResult_t line_step(const att_transfer_t *transfer, const att_step_t *step,
                              const uint8_t *in_slot, uint8_t *out_slot)
{
    _Alignas(64) uint8_t incoming[PART], outgoing[PART];
    const uint8_t *source = step->source;
    uint8_t *target = step->target;
    for (size_t at = 0; at < step->bytes; at += PART) {
        size_t bytes = step->bytes - at < PART ? step->bytes - at : PART;
        if (in_slot) {
            ncclResult_t result = read_part(transfer, step->in, in_slot, at, incoming, bytes);
            if (result != ncclSuccess)
                return result;
        }
        const uint8_t *value;
        if (in_slot && source) {
            combine(transfer, step, outgoing, incoming, source + at, bytes);
            value = outgoing;
        } else {
            value = in_slot ? incoming : source + at;
        }
        if (target)
            att_copy(target + at, value, bytes);
        if (out_slot)
            att_line_write(transfer->protocol, out_slot, at, value, bytes,
                           step->out->steps[transfer->protocol] + 1);
    }
    return ncclSuccess;
}

ncclResult_t att_wire_step(const att_transfer_t *transfer, const att_step_t *step)
{
    if (step->bytes == 0)
        return ncclSuccess;
    int p = transfer->protocol;
    size_t size = slot_size(p, transfer->chunk);
    const uint8_t *in_slot = NULL;
    uint8_t *out_slot = NULL;
    ncclResult_t result = ncclSuccess;
    if (step->out) {
        uint32_t slots = slots_of(step->out->bytes[p], size);
        result = wait_for_room(transfer, step->out, size, slots);
        out_slot = next_slot(step->out, p, size, slots);
    }
    if (result == ncclSuccess && step->in) {
        uint32_t slots = slots_of(step->in->bytes[p], size);
        in_slot = next_slot(step->in, p, size, slots);
        if (p == SIMPLE)
            result = att_arena_wait(transfer->arena, &step->in->shared->flows[p].tail,
                                    step->in->steps[p] + 1);
    }
    if (result != ncclSuccess)
        return result;
    if (p == SIMPLE)
        simple_step(transfer, step, in_slot, out_slot);
    else
        result = line_step(transfer, step, in_slot, out_slot);
    if (result == ncclSuccess)
        finish(transfer, step);
    return result;
}
