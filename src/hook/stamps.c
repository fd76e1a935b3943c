#include "hook/stamps.h"

#include "base/log.h"
#include "hook/chain_profiler.h"
#include "hook/event.h"
#include "hook/preload.h"
#include "hook/variant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/statvfs.h>

#define SHARED_MEMORY "/dev/shm" /* where NCCL makes it */
/* CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the stream is the legacy one, and another one captures. */
#define OTHER_CAPTURES 906
#define NO_CONTEXT     201 /* CUDA_ERROR_INVALID_CONTEXT: NCCL is going to set one */

static const char untold[] =
    "it is not known before a call whether it goes into a CUDA graph, as NCCL's calls do not pass "
    "through the preload; attune run --no-graphs (ATTUNE_GRAPHS=no) says that none do";

_Atomic bool att_stamps_by_preload;
static _Atomic int switching; /* threads that put stamps on right now */

bool att_stamps_graphs_excluded(void)
{
    static const char *const words[] = {"no", "0", "false", "off"};
    const char *graphs = getenv("ATTUNE_GRAPHS");
    for (size_t i = 0; graphs != NULL && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(graphs, words[i]) == 0)
            return true;
    return false;
}

/* From NCCL's mask, too, before it reads that again. */
static void take_away(_Atomic int *mask)
{
    atomic_fetch_and(mask, ~ATT_STAMPS);
    if (att_chain_profiler_on())
        att_chain_profiler_sync();
}

/* ---- at the start ---- */

/* A warning where somebody is there to tune; once a process, from rank 0. */
__attribute__((format(printf, 3, 4))) static void
say(const att_context_t *context, att_nccl_logger_fn logger, const char *format, ...)
{
    static att_log_site_t site;
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (context->rank == 0 && atomic_load(&context->memory->header.agent_tuning) != 0)
        att_log_limited(&site, ATT_LOG_WARN, "no call is timed from here on: %s", text);
    else
        att_hook_say(logger, "no call is timed from here on: %s", text);
}

bool att_stamps_have_room(const char *folder, uint64_t pools)
{
    struct statvfs room;
    return statvfs(folder, &room) == 0 &&
           (uint64_t)room.f_bavail * room.f_frsize >= pools * ATT_STAMPS_POOL;
}

/* Pools that this communicator and the others of this node have still to make, each with its
 * variants. */
static uint64_t pools_to_come(const att_context_t *context, const att_profiler_start_t *start)
{
    const att_segment_memory_t *memory = context->memory;
    const char *list = getenv("ATTUNE_VARIANTS");
    att_variants_t variants = {0};
    if (list != NULL && att_variants_parse(list, &variants, NULL) != ATT_OK)
        variants.count = 0;
    uint64_t ranks =
        start->nodes > 0 ? (start->ranks + start->nodes - 1) / start->nodes : start->ranks;
    uint32_t count = att_segment_count(&memory->header.member_count, ATT_MEMBERS);
    for (uint32_t i = 0; i < count; i++) {
        const att_segment_member_t *member = &memory->members[i];
        if (atomic_load(&member->state) == ATT_ENTRY_LIVE && member->profiler_abi != 0 &&
            atomic_load(&member->stamped) == 0 &&
            memory->groups[member->group % ATT_GROUPS].hash != start->comm_id)
            ranks++;
    }
    return ranks * (1 + variants.count);
}

/* Profiler ABI 6 and AllGatherV came with the same NCCL, 2.29.2. As NCCL reads numbers
 * (src/misc/param.cc): nothing, or no number, is the default. */
static bool may_gather(uint32_t profiler_abi)
{
    const char *enabled = getenv("NCCL_ALLGATHERV_ENABLE");
    char *end = NULL;
    if (profiler_abi < 6)
        return false;
    return enabled == NULL || strtol(enabled, &end, 0) != 0 || end == enabled || *end != '\0';
}

void att_stamps_init(att_context_t *context, const att_profiler_start_t *start)
{
    att_segment_process_t *process = context->sink.process;
    bool preloaded = att_preload_copy_watch(start->mask, context->mask);
    context->gathers = may_gather(start->abi);
    if (!att_event_driver_is_loaded() || atomic_load(&process->unstamped) != 0)
        return;
    uint64_t pools = pools_to_come(context, start);
    bool excluded = att_stamps_graphs_excluded();
    if (!excluded && (!preloaded || att_event_driver() == NULL)) {
        att_stamps_end(process, context->mask, ATT_UNSTAMPED_UNTOLD);
        say(context, start->logger, "%s", untold);
    } else if (att_preload_thread.creation.parent == NULL && /* its variants are counted with it */
               !att_stamps_have_room(SHARED_MEMORY, pools)) {
        att_stamps_end(process, context->mask, ATT_UNSTAMPED_ROOM);
        say(context, start->logger,
            "NCCL would need %llu MiB in %s for it, and the job would die of a fault without "
            "(docker run --shm-size, or --ipc=host)",
            (unsigned long long)(pools * ATT_STAMPS_POOL >> 20), SHARED_MEMORY);
    } else if (!excluded) {
        atomic_store(&att_stamps_by_preload, true);
    }
}

