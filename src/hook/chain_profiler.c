#include "hook/chain_profiler.h"

#include "base/log.h"
#include "hook/abi/profiler_v4.h"
#include "hook/abi/profiler_v6.h"
#include "hook/chain_library.h"
#include "hook/handle.h"
#include "hook/hook.h"
#include "hook/library.h"
#include "hook/profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MASKS   4     /* NCCL copies in one process */
#define TICKETS 65536 /* events whose handles may still be named: of some 2,000 calls */

/* ncclProfile* of nccl_profiler.h, with the bits that switch each on: its own and those of what
 * may hang below it (src/plugin/profiler.cc). */
enum {
    GROUP = 1 << 0,
    COLL = 1 << 1,
    P2P = 1 << 2,
    PROXY_OP = 1 << 3,
    PROXY_STEP = 1 << 4,
    KERNEL_CH = 1 << 6,
    NET = 1 << 7,
    GROUP_API = 1 << 8,
    COLL_API = 1 << 9,
    P2P_API = 1 << 10,
    KERNEL_LAUNCH = 1 << 11,
    CE = 7 << 12,
    BELOW = PROXY_OP | PROXY_STEP | KERNEL_CH | NET
};
#define NEWEST_OF_4 NET
#define NEWEST_OF_5 KERNEL_LAUNCH
#define FROM_NET    22803 /* NCCL that takes a profiler from its net plugin */

_Atomic bool att_chain_profiles;

static struct {
    uint32_t abi; /* 0: none */
    union {
        const void *symbol;
        const att_profiler_v4_t *v4;
        const att_profiler_v5_t *v5;
        const att_profiler_v6_t *v6;
    };
} other;

typedef struct masks {
    int *real;       /* NCCL's */
    int own, theirs; /* ours is written atomically, theirs as they like */
} masks_t;

typedef struct link {
    void *ours, *theirs;
    masks_t *masks;
    _Atomic bool open;
    bool dropped;
    uint32_t abi; /* NCCL's */
    struct link *next_free;
} link_t;

/* A link's memory stays: a late event may still name it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static link_t *free_links;
static masks_t masks[MASKS];
static _Atomic int mask_count;

static struct {
    _Atomic uint64_t serial; /* 0: being written */
    _Atomic(void *) ours, theirs;
} tickets[TICKETS];
static _Atomic uint64_t last_ticket;

static void *ticket_of(att_chain_pair_t pair)
{
    if (pair.ours == NULL && pair.theirs == NULL)
        return NULL;
    uint64_t serial = (atomic_fetch_add(&last_ticket, 1) + 1) & ATT_SERIAL_MASK;
    size_t at = serial % TICKETS;
    atomic_store(&tickets[at].serial, 0);
    atomic_store_explicit(&tickets[at].ours, pair.ours, memory_order_relaxed);
    atomic_store_explicit(&tickets[at].theirs, pair.theirs, memory_order_relaxed);
    atomic_store(&tickets[at].serial, serial);
    return att_handle_pack(ATT_HANDLE_TICKET, 0, serial, 0);
}

static att_chain_pair_t pair_of(void *handle)
{
    att_chain_pair_t pair = {NULL, NULL}, none = {NULL, NULL};
    att_handle_t value = att_handle_unpack(handle);
    if (value.kind != ATT_HANDLE_TICKET)
        return none;
    size_t at = value.serial % TICKETS;
    if (atomic_load(&tickets[at].serial) != value.serial)
        return none;
    pair.ours = atomic_load_explicit(&tickets[at].ours, memory_order_relaxed);
    pair.theirs = atomic_load_explicit(&tickets[at].theirs, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&tickets[at].serial) == value.serial ? pair : none;
}

static int both_of(const masks_t *m)
{
    return __atomic_load_n(&m->own, __ATOMIC_RELAXED) |
           __atomic_load_n(&m->theirs, __ATOMIC_RELAXED);
}

/* Read and written as one: a thread that read before a bit was taken away must not put it back. Who
 * takes one away must not spare the turn: NCCL's mask may look right and be about to be written. */
static void sync_masks(masks_t *m)
{
    static atomic_flag held = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set_explicit(&held, memory_order_acquire))
        continue;
    __atomic_store_n(m->real, both_of(m), __ATOMIC_RELAXED);
    atomic_flag_clear_explicit(&held, memory_order_release);
}

