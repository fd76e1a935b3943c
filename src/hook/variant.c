#include "hook/variant.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "hook/event.h"
#include "hook/topology.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_NS    50000u
#define READY_WAITS 10 /* times W: all ranks have been in NCCL's creation a moment ago */
#define MADE_NS     300000000000u

static __thread const att_variant_t *making;
static __thread char buffer_text[16]; /* of `making` */
static __thread char topology[32];    /* file that the variant in the making is to see, or none */
static _Atomic bool asked;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct att_family *free_families; /* memory stays: a late call finds it */
static struct att_family *old_families;  /* aborted: another thread may still be in a call */

void att_variant_asked(void)
{
    atomic_store_explicit(&asked, true, memory_order_relaxed);
}

bool att_variant_variable(const char *name, const char **value)
{
    if (making == NULL)
        return false;
    if (making->threads != 0 && strcmp(name, "NCCL_NTHREADS") == 0)
        *value = making->threads == 128 ? "128" : making->threads == 256 ? "256" : "512";
    else if (making->transport != ATT_TRANSPORT_KEEP &&
             strcmp(name, "ATTUNE_FABRIC_TRANSPORT") == 0)
        *value = att_transport_name(making->transport);
    else if (making->buffer != 0 && strcmp(name, "NCCL_BUFFSIZE") == 0)
        *value = buffer_text;
    else if (topology[0] != '\0' && strcmp(name, "NCCL_TOPO_FILE") == 0)
        *value = topology;
    else
        return false;
    return true;
}

/* ---- may they be made? ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

/* On a GPU: P2P is what NCCL does by itself, shared memory what it does by another topology. */
static const char *transport_refusal(const att_variants_t *variants)
{
    bool shm = false;
    for (uint32_t i = 0; i < variants->count; i++) {
        if (variants->items[i].transport == ATT_TRANSPORT_NET)
            return "no variant goes over the network inside a node";
        shm |= variants->items[i].transport == ATT_TRANSPORT_SHM;
    }
    if (shm && (is_set("NCCL_P2P_LEVEL") || is_set("NCCL_P2P_DISABLE")))
        return "NCCL_P2P_LEVEL or NCCL_P2P_DISABLE decides the transport of every communicator";
    if (shm && (is_set("NCCL_TOPO_FILE") || is_set("NCCL_GRAPH_FILE")))
        return "NCCL_TOPO_FILE or NCCL_GRAPH_FILE is set, and a variant over SHM needs another one";
    return NULL;
}

static const char *refusal(const att_preload_comm_t *entry, const att_nccl_config_t *config,
                           const att_variants_t *variants)
{
    const att_segment_member_t *member = entry->context->member;
    const att_segment_group_t *group = &entry->context->memory->groups[member->group % ATT_GROUPS];
    const char *shared = getenv("NCCL_COMM_SPLIT_SHARE_RESOURCES");
    if (!atomic_load_explicit(&asked, memory_order_relaxed))
        return "NCCL does not ask the hook for its variables (NCCL_ENV_PLUGIN, since 2.28.7)";
    if (entry->copy->version_code < 22907)
        return "this NCCL takes other values for a new communicator only since 2.29.7";
    if (variants->buffers && entry->copy->version_code >= ATT_BUFFER_VARIANTS_UNTIL)
        return "this NCCL takes a chunk for each call: leave buffer out of --variants";
    if (entry->copy->functions[ATT_NCCL_CommSplit] == NULL)
        return "this NCCL has no ncclCommSplit";
    if ((shared != NULL && strcmp(shared, "1") == 0) ||
        (config != NULL && ATT_NCCL_CONFIG_HAS(config, split_share) && config->split_share == 1))
        return "the communicator shares its resources with what is split from it";
    if (config != NULL && config->blocking == 0)
        return "the communicator does not block";
    if (group->nodes != 1)
        return "its ranks are on several nodes";
    const char *why = member->whole_stamps == 0 ? transport_refusal(variants) : NULL; /* a GPU */
    if (why != NULL)
        return why;
    if (member->whole_stamps == 0 && att_event_driver() == NULL)
        return "no CUDA driver (libcuda.so.1) to order streams with";
    return NULL;
}

static void say(const att_preload_comm_t *entry, const char *what)
{
    static att_log_site_t site;
    if (entry->rank == 0)
        att_log_limited(&site, ATT_LOG_WARN, "communicator 0x%llx has no variants: %s",
                        (unsigned long long)entry->context->comm_id, what);
}

/* ---- agreeing ---- */

