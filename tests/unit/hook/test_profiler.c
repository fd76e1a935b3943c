/* The profiler half: which calls are timed, with what, and what happens to impossible events. */
#include "fake_nccl.h"
#include "hook/context.h"
#include "hook/handle.h"
#include "hook/preload.h"
#include "hook/profiler.h"
#include "isolated.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define ALL_REDUCE ATT_COLLECTIVE_ALL_REDUCE

static att_segment_process_t *process(void)
{
    return &agent_memory()->processes[0];
}

static void want_stamps(bool on)
{
    atomic_store(&process()->timing, on);
}

static att_record_t next_record(void)
{
    att_record_t record;
    CHECK(agent_record(&record));
    return record;
}

static void no_record(void)
{
    att_record_t record;
    CHECK(!agent_record(&record));
}

/* A communicator with stamps on: the first call after the wish only switches them on. */
static void timed_comm(fake_comm_t *comm, int abi, uint64_t id, int ranks)
{
    fake_init(comm, &fake_linked, abi, id, ranks, 0);
    want_stamps(true);
    fake_call(comm, ALL_REDUCE, 64, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_OFF);
    no_record();
}

static void a_lone_call(int abi)
{
    fake_comm_t comm;
    timed_comm(&comm, abi, 0xabc, 4);
    comm.sequence[ALL_REDUCE] = 41;
    comm.clock = 5000;
    fake_op_t op = fake_call(&comm, ALL_REDUCE, 4096, 777);
    att_record_t r = next_record();
    CHECK_EQUAL(r.untimed, ATT_UNTIMED_NO);
    CHECK_EQUAL(r.source, ATT_TIME_KERNEL);
    CHECK_EQUAL(r.start_ns, 5000);
    CHECK_EQUAL(r.stop_ns, 5777);
    CHECK_EQUAL(r.call, 0);
    CHECK_EQUAL(r.nccl_seq, 41);
    CHECK_EQUAL(r.bytes, 4096);
    CHECK_EQUAL(r.task, agent_task(ALL_REDUCE, 4096));
    CHECK_EQUAL(r.member, 0);
    CHECK_EQUAL(r.process, 0);
    CHECK_EQUAL(r.collective, ALL_REDUCE);
    CHECK_EQUAL(r.algorithm, op.algorithm);
    CHECK_EQUAL(r.protocol, op.protocol);
    CHECK_EQUAL(r.channels, 16);
    CHECK_EQUAL(r.threads, 544);
    CHECK_EQUAL(r.datatype, 7);
    CHECK_EQUAL(r.txn, 0);
    CHECK_EQUAL(r.chunk_bytes, 0);
    no_record();
    att_segment_member_t *member = &agent_memory()->members[0];
    CHECK_EQUAL(atomic_load(&member->channels), 16);
    CHECK_EQUAL(atomic_load(&member->used_pairs),
                ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE));
    CHECK_EQUAL(member->tuner_abi, abi);
    CHECK_EQUAL(member->profiler_abi, abi);
    want_stamps(false);
    fake_call(&comm, ALL_REDUCE, 4096, 777); /* its events were already on */
    CHECK_EQUAL(next_record().call, 1);
    CHECK_EQUAL(fake_mask, ATT_EVENT_COLL_API);
    for (int i = 0; i < 10; i++)
        fake_call(&comm, ALL_REDUCE, 4096, 777);
    no_record();
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 0);
    CHECK_EQUAL(atomic_load(&process()->decisions), 13);
    CHECK_EQUAL(atomic_load(&process()->timed), 2);
    CHECK_EQUAL(atomic_load(&process()->untimed[ATT_UNTIMED_OFF]), 11);
}

ISOLATED(a_lone_call_v5)
{
    a_lone_call(5);
}

ISOLATED(a_lone_call_v6)
{
    a_lone_call(6);
}

ISOLATED(a_lone_call_without_api_events)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 5, 0xabc, 4, 0);
    comm.no_api = true;
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    want_stamps(true);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED); /* nothing ended the batch before */
    for (int i = 0; i < 5; i++) {
        fake_call(&comm, ALL_REDUCE, 4096, 100);
        CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    }
    no_record();
    fake_destroy(&comm);
}

