/*
 * event: the callbacks that a profiler plugin gets, in NCCL 2.30.7's order and with its quirks.
 *
 * On the calling thread, at each collective: GroupApi start (first of a group), its state
 * GroupStartApiStop, CollApi start, CollApi stop; before anything is launched the state
 * GroupEndApiStart; at the launch Group start, Coll start, Coll stop, Group stop; at the end of the
 * outermost group GroupApi stop. The mask is sampled when the collective is called. As in NCCL,
 * bits of children switch the API events on, a Broadcast has no Coll and KernelCh events unless
 * NCCL_ALLGATHERV_ENABLE=0, and a CollApi handle outlives its event: with the mask at 0 stopEvent
 * may come again for it.
 *
 * KernelCh events come later from a thread of the fabric, the counterpart of the proxy thread:
 * start, state KernelChStop with the stop stamp, stop, for each channel.
 */
#ifndef ATT_FABRIC_EVENT_H
#define ATT_FABRIC_EVENT_H

#include "fabric/plugin_abi.h"
#include "fabric/task.h"

/* The profiler of one communicator. */
typedef struct att_profile {
    const ncclProfiler_v6_t *plugin; /* NULL: none */
    void *context;
    int rank;
    uint64_t sequence[ATT_FUNCTIONS];
} att_profile_t;

/* Load and init; a plugin that fails is left out with an INFO line, as in NCCL. */
void att_event_open(att_profile_t *profile, uint64_t comm_id, const char *name, int nodes,
                    int ranks, int rank);
/* Wait until all channel events of this process have been delivered. */
void att_event_flush(const att_profile_t *profile);
/* Flush, finalize, release. */
void att_event_close(att_profile_t *profile);

/* Around the group depth of the calling thread; `depth` is the depth with the call's own level. */
void att_event_group_deepen(void);
void att_event_group_leave(void);
void att_event_group_stop(void);
/* A collective is appended: API events; fills the task's mask and handles. `count` and `type` as
 * the caller gave them. */
void att_event_call(att_profile_t *profile, att_task_t *task, int depth, size_t count,
                    ncclDataType_t type, void *stream);
/* A batch was launched: Group and Coll events. Also numbers the tasks. */
void att_event_launched(att_profile_t *profile, att_task_t *tasks, size_t count, void *stream);
/* Channels of a batch: stamps in ns. Queued for the fabric's thread. */
typedef struct att_stamp {
    uint64_t start_ns, stop_ns; /* 0, 0: the channel was not used */
} att_stamp_t;
void att_event_channels(att_profile_t *profile, const att_task_t *tasks, size_t count,
                        const att_stamp_t *stamps);

#endif
