/* mark: iteration marks of the application, as records in the process's ring. */
#include "attune/mark.h"

#include "base/clock.h"
#include "base/ring.h"
#include "hook/hook.h"

__attribute__((visibility("default"))) int attune_mark_iteration(int rank, uint64_t iteration,
                                                                 uint64_t time_ns)
{
    const att_hook_t *hook = att_hook_attached();
    if (hook == NULL || rank < 0 ||
        atomic_load_explicit(&hook->process->marks, memory_order_relaxed) == 0)
        return 0;
    uint64_t now_ns = att_clock_ns();
    att_record_t record = {
        .call = iteration,
        .start_ns = time_ns != 0 ? time_ns : now_ns,
        .stop_ns = time_ns != 0 ? time_ns : now_ns,
        .decided_ns = now_ns,
        .seen_ns = now_ns,
        .nccl_seq = (uint64_t)rank,
        .task = ATT_NONE,
        .member = ATT_NONE,
        .process = hook->process_index,
        .source = ATT_TIME_MARK,
        .algorithm = ATT_ALGORITHM_KEEP,
        .protocol = ATT_PROTOCOL_KEEP,
        .datatype = 255,
    };
    return att_ring_put(hook->ring, &record);
}
