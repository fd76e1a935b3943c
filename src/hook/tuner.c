/* Hot path (decide, chunk): no allocation, lock, system call or unbounded loop, except at the first
 * call of a task and at a held word. */
#include "hook/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pins.h"
#include "base/protocol.h"
#include "hook/context.h"
#include "hook/preload.h"
#include "hook/stamps.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

int att_tuner_init_idle(void **out, att_nccl_logger_fn logger, const char *why)
{
    *out = &att_context_idle;
    if (att_hook_attach(logger) != NULL)
        att_hook_say(logger, "a communicator is not tuned: %s", why);
    return ATT_NCCL_SUCCESS;
}

/* Not a matter of attune's settings: the same with any tuner. */
static void warn_of_policy(const att_context_t *context)
{
    static _Atomic bool said;
    int configured = att_preload_thread.creation.cta_policy;
    if (context->rank == 0 && att_pins_efficiency(att_pins_own_variable, NULL, configured) &&
        !atomic_exchange(&said, true))
        att_log(
            ATT_LOG_WARN,
            "NCCL_CTA_POLICY or a communicator's CTAPolicy asks for EFFICIENCY; with any tuner "
            "plugin loaded NCCL does not choose NVLS for registered buffers: where that matters "
            "run the job without attune");
}

int att_tuner_init(void **out, uint64_t comm_id, size_t ranks, size_t nodes,
                   att_nccl_logger_fn logger, uint32_t abi)
{
    *out = &att_context_idle;
    const att_hook_t *hook = att_hook_attach(logger);
    if (hook == NULL || ranks < 2)
        return ATT_NCCL_SUCCESS;
    att_context_t *context = att_context_identify(comm_id, ranks);
    if (context == NULL && comm_id != ATT_COMM_UNTOLD) /* a group needs its hash too */
        context = att_preload_identify(hook, comm_id, (uint32_t)ranks);
    if (context != NULL && att_preload_thread.creation.parent != NULL) {
        att_context_join_variant(context, att_preload_thread.creation.parent, abi);
        att_preload_created(context, logger);
        *out = context;
        return ATT_NCCL_SUCCESS;
    }
    if (context == NULL) {
        att_hook_say(logger,
                     "communicator %#llx is not tuned: its rank is unknown without the "
                     "profiler half (NCCL_PROFILER_PLUGIN) or the preload",
                     (unsigned long long)comm_id);
        return ATT_NCCL_SUCCESS;
    }
    warn_of_policy(context);
    /* A trial must not go into a graph, and stamps not at all (hook/stamps.h). */
    if (context->profiler_abi != 0 && context->profiler_abi < ATT_PROFILER_WITH_CALLS &&
        !att_stamps_graphs_excluded()) {
        att_hook_say(logger,
                     "communicator %#llx is not tuned: NCCL before 2.28.3 does not tell which "
                     "calls go into a CUDA graph; --no-graphs says that none do",
                     (unsigned long long)context->comm_id);
        return ATT_NCCL_SUCCESS;
    }
    if (!att_context_join(context, (uint32_t)nodes, abi, logger)) {
        static att_log_site_t site;
        att_log_limited(&site, ATT_LOG_WARN,
                        "communicator %#llx is not tuned: the node's tables are full",
                        (unsigned long long)context->comm_id);
        return ATT_NCCL_SUCCESS;
    }
    /* Always on: whether a call is captured must be known for every call, on every rank alike. */
    if (context->profiler_abi >= ATT_PROFILER_WITH_CALLS)
        atomic_fetch_or(context->mask, ATT_EVENT_COLL_API);
    att_preload_created(context, logger);
    *out = context;
    return ATT_NCCL_SUCCESS;
}

int att_tuner_finalize(void *pointer)
{
    att_context_t *context = pointer;
    if (context != NULL && context->memory != NULL && !att_hook_is_stopped()) {
        att_context_release(context); /* aborted, or ended by another thread than a call's */
        att_context_leave_tuner(context);
    }
    return ATT_NCCL_SUCCESS;
}

#ifdef __SSE2__
static inline uint32_t four_legal(const float *costs)
{
    return (uint32_t)_mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(costs), _mm_setzero_ps()));
}
#endif

