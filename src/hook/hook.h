/*
 * hook: what this process shares with its node: the segment, its entry there and its ring.
 *
 * Attached once, at the first communicator; kept until the process ends (NCCL's threads may call
 * back later than its last communicator). Inert when ATTUNE_DISABLE is set, when no segment can be
 * had, in a forked child, and while the process ends: then nothing in it may be touched.
 */
#ifndef ATT_HOOK_HOOK_H
#define ATT_HOOK_HOOK_H

#include "base/segment.h"
#include "hook/abi/nccl.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct att_hook {
    struct att_segment *segment;
    att_segment_memory_t *memory;
    att_segment_process_t *process;
    att_ring_t *ring;
    uint32_t process_index;
} att_hook_t;

/* The process's hook, or NULL when it is inert. The first call attaches; the reason for not doing
 * so is said once, through NCCL's logger when nothing is wrong (no run), else as a warning. */
const att_hook_t *att_hook_attach(att_nccl_logger_fn logger);

/* The same without attaching: NULL before the first communicator. */
const att_hook_t *att_hook_attached(void);

/* This process has rank 0 of a group over several nodes: answer for its home words (hook/helper.h).
 */
void att_hook_serve_homes(void);

/* True from the start in a forked child and at the end of the process. Every callback asks first.
 */
extern _Atomic bool att_hook_stopped __attribute__((visibility("hidden")));
static inline bool att_hook_is_stopped(void)
{
    return atomic_load_explicit(&att_hook_stopped, memory_order_relaxed);
}

/* One INFO line through NCCL's logger; NULL logger: nothing. */
void att_hook_say(att_nccl_logger_fn logger, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
