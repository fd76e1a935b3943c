/*
 * A profiler of somebody else: asks for groups, collectives and kernels (ABI 5 and 6: of API calls
 * too), gives handles of its own and checks what comes back. Appends one line for each communicator
 * to the file STUB_LOG. STUB_FAIL=init has its init fail.
 */
#include "hook/abi/profiler_v4.h"
#include "hook/abi/profiler_v6.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 1500000 /* of all ranks of a test */
#define GROUP  1

#if STUB_ABI == 4
typedef att_event_v4_t event_t;
typedef att_event_state_v4_t state_t;
#define WANTED      (GROUP | ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH)
#define COLL_PARENT GROUP
#else
typedef att_event_v6_t event_t;
typedef att_event_state_v6_t state_t;
#define WANTED                                                                                     \
    (GROUP | ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH | ATT_EVENT_GROUP_API | ATT_EVENT_COLL_API)
#define COLL_PARENT ATT_EVENT_COLL_API
#endif

typedef struct handle {
    uint32_t magic;
    int type;
} handle_t;

typedef struct stub {
    int rank;
    _Atomic long begun, colls, kernels, stops, times, bad;
} stub_t;

static handle_t handles[EVENTS];
static _Atomic int used;
static _Atomic long stops, times, bad;

static int begin(void **context, int *mask, int rank)
{
    const char *fail = getenv("STUB_FAIL");
    if (fail != NULL && strcmp(fail, "init") == 0)
        return 3;
    stub_t *stub = calloc(1, sizeof *stub);
    if (stub == NULL)
        return 3;
    stub->rank = rank;
    const char *wanted = getenv("STUB_MASK");
    *mask = wanted != NULL ? atoi(wanted) : WANTED;
    *context = stub;
    return 0;
}

static int type_of(const void *handle)
{
    const handle_t *h = handle;
    if (handle == NULL)
        return 0;
    return h >= handles && h < handles + EVENTS && h->magic == 0x57ab ? h->type : -1;
}

static int start_event(void *context, void **handle, event_t *event)
{
    stub_t *stub = context;
    int type = (int)event->type, at = atomic_fetch_add(&used, 1);
    stub->begun++;
    stub->colls += type == ATT_EVENT_COLL;
    stub->kernels += type == ATT_EVENT_KERNEL_CH;
    int parent = type_of(event->parent);
    if ((type & WANTED) == 0 || parent < 0 || (type == ATT_EVENT_COLL && parent != COLL_PARENT) ||
        (type == ATT_EVENT_KERNEL_CH && parent != ATT_EVENT_COLL) ||
        (type == ATT_EVENT_COLL_API && parent != ATT_EVENT_GROUP_API))
        stub->bad++;
#if STUB_ABI != 4
    if (type == ATT_EVENT_COLL && type_of(event->coll.group) != GROUP)
        stub->bad++;
#endif
    if (at < EVENTS) {
        handles[at] = (handle_t){0x57ab, type};
        *handle = &handles[at];
    }
    return 0;
}

static int stop_event(void *handle)
{
    bad += type_of(handle) <= 0;
    stops++;
    return 0;
}

static int record_event_state(void *handle, int state, state_t *arguments)
{
    bad += type_of(handle) <= 0;
    if (state == ATT_STATE_KERNEL_CH_STOP && arguments->kernel_ch.time_ns > 0)
        times++;
    return 0;
}

static int finalize(void *context)
{
    stub_t *stub = context;
    const char *path = getenv("STUB_LOG");
    FILE *file = path != NULL ? fopen(path, "ae") : NULL;
    if (file != NULL) {
        fprintf(file, "rank %d colls %ld kernels %ld bad %ld handles %ld %s\n", stub->rank,
                stub->colls, stub->kernels, stub->bad, bad,
                stops > 0 && times > 0 && stops >= times ? "stopped" : "open");
        fclose(file);
    }
    free(stub);
    return 0;
}

#define EXPORTED __attribute__((visibility("default")))
#if STUB_ABI == 4
static int init(void **context, int *mask, const char *comm_name, uint64_t comm_id, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger)
{
    return begin(context, mask, rank);
}

EXPORTED const att_profiler_v4_t ncclProfiler_v4 = {
    "stub", init, start_event, stop_event, record_event_state, finalize};
#else
static int init(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, att_nccl_logger_fn logger)
{
    return begin(context, mask, rank);
}

#if STUB_ABI == 5
EXPORTED const att_profiler_v5_t ncclProfiler_v5 = {
#else
EXPORTED const att_profiler_v6_t ncclProfiler_v6 = {
#endif
    "stub", init, start_event, stop_event, record_event_state, finalize};
#endif
