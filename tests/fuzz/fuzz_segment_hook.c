/*
 * The hook on a segment with mutated contents: patches between NCCL's calls. Whatever is in the
 * segment, the hook neither leaves it nor hands NCCL a setting outside of the cost table.
 */
#include "base/ring.h"
#include "base/fence.h"
#include "hook/hook.h"
#include "patch.h"

#include "../unit/hook/fake_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const att_hook_t *hook;
static char directory[] = "/tmp/att-fuzz-hook-XXXXXX";

static void leave(void)
{
    unlink(att_segment_file(hook->segment));
    rmdir(directory);
}

static void attach(void)
{
    if (mkdtemp(directory) == NULL)
        abort();
    setenv("ATTUNE_SHM_DIR", directory, 1);
    setenv("ATTUNE_RUN_ID", "fuzz", 1);
    hook = att_hook_attach(fake_logger);
    if (hook == NULL)
        abort();
    atexit(leave);
}

/* The segment as the hook found it when it attached. */
static void start_over(void)
{
    att_segment_memory_t *m = hook->memory;
    atomic_store(&m->header.group_count, 0);
    atomic_store(&m->header.member_count, 0);
    atomic_store(&m->header.task_count, 0);
    atomic_store(&m->header.lane_count, 0);
    atomic_store(&m->header.process_count, 1);
    memset(m->groups, 0, sizeof m->groups);
    memset(m->members, 0, sizeof m->members);
    memset(m->tasks, 0, sizeof m->tasks);
    memset(m->lanes, 0, sizeof m->lanes);
    memset(hook->process, 0, sizeof *hook->process);
    atomic_store(&hook->process->state, ATT_ENTRY_LIVE);
    att_ring_init(hook->ring);
    fuzz_patch_waits(m);
    fake_mask = 0;
}

/* What an agent does, with a list that the input writes. */
static void commit(const fuzz_patch_t *patch, uint32_t txn)
{
    att_segment_memory_t *m = hook->memory;
    uint32_t lane = patch->entry % 4;
    att_segment_task_t *task = &m->tasks[m->lanes[lane].task % 4];
    att_schedule_t schedule = {.txn = txn, .count = 1};
    schedule.entries[0].first_call = patch->offset % 64;
    memcpy(&schedule.entries[0].setting, &patch->value, sizeof patch->value);
    if (att_home_open(task, txn) == ATT_OK &&
        att_vote_prepare(m, task, &lane, 1, &schedule) == ATT_VOTE_YES && patch->offset % 3 != 0)
        att_home_decide(task, txn, ATT_HOME_COMMITTED);
}

static void call(fake_comm_t *comm, const fuzz_patch_t *patch)
{
    fake_op_t op = fake_call(comm, (int)(patch->offset % ATT_COLLECTIVE_COUNT),
                             256u << patch->entry % 4, 1 + patch->value % 4096);
    if (comm->result == ATT_NCCL_SUCCESS &&
        (op.algorithm < 0 || op.algorithm > 1 || op.channels < 1))
        abort(); /* only tree and ring are in the table */
}

static void act(fake_comm_t *comms, const fuzz_patch_t *patch, uint32_t *txn)
{
    fake_comm_t *comm = &comms[patch->entry / 4 % 2];
    switch (patch->op % 8) {
    case 0:
    case 1:
        call(comm, patch);
        break;
    case 2: /* a group of two, captured or not */
        fake_begin(comm);
        fake_enqueue(comm, ATT_COLLECTIVE_ALL_REDUCE, 64, patch->value % 2);
        fake_enqueue(comm, ATT_COLLECTIVE_ALL_GATHER, 64, patch->value % 2);
        if (fake_prepare(comm) == ATT_NCCL_SUCCESS)
            fake_launch(comm);
        fake_end(comm);
        break;
    case 3:
        atomic_store(&hook->process->timing, patch->value % 2);
        break;
    case 4: {
        uint64_t id = comm->id;
        fake_destroy(comm);
        fake_init(comm, &fake_linked, patch->value % 2 ? 5 : 6, id, 2, comm->rank);
        break;
    }
    case 5: {
        att_record_t record;
        while (att_ring_get(hook->ring, &record))
            continue;
        break;
    }
    default:
        commit(patch, ++*txn);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (hook == NULL)
        attach();
    start_over();
    fake_comm_t comms[2];
    for (int r = 0; r < 2; r++)
        fake_init(&comms[r], &fake_linked, 6, 0xf00d, 2, r);
    for (int r = 0; r < 2; r++)
        fake_call(&comms[r], ATT_COLLECTIVE_ALL_REDUCE, 1024, 100);
    fuzz_patch_t patch;
    uint32_t txn = 0;
    for (int i = 0; i < 200 && fuzz_patch_next(&data, &size, &patch); i++)
        if (patch.op < 128)
            fuzz_patch_apply(hook->memory, &patch);
        else
            act(comms, &patch, &txn);
    for (int r = 0; r < 2; r++)
        fake_destroy(&comms[r]);
    return 0;
}