static uint32_t swap(_Atomic uint32_t *state, uint32_t from, uint32_t to)
{
    uint32_t there = from;
    return atomic_compare_exchange_strong(state, &there, to) ? to : there;
}

/* Wait until `count` is `ranks`, then from -> to; after limit_ns from -> REFUSE. What then holds.
 */
static uint32_t agree(att_segment_group_t *group, _Atomic uint32_t *count, uint32_t from,
                      uint32_t to, uint64_t limit_ns)
{
    atomic_fetch_add(count, 1);
    uint64_t until = att_clock_ns() + limit_ns;
    uint32_t state;
    while ((state = atomic_load(&group->variants_state)) == from) {
        if (atomic_load(count) == group->ranks)
            return swap(&group->variants_state, from, to);
        if (att_clock_ns() > until)
            return swap(&group->variants_state, from, ATT_VARIANTS_REFUSE);
        att_clock_sleep_ns(PAUSE_NS);
    }
    return state;
}

static bool agree_to_make(att_segment_group_t *group, const att_variants_t *variants,
                          uint64_t limit_ns)
{
    uint32_t digest = swap(&group->variants_digest, 0, variants->digest);
    if (digest != variants->digest || atomic_load(&group->duplicate) != 0)
        swap(&group->variants_state, ATT_VARIANTS_OPEN, ATT_VARIANTS_REFUSE);
    return agree(group, &group->variants_ready, ATT_VARIANTS_OPEN, ATT_VARIANTS_MAKE, limit_ns) ==
           ATT_VARIANTS_MAKE;
}

/* ---- making ---- */

static struct att_family *allocate(void)
{
    pthread_mutex_lock(&lock);
    struct att_family *family = free_families;
    if (family != NULL)
        free_families = family->next_free;
    pthread_mutex_unlock(&lock);
    if (family == NULL)
        return calloc(1, sizeof *family);
    memset(family, 0, sizeof *family);
    return family;
}

static void keep(struct att_family **list, struct att_family *family)
{
    pthread_mutex_lock(&lock);
    family->next_free = *list;
    *list = family;
    pthread_mutex_unlock(&lock);
}

static void make_one(att_preload_comm_t *entry, struct att_family *family, uint32_t i,
                     const att_variant_t *variant)
{
    att_preload_thread_t *me = &att_preload_thread;
    att_segment_member_t *member = entry->context->member;
    att_segment_group_t *group = &entry->context->memory->groups[member->group % ATT_GROUPS];
    void *comm = NULL;
    me->creation = (att_preload_creation_t){
        .active = true, .ranks = entry->ranks, .rank = entry->rank, .parent = entry->context};
    bool other_topology = variant->transport == ATT_TRANSPORT_SHM && member->whole_stamps == 0;
    int file = other_topology ? att_topology_open(topology, sizeof topology) : -1;
    making = variant;
    snprintf(buffer_text, sizeof buffer_text, "%u", variant->buffer);
    me->inside++;
    /* A rank without its file takes part, so that nobody waits for it; the variant is not used. */
    int result = ATT_PRELOAD_REAL(entry->copy, CommSplit)(
        atomic_load_explicit(&entry->comm, memory_order_relaxed), 0, entry->rank, &comm, NULL);
    me->inside--;
    making = NULL;
    topology[0] = '\0';
    if (file >= 0)
        close(file);
    else if (other_topology)
        result = ATT_NCCL_SYSTEM_ERROR;
    if (result == ATT_NCCL_SUCCESS && comm != NULL && me->creation.context != NULL) {
        family->contexts[i] = me->creation.context;
        family->usable |= 1u << i;
    } else {
        atomic_fetch_or(&group->variants_failed, 1u << i);
    }
    family->comms[i] = comm;
    me->creation = (att_preload_creation_t){.rank = -1};
}

static void drop(const att_preload_comm_t *entry, struct att_family *family, uint32_t which)
{
    for (uint32_t i = 0; i < ATT_VARIANTS; i++)
        if ((which & 1u << i) != 0 && family->comms[i] != NULL) {
            void *comm = family->comms[i];
            family->comms[i] = NULL;
            att_preload_thread.inside++;
            ATT_PRELOAD_REAL(entry->copy, CommDestroy)(comm);
            att_preload_thread.inside--;
        }
    family->usable &= ~which;
}