/* Every collective: NCCL's element counts come back as the tuner's bytes. */
ISOLATED(bytes_of_every_collective)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 4);
    for (int collective = 0; collective < ATT_COLLECTIVE_COUNT; collective++) {
        bool all =
            collective == ATT_COLLECTIVE_ALL_GATHER || collective == ATT_COLLECTIVE_REDUCE_SCATTER;
        bool typed =
            collective != ATT_COLLECTIVE_ALL_GATHER && collective != ATT_COLLECTIVE_BROADCAST;
        fake_call(&comm, collective, 4096, 100);
        att_record_t r = next_record();
        CHECK_EQUAL(r.untimed, ATT_UNTIMED_NO);
        CHECK_EQUAL(r.bytes, all ? 4096 * 4 : 4096);
        CHECK_EQUAL(r.datatype, typed ? 7 : 255);
    }
    fake_destroy(&comm);
}

ISOLATED(a_trial_carries_its_setting)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    next_record();
    att_setting_t list[2] = {ATT_SETTING_KEEP, ATT_SETTING_KEEP};
    list[0].algorithm = ATT_ALGORITHM_TREE;
    list[0].protocol = ATT_PROTOCOL_SIMPLE;
    list[0].channels = 3;
    list[0].chunk_bytes = 65536;
    agent_commit(agent_task(ALL_REDUCE, 4096), 1, list, 2, 2);
    for (int call = 1; call < 5; call++) {
        fake_op_t op = fake_call(&comm, ALL_REDUCE, 4096, 100);
        att_record_t r = next_record();
        CHECK_EQUAL(r.call, call);
        CHECK_EQUAL(r.untimed, ATT_UNTIMED_NO);
        CHECK_EQUAL(r.txn, 1);
        CHECK_EQUAL(r.channels, call < 3 ? 3 : 16);
        CHECK_EQUAL(r.chunk_bytes, call < 3 ? 65536 : 0);
        CHECK_EQUAL(op.chunk, call < 3 ? 65536 : 524288);
        CHECK_EQUAL(r.algorithm, call < 3 ? ATT_ALGORITHM_TREE : ATT_ALGORITHM_RING);
    }
    /* The most that NCCL's own choice used, not what a trial used. */
    CHECK_EQUAL(atomic_load(&agent_memory()->members[0].channels), 16);
    /* A trial without stamps leaves a record, so that the agent need not wait for it. */
    want_stamps(false);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    next_record();
    agent_commit(agent_task(ALL_REDUCE, 4096), 6, list, 2, 1);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    att_record_t r = next_record();
    CHECK_EQUAL(r.untimed, ATT_UNTIMED_OFF);
    CHECK_EQUAL(r.txn, 2);
    CHECK_EQUAL(r.channels, 3);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    no_record();
    fake_destroy(&comm);
}

ISOLATED(groups_are_not_timed)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    for (int aggregate = 0; aggregate < 2; aggregate++) {
        comm.aggregate = aggregate;
        fake_begin(&comm);
        for (size_t i = 0; i < 3; i++)
            fake_enqueue(&comm, ALL_REDUCE, 1024 + i, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        fake_launch(&comm);
        for (int i = 0; i < 3; i++)
            fake_run(&comm, &comm.ops[i], 100);
        fake_end(&comm);
        for (int i = 0; i < (aggregate ? 1 : 3); i++)
            CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED);
        no_record();
    }
    fake_destroy(&comm);
    /* The same without CollApi events: the second question or Coll event gives it away. */
    fake_init(&comm, &fake_linked, 6, 0xabd, 2, 0);
    comm.no_api = true;
    for (int i = 0; i < 2; i++)
        fake_call(&comm, ALL_REDUCE, 4096, 100);
    for (att_record_t record; agent_record(&record);)
        continue;
    uint64_t grouped = atomic_load(&process()->untimed[ATT_UNTIMED_GROUPED]);
    for (int aggregate = 0; aggregate < 2; aggregate++) {
        comm.aggregate = aggregate;
        comm.op_count = 0;
        for (size_t i = 0; i < 2; i++)
            fake_enqueue(&comm, ALL_REDUCE, 4096, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        fake_launch(&comm);
        for (int i = 0; i < 2; i++)
            fake_run(&comm, &comm.ops[i], 100);
        if (aggregate) {
            /* The first event does not have the batch's bytes. */
            CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_MISMATCH);
        } else {
            CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED);
            CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED);
        }
        no_record();
    }
    comm.no_api = false;
    comm.aggregate = false;
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&process()->untimed[ATT_UNTIMED_GROUPED]), grouped + 2);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 0);
}

