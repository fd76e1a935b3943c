#include "fabric/group.h"

#include "attune/setting.h"
#include "fabric/datatype.h"
#include "fabric/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A communicator to be created at the end of the group. */
typedef struct att_creation {
    struct att_creation *next;
    att_comm_wish_t wish;
    ncclComm_t *out;
    struct ncclComm *comm;
    ncclResult_t result;
    pthread_t thread;
    bool started;
} att_creation_t;

static _Thread_local struct {
    int depth;
    ncclResult_t error; /* of a call inside the group */
    att_creation_t *creations;
    struct ncclComm *comms; /* with tasks, by hash */
} group;

bool att_group_open(void)
{
    return group.depth > 0;
}

ncclResult_t att_group_start(void)
{
    group.depth++;
    return ncclSuccess;
}

static void *creation_main(void *argument)
{
    att_creation_t *creation = argument;
    creation->result = att_comm_create(&creation->wish, &creation->comm);
    return NULL;
}

ncclResult_t att_group_create(const att_comm_wish_t *wish, ncclComm_t *comm)
{
    if (group.depth == 0)
        return att_comm_create(wish, comm);
    att_creation_t *creation = calloc(1, sizeof *creation);
    if (!creation)
        return att_fabric_error(ncclSystemError, "out of memory");
    creation->wish = *wish;
    creation->out = comm;
    att_creation_t **link = &group.creations;
    while (*link)
        link = &(*link)->next;
    *link = creation;
    return ncclSuccess;
}

static ncclResult_t create_all(void)
{
    ncclResult_t result = ncclSuccess;
    for (att_creation_t *one = group.creations; one; one = one->next) {
        one->started = pthread_create(&one->thread, NULL, creation_main, one) == 0;
        if (!one->started)
            one->result = att_fabric_error(ncclSystemError, "cannot start a thread");
    }
    for (att_creation_t *one = group.creations; one; one = one->next) {
        if (one->started)
            pthread_join(one->thread, NULL);
        if (one->result != ncclSuccess && result == ncclSuccess)
            result = one->result;
    }
    while (group.creations) {
        att_creation_t *one = group.creations;
        group.creations = one->next;
        if (result == ncclSuccess) {
            *one->out = one->comm;
            att_device_use(one->wish.device);
        } else {
            att_comm_destroy(one->comm);
        }
        free(one);
    }
    return result;
}

static void drop_all(void)
{
    while (group.creations) {
        att_creation_t *one = group.creations;
        group.creations = one->next;
        free(one);
    }
    while (group.comms) {
        struct ncclComm *comm = group.comms;
        group.comms = comm->group_next;
        comm->in_group = false;
        comm->task_count = 0;
    }
}

/* Into the list, by hash; of one communicator in the order of joining. */
static void join(struct ncclComm *comm)
{
    if (comm->in_group)
        return;
    struct ncclComm **link = &group.comms;
    while (*link && (*link)->hash <= comm->hash)
        link = &(*link)->group_next;
    comm->group_next = *link;
    *link = comm;
    comm->in_group = true;
}

/*
 * Decisions. NCCL sorts by traffic, bins by (function, operation, type) in the order of first
 * occurrence, and asks once for neighbours of a bin whose traffic is below 4 times the smallest.
 */
typedef struct att_sorted {
    size_t traffic;
    size_t bin;
    size_t order;
    att_task_t task;
} att_sorted_t;

static int by_traffic(const void *left, const void *right) /* largest first */
{
    const att_sorted_t *a = left, *b = right;
    if (a->traffic != b->traffic)
        return a->traffic > b->traffic ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int by_bin(const void *left, const void *right) /* smallest first inside a bin */
{
    const att_sorted_t *a = left, *b = right;
    if (a->bin != b->bin)
        return a->bin < b->bin ? -1 : 1;
    if (a->traffic != b->traffic)
        return a->traffic < b->traffic ? -1 : 1;
    return (a->order < b->order) - (a->order > b->order);
}

static bool same_bin(const att_task_t *a, const att_task_t *b)
{
    return a->function == b->function && a->op == b->op && a->type == b->type;
}

static void sort_tasks(const struct ncclComm *comm, att_sorted_t *sorted)
{
    size_t count = comm->task_count;
    for (size_t i = 0; i < count; i++) {
        const att_task_t *task = &comm->tasks[i];
        sorted[i].task = *task;
        sorted[i].order = i;
        sorted[i].traffic = task->count * att_datatype_size(task->type) *
                            (size_t)att_task_traffic(task->function, comm->decider.ranks);
    }
    qsort(sorted, count, sizeof *sorted, by_traffic);
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (!same_bin(&sorted[first].task, &sorted[i].task))
            first++;
        sorted[i].bin = first;
    }
    qsort(sorted, count, sizeof *sorted, by_bin);
}