void att_family_create(att_preload_comm_t *entry, const att_nccl_config_t *config)
{
    const char *text = getenv("ATTUNE_VARIANTS");
    att_variants_t variants;
    att_error_t error = {""};
    if (text == NULL || text[0] == '\0' || entry->ranks < 2 || entry->context == NULL)
        return;
    if (att_variants_parse(text, &variants, &error) != ATT_OK) {
        say(entry, error.text);
        return;
    }
    const char *why = refusal(entry, config, &variants);
    if (why != NULL || variants.count == 0) {
        say(entry, why != NULL ? why : "the list is empty");
        return;
    }
    att_segment_member_t *member = entry->context->member;
    att_segment_group_t *group = &entry->context->memory->groups[member->group % ATT_GROUPS];
    struct att_family *family = allocate();
    if (family == NULL) /* the others wait for this rank in vain, and go on without */
        return;
    if (!agree_to_make(group, &variants, READY_WAITS * entry->context->memory->header.wait_ns)) {
        say(entry, "not all of its ranks run the preloaded hook on this node with one list");
        keep(&free_families, family);
        return;
    }
    uint64_t begin_ns = att_clock_ns();
    family->list = variants;
    for (uint32_t i = 0; i < variants.count; i++)
        make_one(entry, family, i, &variants.items[i]);
    uint32_t state =
        agree(group, &group->variants_made, ATT_VARIANTS_MAKE, ATT_VARIANTS_USE, MADE_NS);
    uint32_t failed = state == ATT_VARIANTS_USE ? atomic_load(&group->variants_failed) : UINT32_MAX;
    drop(entry, family, failed);
    if (failed != 0)
        say(entry, "some could not be made; NCCL_DEBUG=WARN says why");
    if (family->usable == 0) {
        keep(&free_families, family);
        return;
    }
    const att_event_driver_t *driver = att_event_driver();
    if (driver != NULL && driver->create(&family->event, ATT_EVENT_NO_TIMING) != 0)
        family->event = NULL;
    family->routing = driver == NULL || family->event != NULL;
    if (entry->rank == 0)
        att_log(ATT_LOG_INFO, "communicator 0x%llx: %d variants made in %.0f ms",
                (unsigned long long)entry->context->comm_id, __builtin_popcount(family->usable),
                (double)(att_clock_ns() - begin_ns) * 1e-6);
    entry->family = family;
}

/* ---- ending ---- */

#define EACH(family, i)                                                                            \
    for (uint32_t i = 0; i < ATT_VARIANTS; i++)                                                    \
        if ((family)->comms[i] != NULL)

void att_family_finalize(att_preload_comm_t *entry)
{
    struct att_family *family = entry->family;
    if (family == NULL || entry->copy->functions[ATT_NCCL_CommFinalize] == NULL)
        return;
    EACH(family, i)
    ATT_PRELOAD_REAL(entry->copy, CommFinalize)(family->comms[i]);
}

void att_family_destroy(att_preload_comm_t *entry)
{
    struct att_family *family = entry->family;
    if (family == NULL)
        return;
    entry->family = NULL;
    drop(entry, family, UINT32_MAX);
    keep(&free_families, family);
}

/* All of them: a kernel of one that is left running would keep the stream busy. */
void att_family_abort(att_preload_comm_t *entry)
{
    struct att_family *family = entry->family;
    if (family == NULL)
        return;
    EACH(family, i)
    if (family->contexts[i] != NULL)
        att_context_release(family->contexts[i]);
    EACH(family, i)
    {
        void *comm = family->comms[i];
        family->comms[i] = NULL;
        ATT_PRELOAD_REAL(entry->copy, CommAbort)(comm);
    }
    entry->family = NULL;
    keep(&old_families, family);
}

void att_family_revoke(att_preload_comm_t *entry, int flags)
{
    struct att_family *family = entry->family;
    if (family == NULL || entry->copy->functions[ATT_NCCL_CommRevoke] == NULL)
        return;
    family->routing = false;
    EACH(family, i)
    ATT_PRELOAD_REAL(entry->copy, CommRevoke)(family->comms[i], flags);
}

int att_family_async_error(const att_preload_comm_t *entry)
{
    const struct att_family *family = entry->family;
    int error = ATT_NCCL_SUCCESS;
    if (family == NULL)
        return error;
    EACH(family, i)
    {
        int one = ATT_NCCL_SUCCESS;
        int result = ATT_PRELOAD_REAL(entry->copy, CommGetAsyncError)(family->comms[i], &one);
        if (error == ATT_NCCL_SUCCESS)
            error = result != ATT_NCCL_SUCCESS ? result : one;
    }
    return error;
}
