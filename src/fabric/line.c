#include "fabric/line.h"

#include <stdatomic.h>
#include <string.h>

#define LL_DATA    4u
#define LL_LINE    8u
#define LL128_DATA 120u
#define LL128_LINE 128u
enum { LL = 0, LL128 = 1 };

size_t att_line_data(int protocol)
{
    return protocol == LL ? LL_DATA : LL128_DATA;
}

size_t att_line_bytes(int protocol, size_t data)
{
    return protocol == LL ? (data + LL_DATA - 1) / LL_DATA * LL_LINE
                          : (data + LL128_DATA - 1) / LL128_DATA * LL128_LINE;
}

/* Whole lines are copied with a length that the compiler knows; only the last may be shorter. */
static void write_ll_line(_Atomic uint64_t *line, uint32_t word, uint32_t flag)
{
    atomic_store_explicit(line, (uint64_t)flag << 32 | word, memory_order_release);
}

static void write_ll(uint8_t *slot, size_t offset, const uint8_t *data, size_t bytes, uint32_t flag)
{
    _Atomic uint64_t *line = (_Atomic uint64_t *)(void *)slot + offset / LL_DATA;
    size_t at = 0;
    for (; at + LL_DATA <= bytes; at += LL_DATA, line++) {
        uint32_t word;
        memcpy(&word, data + at, LL_DATA);
        write_ll_line(line, word, flag);
    }
    if (at < bytes) {
        uint32_t word = 0;
        memcpy(&word, data + at, bytes - at);
        write_ll_line(line, word, flag);
    }
}

static size_t read_ll(const uint8_t *slot, size_t offset, uint8_t *data, size_t bytes,
                      uint32_t flag)
{
    _Atomic uint64_t *line = (_Atomic uint64_t *)(void *)(uintptr_t)slot + offset / LL_DATA;
    for (size_t at = 0; at < bytes; at += LL_DATA, line++) {
        uint64_t both = atomic_load_explicit(line, memory_order_acquire);
        if ((uint32_t)(both >> 32) != flag)
            return at;
        uint32_t word = (uint32_t)both;
        if (bytes - at >= LL_DATA)
            memcpy(data + at, &word, LL_DATA);
        else
            memcpy(data + at, &word, bytes - at);
    }
    return bytes;
}

static _Atomic uint64_t *ll128_flag(const uint8_t *line)
{
    return (_Atomic uint64_t *)(void *)(uintptr_t)(line + LL128_DATA);
}

static void write_ll128(uint8_t *slot, size_t offset, const uint8_t *data, size_t bytes,
                        uint32_t flag)
{
    uint8_t *line = slot + offset / LL128_DATA * LL128_LINE;
    size_t at = 0;
    for (; at + LL128_DATA <= bytes; at += LL128_DATA, line += LL128_LINE) {
        memcpy(line, data + at, LL128_DATA);
        atomic_store_explicit(ll128_flag(line), flag, memory_order_release);
    }
    if (at < bytes) {
        memcpy(line, data + at, bytes - at);
        atomic_store_explicit(ll128_flag(line), flag, memory_order_release);
    }
}

static size_t read_ll128(const uint8_t *slot, size_t offset, uint8_t *data, size_t bytes,
                         uint32_t flag)
{
    const uint8_t *line = slot + offset / LL128_DATA * LL128_LINE;
    for (size_t at = 0; at < bytes; at += LL128_DATA, line += LL128_LINE) {
        if (atomic_load_explicit(ll128_flag(line), memory_order_acquire) != flag)
            return at;
        if (bytes - at >= LL128_DATA)
            memcpy(data + at, line, LL128_DATA);
        else
            memcpy(data + at, line, bytes - at);
    }
    return bytes;
}

void att_line_write(int protocol, uint8_t *slot, size_t offset, const void *data, size_t bytes,
                    uint32_t flag)
{
    if (protocol == LL)
        write_ll(slot, offset, data, bytes, flag);
    else
        write_ll128(slot, offset, data, bytes, flag);
}

size_t att_line_read(int protocol, const uint8_t *slot, size_t offset, void *data, size_t bytes,
                     uint32_t flag)
{
    return protocol == LL ? read_ll(slot, offset, data, bytes, flag)
                          : read_ll128(slot, offset, data, bytes, flag);
}