static ncclResult_t decide_all(struct ncclComm *comm, float *estimate_us)
{
    size_t count = comm->task_count;
    int pipe_ops =
        (int)((count + (size_t)comm->decider.channels - 1) / (size_t)comm->decider.channels);
    att_sorted_t *sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return att_fabric_error(ncclSystemError, "out of memory");
    sort_tasks(comm, sorted);
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < count && result == ncclSuccess;) {
        att_task_t sum = sorted[i].task;
        size_t end = i + 1;
        for (; end < count && sorted[end].bin == sorted[i].bin &&
               sorted[end].traffic < 4 * sorted[i].traffic;
             end++)
            sum.count += sorted[end].task.count;
        float cost = 0;
        result = att_decision_choose(&comm->decider, &sum, pipe_ops, &cost);
        if (estimate_us)
            *estimate_us += cost;
        for (; i < end; i++) {
            comm->tasks[i] = sorted[i].task;
            comm->tasks[i].algorithm = sum.algorithm;
            comm->tasks[i].protocol = sum.protocol;
            comm->tasks[i].max_channels = sum.max_channels;
            comm->tasks[i].warps = sum.warps;
            comm->tasks[i].threads = sum.threads;
            comm->tasks[i].transport = sum.transport;
        }
    }
    free(sorted);
    return result;
}

/* One batch of one communicator on its way. */
typedef struct att_launch {
    struct ncclComm *comm;
    att_task_t *tasks;
    size_t count;
    att_batch_t batch;
    bool started;
    ncclResult_t result;
} att_launch_t;

static void lay_out(att_launch_t *launch)
{
    struct ncclComm *comm = launch->comm;
    for (size_t i = 0; i < launch->count; i++) {
        launch->tasks[i].call = comm->calls++;
        att_oracle_inject(&comm->oracle, &launch->tasks[i], comm->arena.rank,
                          comm->decider.channels);
    }
    launch->result = att_decision_lay_out(&comm->decider, launch->tasks, launch->count);
    if (launch->result == ncclSuccess)
        att_oracle_publish(&comm->oracle, &comm->arena, launch->tasks, launch->count);
    else
        att_arena_fail(&comm->arena, ncclRemoteError,
                       launch->tasks[0].call); /* or all others wait */
}

static void start(att_launch_t *launch, bool inline_one)
{
    struct ncclComm *comm = launch->comm;
    if (launch->result == ncclSuccess)
        launch->result =
            att_oracle_agree(&comm->oracle, &comm->arena, launch->tasks, launch->count);
    if (launch->result != ncclSuccess)
        return;
    launch->result =
        att_batch_start(&launch->batch, &comm->team, launch->tasks, launch->count, inline_one);
    launch->started = launch->result == ncclSuccess;
    if (launch->started)
        att_event_launched(&comm->profile, launch->tasks, launch->count, comm->stream);
}

static void finish(att_launch_t *launch)
{
    struct ncclComm *comm = launch->comm;
    if (launch->started)
        launch->result = att_batch_finish(&launch->batch);
    if (launch->result == ncclSuccess)
        launch->result = att_oracle_confirm(&comm->arena, launch->tasks, launch->count);
    if (launch->result == ncclSuccess) {
        att_arena_rank_t *own = &comm->arena.ranks[comm->arena.rank];
        att_signal_set(&own->finished, (uint32_t)comm->calls);
        att_event_channels(&comm->profile, launch->tasks, launch->count, launch->batch.stamps);
        return;
    }
    atomic_store(&comm->error, (uint32_t)launch->result);
    att_arena_fail(&comm->arena, att_batch_others_result(launch->result), launch->tasks[0].call);
}

/* The next batch of every communicator that still has tasks. */
static ncclResult_t launch_round(att_launch_t *launches, size_t comms, size_t from)
{
    size_t count = 0;
    for (struct ncclComm *comm = group.comms; comm; comm = comm->group_next) {
        if (comm->task_count <= from)
            continue;
        att_launch_t *launch = &launches[count++];
        memset(launch, 0, sizeof *launch);
        launch->comm = comm;
        launch->tasks = comm->tasks + from;
        launch->count = comm->task_count - from;
        if (launch->count > ATT_ARENA_BATCH)
            launch->count = ATT_ARENA_BATCH;
    }
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < count; i++)
        lay_out(&launches[i]);
    for (size_t i = 0; i < count; i++)
        start(&launches[i], comms == 1);
    for (size_t i = 0; i < count; i++) {
        finish(&launches[i]);
        if (result == ncclSuccess)
            result = launches[i].result;
    }
    return result;
}

static ncclResult_t run_all(float *estimate_us)
{
    ncclResult_t result = ncclSuccess;
    size_t comms = 0, most = 0;
    for (struct ncclComm *comm = group.comms; comm && result == ncclSuccess;
         comm = comm->group_next) {
        comms++;
        if (comm->task_count > most)
            most = comm->task_count;
        result = decide_all(comm, estimate_us);
        /* As in NCCL this rank fails alone; here the others then do not wait for ever. */
        if (result != ncclSuccess && !estimate_us)
            att_arena_fail(&comm->arena, ncclRemoteError, comm->calls);
    }
    if (result != ncclSuccess || estimate_us || comms == 0)
        return result;
    att_launch_t *launches = NULL;
    if (posix_memalign((void **)&launches, 64, comms * sizeof *launches))
        return att_fabric_error(ncclSystemError, "out of memory");
    for (size_t from = 0; from < most && result == ncclSuccess; from += ATT_ARENA_BATCH)
        result = launch_round(launches, comms, from);
    free(launches);
    return result;
}

