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

static void write_ll(uint8_t *slot, size_t offset, const uint8_t *data, size_t bytes, uint32_t flag)
{
    _Atomic uint64_t *line = (_Atomic uint64_t *)(void *)slot + offset / LL_DATA;
    for (size_t at = 0; at < bytes; at += LL_DATA, line++) {
        uint32_t word = 0;
        memcpy(&word, data + at, bytes - at < LL_DATA ? bytes - at : LL_DATA);
        atomic_store_explicit(line, (uint64_t)flag << 32 | word, memory_order_release);
    }
}

static size_t read_ll(const uint8_t *slot, size_t offset, uint8_t *data, size_t bytes,
                      uint32_t flag)
{
    const _Atomic uint64_t *line = (const _Atomic uint64_t *)(const void *)slot + offset / LL_DATA;
    for (size_t at = 0; at < bytes; at += LL_DATA, line++) {
        uint64_t both = atomic_load_explicit((_Atomic uint64_t *)line, memory_order_acquire);
        if ((uint32_t)(both >> 32) != flag)
            return at;
        uint32_t word = (uint32_t)both;
        memcpy(data + at, &word, bytes - at < LL_DATA ? bytes - at : LL_DATA);
    }
    return bytes;
}

static void write_ll128(uint8_t *slot, size_t offset, const uint8_t *data, size_t bytes,
                        uint32_t flag)
{
    uint8_t *line = slot + offset / LL128_DATA * LL128_LINE;
    for (size_t at = 0; at < bytes; at += LL128_DATA, line += LL128_LINE) {
        memcpy(line, data + at, bytes - at < LL128_DATA ? bytes - at : LL128_DATA);
        atomic_store_explicit((_Atomic uint64_t *)(void *)(line + LL128_DATA), flag,
                              memory_order_release);
    }
}

static size_t read_ll128(const uint8_t *slot, size_t offset, uint8_t *data, size_t bytes,
                         uint32_t flag)
{
    const uint8_t *line = slot + offset / LL128_DATA * LL128_LINE;
    for (size_t at = 0; at < bytes; at += LL128_DATA, line += LL128_LINE) {
        if (atomic_load_explicit((_Atomic uint64_t *)(void *)(line + LL128_DATA),
                                 memory_order_acquire) != flag)
            return at;
        memcpy(data + at, line, bytes - at < LL128_DATA ? bytes - at : LL128_DATA);
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