/* The pairs that NCCL may choose, as ATT_PAIR_BIT()s: topoGetAlgoInfo (src/enqueue.cc) takes the
 * least entry that is not negative. */
static uint32_t legal_pairs(const float *table, int algorithms, int protocols)
{
#ifdef __SSE2__
    if (algorithms >= ATT_ALGORITHM_COUNT && protocols == ATT_PROTOCOL_COUNT)
        return four_legal(table) | four_legal(table + 4) << 4 | four_legal(table + 8) << 8 |
               four_legal(table + 12) << 12 | four_legal(table + 16) << 16 |
               (table[20] >= 0.0f ? 1u << 20 : 0);
#endif
    uint32_t pairs = 0;
    for (int a = 0; a < algorithms && a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < protocols && p < ATT_PROTOCOL_COUNT; p++)
            if (table[a * protocols + p] >= 0.0f)
                pairs |= ATT_PAIR_BIT(a, p);
    return pairs;
}

/* First call of a task, or one that found no room before. */
static __attribute__((noinline)) att_lane_t *find_lane_slowly(att_context_t *context, uint32_t key,
                                                              uint64_t bytes, const float *table,
                                                              int algorithms, int protocols)
{
    att_task_entry_t *entry = att_task_find(context, key, bytes);
    if (entry != NULL && entry->key == key)
        return entry->lane;
    float cost_us[ATT_PAIR_COUNT];
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < ATT_PROTOCOL_COUNT; p++)
            cost_us[a * ATT_PROTOCOL_COUNT + p] =
                a < algorithms && p < protocols ? table[a * protocols + p] : -1.0f;
    return att_context_add_task(context, key, bytes, cost_us, att_preload_thread.variants);
}

/* The agent wishes for stamps: may it have them? None may get into a CUDA graph (hook/stamps.h). A
 * full ring means that nobody reads: an agent that died with its wish standing must not cost the
 * job anything. */
static __attribute__((noinline)) bool want_stamps(const att_context_t *context)
{
    const att_ring_t *ring = context->sink.ring;
    return atomic_load_explicit(&context->sink.process->unstamped, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&ring->head, memory_order_relaxed) -
                   atomic_load_explicit(&ring->tail, memory_order_relaxed) <
               ATT_RING;
}

static __attribute__((noinline)) void switch_stamps(att_context_t *context, bool on)
{
    if (on)
        att_stamps_on(context->sink.process, context->mask);
    else
        atomic_fetch_and(context->mask, ~ATT_STAMPS);
    /* Without CollApi events (no NCCL; a host library may lack them) nothing else may end this
     * batch. Not where getChunkSize follows: batches must then be the same on all ranks. */
    if (context->batch.apis == 0 && context->tuner_abi < 6)
        context->batch.launched = true;
}

/* The preload has recorded an event before this call: it gets the record, and the time. */
static att_untimed_t time_by_events(const att_context_t *context, att_record_t *record)
{
    att_preload_thread_t *me = &att_preload_thread;
    if (me->call == NULL || !me->timed || me->recorded)
        return ATT_UNTIMED_OFF;
    if (record->algorithm == ATT_ALGORITHM_KEEP) {
        record->algorithm = context->chosen_algorithm;
        record->protocol = context->chosen_protocol;
    }
    record->decided_ns = att_clock_ns();
    me->record = *record;
    me->recorded = true;
    return ATT_UNTIMED_NO;
}

/* By the group that its calls lay in, as NCCL may ask on a thread of its own; where it tells of no
 * calls, by the thread. */
static inline bool is_simulated(const att_preload_thread_t *me, const att_context_t *context)
{
    uint64_t simulated = atomic_load_explicit(&context->simulated, memory_order_relaxed);
    return __builtin_expect(me->simulating, 0) ||
           (__builtin_expect(simulated != 0, 0) &&
            simulated == atomic_load_explicit(&context->batch.group, memory_order_relaxed));
}

/* The group is simulated on this rank, maybe on no other: it takes no number. */
static __attribute__((noinline)) int simulate(att_context_t *context)
{
    context->counts.simulated++;
    context->batch.apis = 0; /* nor is it a call that was not seen */
    context->gathering = false;
    return ATT_NCCL_SUCCESS;
}

