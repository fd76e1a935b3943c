/*
 * handle: what the profiler gives NCCL for an event. A value, not a pointer: a late or repeated
 * callback finds its context by index and is recognised by its serial number, whatever has been
 * closed meanwhile.
 */
#ifndef ATT_HOOK_HANDLE_H
#define ATT_HOOK_HANDLE_H

#include <stdint.h>

typedef enum att_handle_kind {
    ATT_HANDLE_NONE = 0,
    ATT_HANDLE_API = 1,    /* serial of the batch that the call belongs to */
    ATT_HANDLE_COLL = 2,   /* the same, of a call that is being timed */
    ATT_HANDLE_KERNEL = 3, /* the same, and the channel */
    ATT_HANDLE_TICKET = 4  /* serial of a ticket: hook/chain_profiler.h */
} att_handle_kind_t;

/* bits: kind 0-2, channel 3-10, context 11-22, serial 23-62 */
#define ATT_CONTEXT_BITS 12
#define ATT_SERIAL_BITS  40
#define ATT_SERIAL_MASK  (((uint64_t)1 << ATT_SERIAL_BITS) - 1)

typedef struct att_handle {
    att_handle_kind_t kind;
    uint32_t channel;
    uint32_t context;
    uint64_t serial;
} att_handle_t;

_Static_assert(sizeof(void *) == 8, "a handle needs 63 bits");

static inline void *att_handle_pack(att_handle_kind_t kind, uint32_t context, uint64_t serial,
                                    uint32_t channel)
{
    return (void *)(uintptr_t)((uint64_t)kind | ((uint64_t)(channel & 255) << 3) |
                               ((uint64_t)context << 11) | ((serial & ATT_SERIAL_MASK) << 23));
}

static inline att_handle_t att_handle_unpack(const void *pointer)
{
    uint64_t word = (uint64_t)(uintptr_t)pointer;
    return (att_handle_t){.kind = (att_handle_kind_t)(word & 7),
                          .channel = (uint32_t)(word >> 3) & 255,
                          .context = (uint32_t)(word >> 11) & ((1u << ATT_CONTEXT_BITS) - 1),
                          .serial = (word >> 23) & ATT_SERIAL_MASK};
}

#endif