/* NCCL 2.29.2 asks twice for one small collective: it is not known which answer it took. */
ISOLATED(asked_twice_is_not_timed)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_begin(&comm);
    fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    fake_run(&comm, op, 100);
    fake_end(&comm);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_GROUPED);
    no_record();
    fake_destroy(&comm);
}

/* Times that cannot be: no time has passed; more channels started than NCCL said. */
ISOLATED(impossible_times)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    for (int what = 0; what < 3; what++) {
        fake_begin(&comm);
        fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        op->channels = 2;
        fake_launch(&comm);
        void *kernels[2];
        for (int c = 0; c < 2; c++)
            kernels[c] = fake_kernel_start(&comm, op->coll, c, 5000);
        if (what == 1)
            fake_kernel_start(&comm, op->coll, 7, 4000);
        for (int c = 0; c < 2; c++)
            fake_kernel_stop(&comm, kernels[c], what == 0 ? 5000 : 5001);
        fake_end(&comm);
        CHECK_EQUAL(next_record().untimed, what == 2 ? ATT_UNTIMED_NO : ATT_UNTIMED_LOST);
    }
    fake_destroy(&comm);
}

/* A Coll event with another function, size, pair or type is not this call's. */
ISOLATED(mismatches_are_not_timed)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    next_record();
    att_setting_t to = ATT_SETTING_KEEP;
    to.algorithm = ATT_ALGORITHM_RING;
    to.protocol = ATT_PROTOCOL_LL;
    agent_commit(agent_task(ALL_REDUCE, 4096), 1, &to, 1, 1);
    for (int what = 0; what < 7; what++) {
        fake_begin(&comm);
        fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        CHECK_EQUAL(op->protocol, ATT_PROTOCOL_LL);
        op->coll_channels = 16;
        if (what == 0)
            op->collective = ATT_COLLECTIVE_REDUCE;
        else if (what == 1)
            op->count++;
        else if (what == 2)
            op->protocol = ATT_PROTOCOL_SIMPLE;
        else if (what == 3)
            op->algorithm = ATT_ALGORITHM_TREE;
        else if (what == 4)
            op->datatype = "ncclFloat4";
        else if (what == 5)
            op->coll_channels = 0; /* CollNet: it is not known how many stamps to wait for */
        if (what < 6)
            fake_coll(&comm, op);
        fake_run(&comm, op, 100);
        fake_end(&comm);
        if (what < 6) {
            CHECK(op->coll == NULL);
            CHECK_EQUAL(next_record().untimed, what == 5 ? ATT_UNTIMED_LOST : ATT_UNTIMED_MISMATCH);
        }
        no_record();
    }
    /* No Coll event at all (Broadcast since 2.29.2): known when the next batch begins. */
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    att_record_t r = next_record();
    CHECK_EQUAL(r.call, 7);
    CHECK_EQUAL(r.untimed, ATT_UNTIMED_MISMATCH);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 0);
}

ISOLATED(collectives_without_a_question_are_unseen)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    for (int i = 0; i < 5; i++) { /* a symmetric kernel, a copy engine */
        fake_begin(&comm);
        fake_enqueue(&comm, ALL_REDUCE, 1024, false);
        fake_end(&comm);
    }
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&process()->unseen), 5);
    CHECK_EQUAL(atomic_load(&process()->decisions), 1);
}

/* A captured call has a number, takes the incumbent and stops stamps in this process for good. */
ISOLATED(captured_calls_take_the_incumbent)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    next_record();
    att_setting_t list[2] = {ATT_SETTING_KEEP, ATT_SETTING_KEEP};
    list[0].channels = 3;
    list[1].channels = 5;
    agent_commit(agent_task(ALL_REDUCE, 4096), 2, list, 2, 4);
    for (int call = 1; call < 8; call++) {
        bool captured = call == 1 || call == 3;
        fake_begin(&comm);
        fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, captured);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        /* Before the list, captured in it, in it, after it. */
        CHECK_EQUAL(op->channels, call < 2 ? 16 : captured ? 5 : call < 6 ? 3 : 5);
        fake_launch(&comm);
        fake_run(&comm, op, 100);
        fake_end(&comm);
        if (call < 6) {
            att_record_t r = next_record();
            CHECK_EQUAL(r.call, call);
            CHECK_EQUAL(r.untimed, captured ? ATT_UNTIMED_CAPTURED : ATT_UNTIMED_OFF);
        }
        no_record();
        CHECK_EQUAL(atomic_load(&process()->unstamped), ATT_UNSTAMPED_GRAPH);
        CHECK_EQUAL(fake_mask, ATT_EVENT_COLL_API);
    }
    fake_destroy(&comm);
    CHECK_EQUAL(atomic_load(&process()->frozen), 2);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 0);
}