void att_chain_profiler_sync(void)
{
    int count = atomic_load_explicit(&mask_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        sync_masks(&masks[i]);
}

/* With the lock held. */
static masks_t *masks_of(int *real)
{
    int count = atomic_load(&mask_count);
    for (int i = 0; i < count; i++)
        if (masks[i].real == real)
            return &masks[i];
    if (count == MASKS)
        return NULL;
    masks[count].real = real;
    atomic_store_explicit(&mask_count, count + 1, memory_order_release);
    return &masks[count];
}

/* Newest symbol that this NCCL would look for, from 4 on; attune's own is none. */
static bool take_symbol(void *library, uint32_t newest)
{
    const void *own[] = {[4] = &ncclProfiler_v4, [5] = &ncclProfiler_v5, [6] = &ncclProfiler_v6};
    for (uint32_t abi = newest; library != NULL && abi >= 4; abi--) {
        char name[32];
        snprintf(name, sizeof name, "ncclProfiler_v%u", abi);
        const void *symbol = dlsym(library, name);
        if (symbol != NULL && symbol != own[abi]) {
            other.symbol = symbol;
            other.abi = abi;
            return true;
        }
    }
    return false;
}

static bool is_own(void *library)
{
    return library != NULL && dlsym(library, "ncclProfiler_v6") == &ncclProfiler_v6;
}

static void look(const att_profiler_start_t *start)
{
    const char *value = getenv("ATTUNE_CHAIN_PROFILER");
    bool asked = value != NULL && value[0] != '\0';
    const char *where = asked ? value : "libnccl-profiler.so";
    if (asked && strcasecmp(value, "none") == 0)
        return;
    void *library = att_chain_open(where, "nccl-profiler");
    bool found = take_symbol(library, start->abi);
    uint32_t version = att_library_version(start->logger);
    if (!found && (library == NULL || is_own(library)) && start->abi >= 5 &&
        (version == 0 || version >= FROM_NET)) {
        where = "the net plugin";
        found = take_symbol(att_chain_net_library(version), start->abi);
    }
    if (found)
        att_hook_say(start->logger, "profiler %s (%s, ncclProfiler_v%u) gets its events as well",
                     other.v6->name, where, other.abi);
    else if (asked)
        att_hook_say(start->logger,
                     "profiler %s gets no events: it cannot be loaded, or has no ncclProfiler_v4"
                     "%s for this NCCL",
                     value, start->abi > 4 ? " or newer" : "");
    atomic_store(&att_chain_profiles, found);
}

static int init_theirs(link_t *link, const att_profiler_start_t *s)
{
    if (other.abi == 4)
        return other.v4->init(&link->theirs, &link->masks->theirs, s->comm_name, s->comm_id,
                              s->nodes, s->ranks, s->rank, s->logger);
    return other.v6->init(&link->theirs, s->comm_id, &link->masks->theirs, s->comm_name, s->nodes,
                          s->ranks, s->rank, s->logger);
}

static link_t *take_link(const att_profiler_start_t *start)
{
    link_t *link = free_links;
    masks_t *m = masks_of(start->mask);
    if (m == NULL)
        return NULL;
    if (link != NULL)
        free_links = link->next_free;
    else
        link = calloc(1, sizeof *link);
    if (link != NULL) {
        link->masks = m;
        link->theirs = NULL;
        link->abi = start->abi;
        link->dropped = false;
    }
    return link;
}

int att_chain_profiler_init(void **context, const att_profiler_start_t *start)
{
    static bool looked;
    pthread_mutex_lock(&lock);
    if (!looked)
        look(start);
    looked = true;
    link_t *link = other.abi != 0 ? take_link(start) : NULL;
    pthread_mutex_unlock(&lock);
    if (other.abi == 0) {
        *context = att_profiler_init(start, start->mask);
        return ATT_NCCL_SUCCESS;
    }
    *context = link;
    if (link == NULL)
        return ATT_NCCL_SUCCESS;
    if (other.abi > start->abi || init_theirs(link, start) != ATT_NCCL_SUCCESS) {
        link->dropped = true;
        att_log(ATT_LOG_WARN, "profiler %s failed to start: it gets no events of this communicator",
                other.v6->name);
    }
    link->ours = att_profiler_init(start, &link->masks->own);
    atomic_store(&link->open, true);
    sync_masks(link->masks);
    return ATT_NCCL_SUCCESS;
}

/* The ring has given its place to another event since. */
static bool is_lost(void *handle)
{
    att_handle_t value = att_handle_unpack(handle);
    return value.kind == ATT_HANDLE_TICKET &&
           atomic_load(&tickets[value.serial % TICKETS].serial) != value.serial;
}

static int bits_of(uint64_t type)
{
    switch (type) {
    case GROUP:
        return GROUP | COLL | P2P | BELOW;
    case COLL:
    case P2P:
        return (int)type | BELOW;
    case PROXY_OP:
        return PROXY_OP | PROXY_STEP | NET;
    case PROXY_STEP:
        return PROXY_STEP | NET;
    case GROUP_API:
        return GROUP_API | COLL_API | P2P_API | KERNEL_LAUNCH | GROUP | COLL | P2P | BELOW | CE;
    case COLL_API:
        return COLL_API | COLL | BELOW | CE;
    case P2P_API:
        return P2P_API | P2P | BELOW;
    default:
        return type & CE ? CE : (int)type;
    }
}

static bool asked_for(const link_t *link, uint64_t type)
{
    static const uint64_t newest[] = {[4] = NEWEST_OF_4, [5] = NEWEST_OF_5, [6] = UINT64_MAX};
    return !link->dropped && type <= newest[other.abi] &&
           (__atomic_load_n(&link->masks->theirs, __ATOMIC_RELAXED) & bits_of(type)) != 0;
}

/* As NCCL does (src/plugin/profiler/profiler_v4.cc of 2.30): every member lies where it lay, and
 * what hangs below an API call since ABI 5 hung below the group. */
_Static_assert(offsetof(att_event_v4_t, whole) == offsetof(att_event_v5_t, whole), "one layout");
static int begin_older(const link_t *link, void **handle, const att_chain_event_t *e)
{
    const att_event_v5_t *event = e->event;
    att_event_v4_t older = {.type = (uint8_t)event->type,
                            .parent = e->group != NULL ? *e->group : *e->parent,
                            .rank = event->rank};
    memcpy(older.whole, event->whole, sizeof older.whole);
    return other.v4->start_event(link->theirs, handle, &older);
}

static int begin_theirs(const link_t *link, void **handle, const att_chain_event_t *e)
{
    if (other.abi != 4)
        return other.v6->start_event(link->theirs, handle, e->event);
    return link->abi == 4 ? other.v4->start_event(link->theirs, handle, e->event)
                          : begin_older(link, handle, e);
}

int att_chain_profiler_begin(const att_chain_event_t *e)
{
    const link_t *link = e->context;
    *e->handle = NULL;
    if (link == NULL || !atomic_load_explicit(&link->open, memory_order_relaxed))
        return ATT_NCCL_SUCCESS;
    if (__atomic_load_n(link->masks->real, __ATOMIC_RELAXED) != both_of(link->masks))
        sync_masks(link->masks);
    void *const parent = *e->parent, *const group = e->group != NULL ? *e->group : NULL;
    const att_chain_pair_t parents = pair_of(parent), groups = pair_of(group);
    att_chain_pair_t handles = {NULL, NULL};
    /* Nothing may hang below what the other one never had: rather one event less. */
    if (asked_for(link, e->type) && !is_lost(parent) && !is_lost(group)) {
        *e->parent = parents.theirs;
        if (e->group != NULL)
            *e->group = groups.theirs;
        begin_theirs(link, &handles.theirs, e);
    }
    *e->parent = parents.ours;
    if (e->group != NULL)
        *e->group = groups.ours;
    e->own(link->ours, &handles.ours, e->event);
    *e->parent = parent;
    if (e->group != NULL)
        *e->group = group;
    *e->handle = ticket_of(handles);
    return ATT_NCCL_SUCCESS;
}

void *att_chain_profiler_stop(void *handle)
{
    att_chain_pair_t pair = pair_of(handle);
    if (pair.theirs != NULL)
        (void)(other.abi == 4 ? other.v4->stop_event(pair.theirs)
                              : other.v6->stop_event(pair.theirs));
    return pair.ours;
}

void *att_chain_profiler_record(void *handle, int state, void *arguments)
{
    att_chain_pair_t pair = pair_of(handle);
    if (pair.theirs != NULL)
        (void)(other.abi == 4 ? other.v4->record_event_state(pair.theirs, state, arguments)
                              : other.v6->record_event_state(pair.theirs, state, arguments));
    return pair.ours;
}

int att_chain_profiler_finalize(void *context)
{
    link_t *link = context;
    if (link == NULL || !atomic_exchange(&link->open, false))
        return ATT_NCCL_SUCCESS;
    if (!link->dropped)
        (void)(other.abi == 4 ? other.v4->finalize(link->theirs)
                              : other.v6->finalize(link->theirs));
    att_profiler_finalize(link->ours);
    pthread_mutex_lock(&lock);
    link->next_free = free_links;
    free_links = link;
    pthread_mutex_unlock(&lock);
    return ATT_NCCL_SUCCESS;
}
