/*
 * ring: records of one process. Hot path: no allocation, no lock, no system call, bounded loops.
 *
 * Many threads of the hook's process write, the agent alone reads. A full ring drops the new
 * record and counts it; nothing is ever overwritten.
 */
#ifndef ATT_BASE_RING_H
#define ATT_BASE_RING_H

#include "base/segment.h"

/* Once, by the process that owns the ring, before the first put. */
static inline void att_ring_init(att_ring_t *ring)
{
    for (uint64_t i = 0; i < ATT_RING; i++)
        atomic_store_explicit(&ring->cells[i].seq, i, memory_order_relaxed);
    atomic_store(&ring->head, 0);
    atomic_store(&ring->tail, 0);
    atomic_store(&ring->dropped, 0);
}

/* False when the record was dropped. */
static inline bool att_ring_put(att_ring_t *ring, const att_record_t *record)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    for (int tries = 0; tries < 64; tries++) {
        att_cell_t *cell = &ring->cells[head % ATT_RING];
        uint64_t seq = atomic_load_explicit(&cell->seq, memory_order_acquire);
        if (seq == head) {
            if (atomic_compare_exchange_weak_explicit(&ring->head, &head, head + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                cell->record = *record;
                atomic_store_explicit(&cell->seq, head + 1, memory_order_release);
                return true;
            }
        } else if (seq < head) {
            break; /* full */
        } else {
            head = atomic_load_explicit(&ring->head, memory_order_relaxed);
        }
    }
    atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
    return false;
}

/* False when the ring is empty. The agent only. */
static inline bool att_ring_get(att_ring_t *ring, att_record_t *record)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    att_cell_t *cell = &ring->cells[tail % ATT_RING];
    if (atomic_load_explicit(&cell->seq, memory_order_acquire) != tail + 1)
        return false;
    *record = cell->record;
    atomic_store_explicit(&cell->seq, tail + ATT_RING, memory_order_release);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_relaxed);
    return true;
}

#endif
