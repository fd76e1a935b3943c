#include "hook/preload_comm.h"

#include <pthread.h>

#define PROBES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of adding and removing */
static att_preload_comm_t table[ATT_PRELOAD_COMMS];

static uint32_t place_of(const void *comm)
{
    return (uint32_t)(((uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15u) >> 40);
}

att_preload_comm_t *att_preload_comm_find(void *comm)
{
    uint32_t at = place_of(comm);
    if (comm == NULL || comm == ATT_PRELOAD_GONE)
        return NULL;
    for (uint32_t i = 0; i < PROBES; i++, at++) {
        att_preload_comm_t *entry = &table[at % ATT_PRELOAD_COMMS];
        void *there = atomic_load_explicit(&entry->comm, memory_order_acquire);
        if (there == comm)
            return entry;
        if (there == NULL)
            return NULL;
    }
    return NULL;
}

att_preload_comm_t *att_preload_comm_add(void *comm, const att_preload_copy_t *copy,
                                         att_context_t *context)
{
    int ranks = 0, rank = 0;
    att_preload_comm_t *entry = att_preload_comm_find(comm);
    if (entry != NULL || comm == NULL || copy->comm_count == NULL || copy->comm_rank == NULL ||
        copy->comm_count(comm, &ranks) != 0 || copy->comm_rank(comm, &rank) != 0)
        return entry;
    pthread_mutex_lock(&lock);
    uint32_t at = place_of(comm);
    entry = att_preload_comm_find(comm); /* another thread may have been here first */
    for (uint32_t i = 0; entry == NULL && i < PROBES; i++, at++) {
        att_preload_comm_t *here = &table[at % ATT_PRELOAD_COMMS];
        void *there = atomic_load_explicit(&here->comm, memory_order_relaxed);
        if (there != NULL && there != ATT_PRELOAD_GONE)
            continue;
        here->copy = copy;
        here->ranks = ranks;
        here->rank = rank;
        here->context = context;
        if (context != NULL)
            context->owned = true;
        atomic_store_explicit(&here->family, NULL, memory_order_relaxed);
        atomic_store_explicit(&here->comm, comm, memory_order_release);
        entry = here;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

void att_preload_comm_remove(att_preload_comm_t *entry)
{
    if (entry == NULL)
        return;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&entry->comm, ATT_PRELOAD_GONE, memory_order_release);
    pthread_mutex_unlock(&lock);
}