/* What NCCL takes when nothing is written: the strict minimum, the first of equal ones
 * (topoGetAlgoInfo, src/enqueue.cc). */
static void note_choice(att_context_t *context, const float *table, int algorithms, int protocols)
{
    float least = -1.0f;
    for (int i = 0; i < algorithms * protocols; i++)
        if (table[i] >= 0.0f && (least < 0.0f || table[i] < least)) {
            least = table[i];
            context->chosen_algorithm = (int8_t)(i / protocols);
            context->chosen_protocol = (int8_t)(i % protocols);
        }
}

/* A call that stamps or a trial make interesting: it yields a record, now or when it has run. */
static __attribute__((noinline)) void note_call(att_context_t *context, const att_lane_t *lane,
                                                att_decision_t decision)
{
    const att_batch_t *batch = &context->batch;
    uint64_t serial = atomic_load_explicit(&batch->serial, memory_order_relaxed);
    att_call_t *call = att_context_call(context, serial);
    att_record_t record = {
        .call = decision.call,
        .bytes = lane->task->bytes,
        .task = lane->shared->task,
        .member = lane->shared->member,
        .process = context->process_index,
        .txn = decision.txn,
        .collective = (uint8_t)lane->task->collective,
        .algorithm = decision.setting.algorithm,
        .protocol = decision.setting.protocol,
        .source = ATT_TIME_NONE,
        .datatype = 255,
        .channels = decision.setting.channels,
        .chunk_bytes = decision.setting.chunk_bytes,
    };
    if (att_preload_is_active())
        att_preload_label(&record);
    if (batch->captured)
        record.untimed = ATT_UNTIMED_CAPTURED;
    else if (batch->apis > 1 || batch->decisions > 1)
        record.untimed = ATT_UNTIMED_GROUPED;
    else if (context->timer != NULL)
        record.untimed = time_by_events(context, &record);
    else if (!batch->stamped)
        record.untimed = ATT_UNTIMED_OFF;
    else if (!att_call_claim(call, serial, &context->sink))
        record.untimed = ATT_UNTIMED_FULL;
    if (batch->decisions == 2 && batch->stamped) /* the first one is not alone any more */
        att_call_spoil(call, serial, ATT_UNTIMED_GROUPED, &context->sink);
    if (record.untimed != ATT_UNTIMED_NO) {
        att_sink_put(&context->sink, &record);
        return;
    }
    if (context->timer != NULL) /* kept until the call has returned */
        return;
    record.decided_ns = att_clock_ns();
    call->setting = decision.setting;
    call->record = record;
    att_call_publish(call, serial);
}

/* The decision of this call's switch could not be learnt: to launch it with a guess could hang the
 * job or corrupt its data. */
static __attribute__((noinline, cold)) int fail_in_doubt(att_context_t *context, att_lane_t *lane,
                                                         uint64_t call)
{
    context->counts.noted++; /* not launched: neither timed nor untimed */
    /* Where the application takes it down there is nothing to report. */
    if (atomic_load_explicit(&lane->gate->released, memory_order_relaxed) == 0)
        att_log(ATT_LOG_ERROR,
                "call %llu of %llu bytes on rank %u of group 0x%llx fails: whether its setting was "
                "switched could not be learnt from rank 0 within %.0f ms (--in-doubt-ms)",
                (unsigned long long)call, (unsigned long long)lane->task->bytes, context->rank,
                (unsigned long long)context->comm_id, (double)lane->header->in_doubt_ns * 1e-6);
    att_lane_leave(lane); /* from here on the communicator may go */
    return ATT_NCCL_SYSTEM_ERROR;
}