/* Events after everything is closed, and for a context that has been taken over by another. */
ISOLATED(late_events_are_counted)
{
    fake_comm_t comm, next;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_begin(&comm);
    fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    fake_launch(&comm);
    void *kernel = fake_kernel_start(&comm, op->coll, 0, 5000);
    fake_end(&comm);
    comm.plugin->tuner6->finalize(comm.tuner);
    /* Between the two finalizes stamps may still come. */
    void *second = fake_kernel_start(&comm, op->coll, 1, 5000);
    CHECK(second != NULL);
    comm.plugin->profiler6->finalize(comm.profiler);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_LOST);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 0);
    fake_kernel_stop(&comm, kernel, 6000);
    CHECK(fake_kernel_start(&comm, op->coll, 2, 5000) == NULL);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 2);
    fake_coll(&comm, op);
    CHECK(op->coll == NULL);
    CHECK_EQUAL(fake_call(&comm, ALL_REDUCE, 4096, 100).channels, 16);

    fake_init(&next, &fake_linked, 6, 0xdef, 2, 0);
    CHECK(next.profiler == comm.profiler);
    fake_call(&next, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    fake_kernel_stop(&comm, second, 6000);
    CHECK_EQUAL(atomic_load(&process()->anomalies), 3);
    no_record();
    /* Twice, and in the other order. */
    comm.plugin->profiler6->finalize(next.profiler);
    comm.plugin->tuner6->finalize(next.tuner);
    comm.plugin->tuner6->finalize(next.tuner);
    comm.plugin->profiler6->finalize(next.profiler);
    /* Handles that were never ours. */
    fake_kernel_stop(&comm, (void *)(uintptr_t)0xdeadbeefdeadbeef, 6000);
    fake_kernel_stop(&comm, att_handle_pack(ATT_HANDLE_KERNEL, 4000, 1, 3), 6000);
    fake_kernel_start(&comm, att_handle_pack(ATT_HANDLE_COLL, 4000, 1, 3), 1, 6000);
    fake_kernel_start(&comm, (void *)(uintptr_t)0x1234, 1, 6000);
}

/* Stamps that never come: the entry is used again after a while, and the record says so. */
ISOLATED(lost_stamps)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    uint64_t reasons[ATT_UNTIMED_COUNT] = {0};
    att_record_t r;
    for (int i = 0; i < 10000; i++) {
        fake_begin(&comm);
        fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
        CHECK_EQUAL(fake_prepare(&comm), 0);
        fake_launch(&comm);
        if (i >= 5000)
            fake_run(&comm, op, 100);
        fake_end(&comm);
        while (agent_record(&r))
            reasons[r.untimed]++;
    }
    fake_destroy(&comm);
    while (agent_record(&r))
        reasons[r.untimed]++;
    /* 2048 in flight; the next ones find no room until those are 4096 batches old, and those that
     * took their places before stamps came again are lost too. */
    CHECK_EQUAL(reasons[ATT_UNTIMED_LOST], 2048 + (5000 - 4096));
    CHECK(reasons[ATT_UNTIMED_NO] > 2048);
    CHECK_EQUAL(reasons[ATT_UNTIMED_NO] + reasons[ATT_UNTIMED_LOST] + reasons[ATT_UNTIMED_FULL],
                10000);
    for (int i = 0; i < ATT_UNTIMED_COUNT; i++)
        CHECK_EQUAL(i == 0 ? atomic_load(&process()->timed) : atomic_load(&process()->untimed[i]),
                    reasons[i] + (i == ATT_UNTIMED_OFF));
}

/* A full ring: what finds no room is counted, then stamps go off until somebody reads again. */
ISOLATED(a_full_ring_ends_stamps)
{
    fake_comm_t comm;
    timed_comm(&comm, 6, 0xabc, 2);
    for (int i = 0; i < ATT_RING + 100; i++)
        fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(atomic_load(&agent_memory()->rings[0].dropped), 1);
    CHECK_EQUAL(atomic_load(&process()->timed), ATT_RING);
    CHECK_EQUAL(atomic_load(&process()->untimed[ATT_UNTIMED_FULL]), 1);
    CHECK_EQUAL(fake_mask, ATT_EVENT_COLL_API);
    for (int i = 0; i < ATT_RING; i++)
        next_record();
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_OFF);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    fake_destroy(&comm);
}