static void set_inside(int change)
{
    for (struct ncclComm *comm = group.comms; comm; comm = comm->group_next)
        atomic_fetch_add(&comm->inside, (uint32_t)change);
}

/* Leave one level; at the outermost do the work. estimate_us: simulate. */
static ncclResult_t leave(float *estimate_us)
{
    if (group.depth == 0)
        return att_fabric_error(ncclInvalidUsage, "ncclGroupEnd: not in a group");
    att_event_group_leave();
    if (--group.depth > 0)
        return ncclSuccess;
    ncclResult_t result = group.error;
    group.error = ncclSuccess;
    if (result == ncclSuccess)
        result = create_all();
    if (result == ncclSuccess) {
        set_inside(1);
        result = run_all(estimate_us);
        struct ncclComm *comms = group.comms;
        group.comms = NULL;
        while (comms) { /* after `inside` falls an abort may free it */
            struct ncclComm *comm = comms;
            comms = comm->group_next;
            comm->in_group = false;
            comm->task_count = 0;
            atomic_fetch_sub(&comm->inside, 1);
        }
    }
    drop_all();
    att_event_group_stop();
    return result;
}

ncclResult_t att_group_end(void)
{
    return leave(NULL);
}

ncclResult_t att_group_simulate(float *estimate_us)
{
    *estimate_us = 0;
    return leave(estimate_us);
}

static ncclResult_t check_call(const att_call_t *call)
{
    ncclResult_t result = att_comm_check(call->comm, call->name);
    if (result != ncclSuccess)
        return result;
    const struct ncclComm *comm = call->comm;
    bool reduces = call->function == ATT_COLLECTIVE_ALL_REDUCE ||
                   call->function == ATT_COLLECTIVE_REDUCE ||
                   call->function == ATT_COLLECTIVE_REDUCE_SCATTER;
    if (!att_datatype_size(call->type))
        return att_fabric_error(ncclInvalidArgument, "%s: unknown data type %d", call->name,
                                call->type);
    if (reduces && (call->op < 0 || call->op >= ncclNumOps))
        return att_fabric_error(ncclInvalidArgument,
                                "%s: operation %d; the fabric has sum, prod, max, min, avg",
                                call->name, call->op);
    if (reduces && !att_datatype_reducible(call->type))
        return att_fabric_error(ncclInvalidArgument, "%s: no reduction for %s", call->name,
                                att_datatype_name(call->type));
    if (call->root < 0 || call->root >= comm->decider.ranks)
        return att_fabric_error(ncclInvalidArgument, "%s: root %d of %d ranks", call->name,
                                call->root, comm->decider.ranks);
    bool is_root = call->root == comm->arena.rank;
    bool sends = call->function != ATT_COLLECTIVE_BROADCAST || is_root;
    bool receives = call->function != ATT_COLLECTIVE_REDUCE || is_root;
    if (call->count && ((sends && !call->send) || (receives && !call->receive)))
        return att_fabric_error(ncclInvalidArgument, "%s: buffer is NULL", call->name);
    return ncclSuccess;
}

/* Like NCCL: no task, no tuner, no events. */
static void run_alone(const att_call_t *call)
{
    if (call->send != call->receive)
        memmove(call->receive, call->send, call->count * att_datatype_size(call->type));
}

static ncclResult_t append(const att_call_t *call)
{
    struct ncclComm *comm = call->comm;
    if (call->count == 0)
        return ncclSuccess;
    if (comm->decider.ranks == 1) {
        run_alone(call);
        return ncclSuccess;
    }
    att_task_t task = {.function = call->function,
                       .send = call->send,
                       .receive = call->receive,
                       .count = call->count,
                       .type = call->type,
                       .op = call->op,
                       .root = call->root};
    if (call->function == ATT_COLLECTIVE_ALL_GATHER || call->function == ATT_COLLECTIVE_BROADCAST) {
        task.count *= att_datatype_size(call->type);
        task.type = ncclInt8;
    }
    join(comm);
    comm->stream = call->stream;
    att_event_call(&comm->profile, &task, group.depth, call->count, call->type, call->stream);
    return att_comm_add_task(comm, &task);
}

ncclResult_t att_group_call(const att_call_t *call)
{
    ncclResult_t result = att_comm_check(call->comm, call->name);
    if (result != ncclSuccess) {
        if (group.depth > 0)
            group.error = result;
        return result;
    }
    /* A lone call is a group of its own. */
    att_event_group_deepen();
    group.depth++;
    result = check_call(call);
    if (result == ncclSuccess)
        result = append(call);
    if (result != ncclSuccess)
        group.error = result;
    ncclResult_t end = leave(NULL);
    return result != ncclSuccess ? result : end;
}