/* Write the setting into NCCL's table; false when it cannot be applied here. */
static inline bool apply(const att_context_t *context, const att_lane_t *lane,
                         const att_setting_t *setting, uint32_t pairs, float *table, int protocols,
                         int *channels)
{
    /* These are the communicator's, which the preload has chosen; without a chunk per call the
     * chunk is too. A call that it may not send to another one (in a group, captured) goes without
     * them, on every rank alike. */
    if ((setting->transport != ATT_TRANSPORT_KEEP || setting->threads != 0 ||
         (setting->chunk_bytes != 0 && context->tuner_abi < 6)) &&
        atomic_load_explicit(&lane->shared->variants, memory_order_relaxed) == 0)
        return false;
    if (setting->algorithm != ATT_ALGORITHM_KEEP) {
        if (setting->algorithm < 0 || setting->algorithm >= ATT_ALGORITHM_COUNT ||
            setting->protocol < 0 || setting->protocol >= ATT_PROTOCOL_COUNT ||
            (pairs & ATT_PAIR_BIT(setting->algorithm, setting->protocol)) == 0)
            return false;
        table[setting->algorithm * protocols + setting->protocol] = 0.0f;
    }
    if (setting->channels > 0)
        *channels = setting->channels;
    return true;
}

static inline void remember(att_batch_t *batch, int collective, const att_setting_t *setting)
{
    if (batch->decisions <= ATT_BATCH)
        batch->entries[batch->decisions - 1] = (att_batch_entry_t){
            (int8_t)collective, setting->algorithm, setting->protocol, setting->chunk_bytes};
    batch->chunks += setting->chunk_bytes != 0;
}

/* Without a profiler only the preload tells where a batch begins and what is captured. */
static void begin_untold(att_context_t *context, const float *table, int algorithms, int protocols)
{
    const att_preload_thread_t *me = &att_preload_thread;
    if (me->call != NULL && context->batch.decisions > 0)
        att_context_begin_batch(context, 0, false);
    context->batch.captured = me->captured;
    context->batch.stamped = false;
    if (me->captured)
        atomic_fetch_or(&context->sink.process->unstamped, ATT_UNSTAMPED_GRAPH);
    note_choice(context, table, algorithms, protocols);
}

int att_tuner_decide(void *pointer, int collective, size_t bytes, float *table, int algorithms,
                     int protocols, int *channels)
{
    att_context_t *context = pointer;
    if (!att_context_decides(context))
        return ATT_NCCL_SUCCESS;
    att_preload_thread_t *me = att_preload_is_active() ? att_preload_me() : NULL;
    if (me != NULL && is_simulated(me, context))
        return simulate(context);
    att_batch_t *batch = &context->batch;
    att_segment_process_t *process = context->sink.process;
    const att_preload_routed_t *routed = me != NULL ? att_preload_take(me, context) : NULL;
    if (__builtin_expect(context->variant && routed == NULL, 0))
        return ATT_NCCL_SUCCESS;
    bool stamps_on = (att_context_mask(context) & ATT_STAMPS) == ATT_STAMPS;
    if (batch->launched || atomic_load_explicit(&batch->serial, memory_order_relaxed) == 0 ||
        atomic_load_explicit(&batch->colls, memory_order_relaxed) != 0)
        att_context_begin_batch(context, 0, stamps_on);
    if (__builtin_expect(context->timer != NULL, 0))
        begin_untold(context, table, algorithms, protocols);
    bool stamps_wanted =
        atomic_load_explicit(&process->timing, memory_order_relaxed) != 0 && want_stamps(context);
    if (__builtin_expect(stamps_on != stamps_wanted, 0))
        switch_stamps(context, stamps_wanted);

    uint32_t pairs = legal_pairs(table, algorithms, protocols);
    att_lane_t *lane = NULL;
    if (__builtin_expect(routed != NULL, 0)) {
        lane = routed->lane;
    } else if (__builtin_expect(context->gathering && collective == ATT_COLLECTIVE_ALL_GATHER, 0)) {
        /* NCCL does not lower the channels of an AllGatherV to those that there are: its own. */
    } else if (__builtin_expect(pairs != 0 && (unsigned)collective < ATT_COLLECTIVE_COUNT, 1)) {
        uint32_t key = att_task_key((uint32_t)collective, pairs);
        const att_task_entry_t *entry = att_task_find(context, key, bytes);
        lane = entry != NULL && entry->key == key
                   ? entry->lane
                   : find_lane_slowly(context, key, bytes, table, algorithms, protocols);
    }
    batch->decisions += batch->decisions < UINT32_MAX; /* NCCL 2.27 may never tell of an end */
    context->has_root = false;
    if (__builtin_expect(lane == NULL, 0)) {
        context->counts.simulated++;
        remember(batch, collective, &ATT_SETTING_KEEP);
        return ATT_NCCL_SUCCESS;
    }

    att_decision_t decision =
        __builtin_expect(routed != NULL, 0) ? routed->decision : att_lane_next(lane);
    if (me != NULL)
        me->lane = lane;
    context->counts.decisions++;
    if (__builtin_expect(batch->captured, 0)) {
        decision.setting = lane->schedule.entries[lane->schedule.count - 1].setting;
        atomic_fetch_add_explicit(&process->frozen, 1, memory_order_relaxed);
    }
    remember(batch, collective, &decision.setting);
    if (__builtin_expect(
            !apply(context, lane, &decision.setting, pairs, table, protocols, channels) ||
                (routed != NULL && routed->impossible),
            0)) {
        if (decision.trial == ATT_DECISION_IN_DOUBT)
            return fail_in_doubt(context, lane, decision.call);
        atomic_fetch_add_explicit(&lane->shared->refused, 1, memory_order_relaxed);
        context->counts.noted++; /* not launched: neither timed nor untimed */
        return ATT_NCCL_SYSTEM_ERROR;
    }
    if (__builtin_expect(stamps_wanted || batch->stamped || decision.trial, 0)) {
        if (decision.trial == ATT_DECISION_IN_DOUBT)
            return fail_in_doubt(context, lane, decision.call);
        context->counts.noted++;
        note_call(context, lane, decision);
        att_context_flush(context);
    } else if (__builtin_expect(context->counts.decisions >= ATT_COUNTS_KEPT, 0)) {
        att_context_flush(context);
    }
    return ATT_NCCL_SUCCESS;
}

