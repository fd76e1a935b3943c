/* Hot path: no allocation, lock or unbounded loop. */
#include "hook/variant.h"

#include "hook/event.h"

#define PROBES 16

/* 0 for calls that stay at home whatever the setting. */
static uint64_t kind_of(const att_preload_call_t *call)
{
    if (call->collective < 0 || call->collective >= ATT_COLLECTIVE_COUNT || call->op < 0 ||
        call->op >= ATT_NCCL_BUILTIN_OPS || call->type < 0 || call->type >= ATT_NCCL_DATATYPES ||
        call->count == 0)
        return 0;
    return 1u << 16 | (uint64_t)call->collective << 8 | (uint64_t)call->type << 4 |
           (uint64_t)call->op;
}

/* The kind's route, an unused one where it would go, NULL: no room (then on all ranks). */
static att_route_t *find(struct att_family *family, uint64_t kind, uint64_t count)
{
    uint32_t at = (uint32_t)(((count ^ kind << 40) * 0x9e3779b97f4a7c15u) >> 40);
    for (uint32_t i = 0; i < PROBES; i++, at++) {
        att_route_t *route = &family->routes[at % ATT_ROUTES];
        if (route->kind == 0 || (route->kind == kind && route->count == count))
            return route;
    }
    return NULL;
}

/* NCCL keeps the calls of one communicator in order over streams, not those of two. */
static void order(const struct att_family *family, const void *comm, void *stream)
{
    if (family->event != NULL && family->called && family->last_comm != comm &&
        family->last_stream != stream)
        att_event_driver()->wait(stream, family->event, 0);
}

static void note(struct att_family *family, void *comm, void *stream)
{
    family->called = true;
    family->last_comm = comm;
    family->last_stream = stream;
    if (family->event != NULL)
        att_event_driver()->record(family->event, stream);
}

/* Events of outside must not be waited for within a graph, nor the other way round. */
static bool captured(const struct att_family *family, void *stream)
{
    return family->event != NULL && att_event_capturing(att_event_driver(), stream);
}

/* A collective is captured on every rank; Send and Recv are two ranks' own matter. */
static bool ends_routing(struct att_family *family, const att_preload_call_t *call)
{
    if (!captured(family, call->stream))
        return false;
    if (call->collective >= 0)
        family->routing = false;
    return true;
}

void att_family_keep_home(att_preload_comm_t *entry)
{
    if (entry != NULL && entry->family != NULL)
        entry->family->routing = false;
}

void *att_family_begin(att_preload_comm_t *entry, const att_preload_call_t *call,
                       att_preload_routed_t *routed)
{
    struct att_family *family = entry->family;
    att_preload_thread_t *me = &att_preload_thread;
    void *home = atomic_load_explicit(&entry->comm, memory_order_relaxed);
    uint64_t kind = kind_of(call);
    *routed = (att_preload_routed_t){0};
    if (ends_routing(family, call)) {
        routed->captured = true;
        return home;
    }
    att_route_t *route = kind != 0 ? find(family, kind, call->count) : NULL;
    if (route != NULL && !family->routing && !(route->kind != 0 && route->stashed))
        route = NULL; /* a number that was taken is used nevertheless */
    void *comm = home;
    if (route != NULL && route->kind == 0) {
        me->lane = NULL; /* the tuner's answer tells which task this is */
        me->variants = family->usable;
        routed->route = route;
    } else if (route != NULL) {
        routed->lane = route->lane;
        routed->route = route;
        routed->context = entry->context;
        routed->decision = route->stashed ? route->decision : att_lane_next(route->lane);
        route->stashed = false;
        int variant = att_variants_find(&family->list, call->collective, routed->decision.setting);
        if (variant >= 0 && family->routing) {
            comm = family->comms[variant];
            routed->context = family->contexts[variant];
        }
        routed->impossible = variant < -1 || (variant >= 0 && comm == NULL);
        if (comm == NULL) {
            comm = home;
            routed->context = entry->context;
        }
        me->routed = routed;
    }
    order(family, comm, call->stream);
    routed->comm = comm;
    return comm;
}

void att_family_end(att_preload_comm_t *entry, const att_preload_call_t *call,
                    att_preload_routed_t *routed, bool success)
{
    struct att_family *family = entry->family;
    att_preload_thread_t *me = &att_preload_thread;
    att_route_t *route = routed->route;
    if (family == NULL || routed->captured) /* taken down meanwhile */
        goto forget;
    if (route != NULL && routed->lane == NULL && me->lane != NULL &&
        atomic_load_explicit(&me->lane->shared->variants, memory_order_relaxed) != 0)
        *route = (att_route_t){.kind = kind_of(call), .count = call->count, .lane = me->lane};
    if (me->routed != NULL && route != NULL) { /* NCCL refused the call before it asked */
        route->stashed = true;
        route->decision = routed->decision;
    }
    if (success)
        note(family, routed->comm, call->stream);
forget:
    me->routed = NULL;
    me->lane = NULL;
    me->variants = 0;
}

void att_family_touch(att_preload_comm_t *entry, const att_preload_call_t *call)
{
    if (!ends_routing(entry->family, call))
        order(entry->family, atomic_load_explicit(&entry->comm, memory_order_relaxed),
              call->stream);
}

void att_family_ended(att_preload_comm_t *entry, void *stream)
{
    if (entry->family != NULL && !captured(entry->family, stream))
        note(entry->family, atomic_load_explicit(&entry->comm, memory_order_relaxed), stream);
}
