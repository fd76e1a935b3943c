/*
 * variant: the twins of a communicator (base/variants.h) and which of them a call is sent to.
 *
 * They are made inside the creation of their parent, a place where all ranks meet anyway, by
 * ncclCommSplit with the differing variables answered by the environment plugin to the thread that
 * makes them. Ranks that share a segment agree first (all are there, with one list) and afterwards
 * (which could be made everywhere), each step one compare-and-swap of the group's word.
 *
 * A call is sent to a variant only where that is the same on all ranks and changes nothing else: a
 * lone call outside of groups and capture, with a builtin operation, on a communicator without
 * windows. The setting is the decision of the parent's task, taken before NCCL is called and handed
 * to the tuner. A family is used by one thread at a time, as its communicator; ending it may come
 * from another.
 */
#ifndef ATT_HOOK_VARIANT_H
#define ATT_HOOK_VARIANT_H

#include "base/variants.h"
#include "hook/preload.h"
#include "hook/preload_comm.h"

#define ATT_ROUTES 512 /* kinds of calls of one communicator that can be sent; a power of two */

struct att_route {
    uint64_t kind; /* collective, type, operation; 0 unused */
    uint64_t count;
    att_lane_t *lane;
    bool stashed; /* NCCL did not ask about the last decision: it is the next call's */
    att_decision_t decision;
};
typedef struct att_route att_route_t;

struct att_family {
    att_variants_t list;
    uint32_t usable; /* a bit for each variant that is there */
    void *comms[ATT_VARIANTS];
    att_context_t *contexts[ATT_VARIANTS];
    bool routing; /* false for good: a window or a captured collective was seen */
    bool called;
    void *last_comm, *last_stream; /* of the call before, when `called` */
    void *event; /* after it; NULL: no driver, no streams. Never destroyed: calls may be late */
    att_route_t routes[ATT_ROUTES];
    struct att_family *next_free;
};

/* Make the variants of a communicator that has just been made; entry->family stays NULL when there
 * are none: the reason is said once. */
void att_family_create(att_preload_comm_t *entry, const att_nccl_config_t *config);

/* One call of the application on the parent. begin: the communicator to use; end: after NCCL
 * returned. Inside a group: touch when the call is made, end when the group has ended. */
void *att_family_begin(att_preload_comm_t *entry, const att_preload_call_t *call,
                       att_preload_routed_t *routed);
void att_family_end(att_preload_comm_t *entry, const att_preload_call_t *call,
                    att_preload_routed_t *routed, bool success);
void att_family_touch(att_preload_comm_t *entry, const att_preload_call_t *call);
void att_family_ended(att_preload_comm_t *entry, void *stream);

/* No call is sent to a variant any more. */
void att_family_keep_home(att_preload_comm_t *entry);

/* The same for the variants as for the parent, before it. */
void att_family_finalize(att_preload_comm_t *entry);
void att_family_destroy(att_preload_comm_t *entry);
void att_family_abort(att_preload_comm_t *entry);
void att_family_revoke(att_preload_comm_t *entry, int flags);
/* The first error of a variant, ATT_NCCL_SUCCESS when none has one. */
int att_family_async_error(const att_preload_comm_t *entry);

/* The value of a variable for the variant that this thread makes; false: it does not differ. */
bool att_variant_variable(const char *name, const char **value);
/* NCCL asked the environment plugin. */
void att_variant_asked(void);

#endif