/* Floor to the grain, at least one. */
static size_t whole_grains(uint32_t bytes, int protocol)
{
    switch (protocol) {
    case ATT_PROTOCOL_LL:
        return bytes < ATT_GRAIN_LL ? ATT_GRAIN_LL : bytes / ATT_GRAIN_LL * ATT_GRAIN_LL;
    case ATT_PROTOCOL_LL128:
        return bytes < ATT_GRAIN_LL128 ? ATT_GRAIN_LL128
                                       : bytes / ATT_GRAIN_LL128 * ATT_GRAIN_LL128;
    default:
        return bytes < ATT_GRAIN_SIMPLE ? ATT_GRAIN_SIMPLE
                                        : bytes / ATT_GRAIN_SIMPLE * ATT_GRAIN_SIMPLE;
    }
}

/* The slots of these are sized for NCCL's own chunk (src/transport/nvls.cc), which its clamp does
 * not know. */
static bool never_above(int algorithm)
{
    return algorithm == ATT_ALGORITHM_NVLS || algorithm == ATT_ALGORITHM_NVLS_TREE ||
           algorithm == ATT_ALGORITHM_COLLNET_DIRECT || algorithm == ATT_ALGORITHM_COLLNET_CHAIN;
}

int att_tuner_chunk(void *pointer, int collective, int algorithm, int protocol, size_t *chunk)
{
    att_context_t *context = pointer;
    if (!att_context_decides(context))
        return ATT_NCCL_SUCCESS;
    att_batch_t *batch = &context->batch;
    batch->launched = true;
    if (__builtin_expect(batch->chunks == 0, 1))
        return ATT_NCCL_SUCCESS;
    if (batch->decisions > ATT_BATCH || (unsigned)protocol >= ATT_PROTOCOL_COUNT)
        return ATT_NCCL_SUCCESS;
    uint32_t matches = 0;
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < batch->decisions; i++) {
        const att_batch_entry_t *entry = &batch->entries[i];
        if (entry->collective == collective &&
            (entry->algorithm == ATT_ALGORITHM_KEEP ||
             (entry->algorithm == algorithm && entry->protocol == protocol))) {
            matches++;
            wanted = entry->chunk_bytes;
        }
    }
    if (matches != 1 || wanted == 0)
        return ATT_NCCL_SUCCESS;
    size_t value = whole_grains(wanted, protocol);
    if (!never_above(algorithm) || value < *chunk)
        *chunk = value;
    return ATT_NCCL_SUCCESS;
}