/* ---- later ---- */

/* After the end of stamps, for the first call of each copy: the end may have been of another copy's
 * mask, and its thread may not have taken this one's bits away yet. */
static __attribute__((noinline)) void make_bare(att_preload_copy_t *copy,
                                                att_segment_process_t *process, _Atomic int *mask)
{
    att_stamps_end(process, mask, 0);
    atomic_store_explicit(&copy->bare, true, memory_order_release);
}

void att_stamps_before(const att_preload_copy_t *copy, void *stream)
{
    _Atomic int *mask = atomic_load_explicit(&copy->mask, memory_order_acquire);
    if (mask == NULL || !atomic_load_explicit(&att_stamps_by_preload, memory_order_relaxed))
        return;
    const att_hook_t *hook = att_hook_attached();
    const att_event_driver_t *driver = att_event_driver();
    int status = 0;
    if (hook == NULL || driver == NULL || att_hook_is_stopped() ||
        atomic_load_explicit(&copy->bare, memory_order_acquire))
        return;
    if (atomic_load(&hook->process->unstamped) != 0) {
        make_bare((att_preload_copy_t *)copy, hook->process, mask);
        return;
    }
    int error = driver->capturing(stream, &status);
    if (__builtin_expect(error == NO_CONTEXT, 0))
        take_away(mask); /* not known, for this call */
    else if (__builtin_expect(error != 0 && error != OTHER_CAPTURES, 0))
        att_stamps_end(hook->process, mask, ATT_UNSTAMPED_UNTOLD);
    else if (__builtin_expect(error != 0 || status != 0, 0))
        att_stamps_end(hook->process, mask, ATT_UNSTAMPED_GRAPH);
}

bool att_stamps_pause(const att_preload_copy_t *copy)
{
    _Atomic int *mask = atomic_load_explicit(&copy->mask, memory_order_acquire);
    if (mask == NULL || (atomic_load(mask) & ATT_EVENT_KERNEL_CH) == 0)
        return false;
    take_away(mask);
    return true;
}

void att_stamps_resume(const att_preload_copy_t *copy)
{
    const att_hook_t *hook = att_hook_attached();
    if (hook == NULL || att_hook_is_stopped())
        return;
    att_stamps_on(hook->process, atomic_load_explicit(&copy->mask, memory_order_acquire));
    if (att_chain_profiler_on())
        att_chain_profiler_sync();
}

/* The communicator's memory may be shared with one that passes: vLLM takes NCCL's functions with
 * dlsym beside PyTorch, which is linked with them. */
void att_stamps_bypassed(const att_context_t *context)
{
    if (atomic_load(&context->sink.process->unstamped) != 0)
        return;
    att_stamps_end(context->sink.process, context->mask, ATT_UNSTAMPED_UNTOLD);
    say(context, NULL, "%s", untold);
}

/* Against att_stamps_end in another thread: either this one sees the end, or that one sees this one
 * and waits until its bits are there to be taken away. */
void att_stamps_on(const att_segment_process_t *process, _Atomic int *mask)
{
    atomic_fetch_add(&switching, 1);
    if (atomic_load(&process->unstamped) == 0)
        atomic_fetch_or(mask, ATT_STAMPS);
    atomic_fetch_sub(&switching, 1);
}

void att_stamps_end(att_segment_process_t *process, _Atomic int *mask, uint32_t why)
{
    atomic_fetch_or(&process->unstamped, why);
    while (atomic_load(&switching) != 0)
        continue;
    take_away(mask);
}

void att_stamps_broadcast(att_context_t *context, int root)
{
    bool several = context->has_root && context->broadcast_root != root;
    context->has_root = true;
    context->broadcast_root = root;
    if (!several || !context->gathers)
        return;
    context->gathering = true;
    if (atomic_load(&context->sink.process->unstamped) != 0)
        return;
    att_stamps_end(context->sink.process, context->mask, ATT_UNSTAMPED_GATHERS);
    say(context, NULL,
        "the job broadcasts from several roots in one group, and NCCL's stamps are wrong after "
        "such an AllGatherV; NCCL_ALLGATHERV_ENABLE=0 does without it");
}
