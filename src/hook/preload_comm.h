/*
 * preload comm: the communicators that passed through the preload, by NCCL's handle.
 *
 * Reading takes no lock; an entry's memory stays, so that a thread that looks one up while another
 * takes it down finds valid memory (the application must not use it then, as without the preload).
 */
#ifndef ATT_HOOK_PRELOAD_COMM_H
#define ATT_HOOK_PRELOAD_COMM_H

#include "hook/context.h"
#include "hook/preload_copy.h"

#define ATT_PRELOAD_COMMS 4096 /* a power of two; more are passed through and not counted */

typedef struct att_preload_comm {
    _Atomic(void *) comm; /* NULL: never used; ATT_PRELOAD_GONE: free again */
    const att_preload_copy_t *copy;
    int ranks, rank;
    att_context_t *context;              /* NULL: not known, or not tuned */
    _Atomic(struct att_family *) family; /* its variants, NULL none (hook/variant.h) */
    bool touched;                        /* by the open group of a thread, which has it in a list */
    void *touched_stream;
    struct att_preload_comm *next_touched;
} att_preload_comm_t;

#define ATT_PRELOAD_GONE ((void *)1)

/* NULL when it is not known. */
att_preload_comm_t *att_preload_comm_find(void *comm);
/* The entry of a communicator; made from what the copy says when there is none. NULL when it cannot
 * tell yet (being made), or there is no room. `context` may be NULL. */
att_preload_comm_t *att_preload_comm_add(void *comm, const att_preload_copy_t *copy,
                                         att_context_t *context);
/* Forget it. NULL is fine. Before NCCL frees the handle, which may then come again. */
void att_preload_comm_remove(att_preload_comm_t *entry);

#endif