/* A captured call that bypasses the tuner says nothing about the next one. */
ISOLATED(capture_is_not_carried_over)
{
    fake_comm_t comm;
    fake_init(&comm, &fake_linked, 6, 0xabc, 2, 0);
    fake_call(&comm, ALL_REDUCE, 4096, 100);
    agent_memory();
    att_setting_t list[2] = {ATT_SETTING_KEEP, ATT_SETTING_KEEP};
    list[0].channels = 3;
    agent_commit(agent_task(ALL_REDUCE, 4096), 1, list, 2, 4);
    comm.op_count = 0;
    fake_enqueue(&comm, ALL_REDUCE, 1024, true); /* no GroupApi event: its handle is unknown */
    comm.op_count = 0;
    fake_op_t *op = fake_enqueue(&comm, ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(&comm), 0);
    CHECK_EQUAL(op->channels, 3);
    fake_destroy(&comm);
}

/* A graph's replay gives Coll events whenever it runs, and a chained profiler may have lost whose
 * they are: they must not end the batch of a group that is being asked about. */
ISOLATED(a_replay_splits_no_group)
{
    fake_comm_t comm;
    int channels = 0;
    timed_comm(&comm, 6, 0xabc, 2);
    fake_begin(&comm);
    for (size_t i = 0; i < 2; i++)
        fake_enqueue(&comm, ALL_REDUCE, 1024 << i, false);
    fake_ask(&comm, ALL_REDUCE, 4096, comm.costs, comm.algorithms, &channels);
    fake_op_t late = comm.ops[0];
    late.api = NULL;
    fake_coll(&comm, &late);
    CHECK(late.coll == NULL);
    fake_ask(&comm, ALL_REDUCE, 8192, comm.costs, comm.algorithms, &channels);
    CHECK_EQUAL(att_context_at(0)->batch.decisions, 2);
    fake_end(&comm);
    fake_destroy(&comm);
}

static void *prepare_elsewhere(void *comm)
{
    CHECK_EQUAL(fake_prepare(comm), 0);
    return NULL;
}

/* A communicator that does not block: the group is simulated by a thread of NCCL's. */
ISOLATED(simulated_by_another_thread)
{
    fake_comm_t comm;
    pthread_t thread;
    timed_comm(&comm, 6, 0xabc, 2);
    atomic_store(&att_preload_active, true);
    fake_begin(&comm);
    for (size_t i = 0; i < 2; i++)
        fake_enqueue(&comm, ALL_REDUCE, 16 << i, false);
    att_profiler_simulate();
    CHECK_EQUAL(pthread_create(&thread, NULL, prepare_elsewhere, &comm), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    fake_end(&comm);
    comm.op_count = 0;
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[0].word) >> 1, 1); /* 64 bytes, as before */
    CHECK_EQUAL(atomic_load(&agent_memory()->header.lane_count), 1);
    fake_call(&comm, ALL_REDUCE, 64, 100); /* the next group is none */
    CHECK_EQUAL(atomic_load(&agent_memory()->lanes[0].word) >> 1, 2);
    CHECK_EQUAL(next_record().untimed, ATT_UNTIMED_NO);
    fake_destroy(&comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_call_v5),
        cmocka_unit_test(a_lone_call_v6),
        cmocka_unit_test(a_lone_call_without_api_events),
        cmocka_unit_test(bytes_of_every_collective),
        cmocka_unit_test(a_trial_carries_its_setting),
        cmocka_unit_test(groups_are_not_timed),
        cmocka_unit_test(asked_twice_is_not_timed),
        cmocka_unit_test(impossible_times),
        cmocka_unit_test(mismatches_are_not_timed),
        cmocka_unit_test(collectives_without_a_question_are_unseen),
        cmocka_unit_test(captured_calls_take_the_incumbent),
        cmocka_unit_test(late_events_are_counted),
        cmocka_unit_test(lost_stamps),
        cmocka_unit_test(a_full_ring_ends_stamps),
        cmocka_unit_test(capture_is_not_carried_over),
        cmocka_unit_test(a_replay_splits_no_group),
        cmocka_unit_test(simulated_by_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
