#include "fabric/batch.h"

#include "base/clock.h"
#include "fabric/error.h"

#include <string.h>

static ncclResult_t run_real(att_batch_t *batch, att_worker_t *worker)
{
    att_channel_t *channel = &worker->channel;
    if (!channel->connected)
        att_channel_connect(channel, batch->team->arena, worker->number);
    ncclResult_t result = ncclSuccess;
    att_stamp_t *stamp = &batch->stamps[worker->number];
    stamp->start_ns = att_clock_ns();
    for (size_t i = 0; i < batch->count && result == ncclSuccess; i++) {
        att_part_t part;
        if (att_task_part(&batch->tasks[i], worker->number, &part))
            result = att_channel_run(channel, batch->team->arena, &batch->tasks[i], &part);
    }
    stamp->stop_ns = att_clock_ns();
    return result;
}

static ncclResult_t run_model(att_batch_t *batch)
{
    att_stamp_t stamp = {0, 0};
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < batch->count && result == ncclSuccess; i++) {
        uint64_t start_ns = 0, stop_ns = 0;
        result = att_model_run(batch->team->model, &batch->tasks[i], &start_ns, &stop_ns);
        if (i == 0)
            stamp.start_ns = start_ns;
        stamp.stop_ns = stop_ns;
    }
    for (size_t i = 0; i < batch->count; i++)
        for (int c = 0; c < batch->tasks[i].channels; c++)
            batch->stamps[batch->tasks[i].channel_low + c] = stamp;
    return result;
}

ncclResult_t att_batch_others_result(ncclResult_t result)
{
    return result == ncclInternalError ? ncclInternalError : ncclRemoteError;
}

/* A channel that fails leaves others of this rank and of its peers waiting: at once, not when all
 * of this rank's channels are through. */
static void run_channel(att_batch_t *batch, att_worker_t *worker)
{
    ncclResult_t result = batch->team->model ? run_model(batch) : run_real(batch, worker);
    if (result != ncclSuccess) {
        uint32_t none = 0;
        atomic_compare_exchange_strong(&batch->result, &none, (uint32_t)result);
        att_arena_fail(batch->team->arena, att_batch_others_result(result), batch->tasks[0].call);
    }
}

static void *worker_main(void *argument)
{
    att_worker_t *worker = argument;
    for (uint32_t next = 1;; next++) {
        att_signal_wait(&worker->posted, next, NULL);
        if (atomic_load(&worker->team->ending))
            return NULL;
        att_batch_t *batch = worker->batch;
        run_channel(batch, worker);
        att_signal_add(&worker->team->done, 1);
    }
}

void att_team_open(att_team_t *team, att_arena_t *arena, att_model_t *model)
{
    memset(team, 0, sizeof *team);
    team->arena = arena;
    team->model = model;
    for (int c = 0; c < ATT_ARENA_CHANNELS; c++) {
        team->workers[c].team = team;
        team->workers[c].number = c;
    }
}

void att_team_close(att_team_t *team)
{
    atomic_store(&team->ending, true);
    for (int c = 0; c < ATT_ARENA_CHANNELS; c++) {
        if (!team->workers[c].started)
            continue;
        att_signal_add(&team->workers[c].posted, 1);
        pthread_join(team->workers[c].thread, NULL);
        team->workers[c].started = false;
    }
}

static ncclResult_t start_workers(att_batch_t *batch)
{
    for (int c = batch->channel_low; c < batch->channel_end; c++) {
        att_worker_t *worker = &batch->team->workers[c];
        if (c == batch->own || worker->started)
            continue;
        if (pthread_create(&worker->thread, NULL, worker_main, worker))
            return att_fabric_error(ncclSystemError, "cannot start a channel's thread");
        worker->started = true;
    }
    return ncclSuccess;
}

ncclResult_t att_batch_start(att_batch_t *batch, att_team_t *team, att_task_t *tasks, size_t count,
                             bool inline_one)
{
    memset(batch, 0, sizeof *batch);
    batch->team = team;
    batch->tasks = tasks;
    batch->count = count;
    batch->channel_low = ATT_ARENA_CHANNELS;
    if (team->model) {
        batch->channel_low = 0;
        batch->channel_end = 1;
    }
    for (size_t i = 0; i < count && !team->model; i++) {
        int low = tasks[i].channel_low, end = low + tasks[i].channels;
        if (low < batch->channel_low)
            batch->channel_low = low;
        if (end > batch->channel_end)
            batch->channel_end = end;
    }
    batch->own = inline_one ? batch->channel_low : -1;
    ncclResult_t result = start_workers(batch);
    if (result != ncclSuccess) {
        batch->channel_end = batch->channel_low; /* nothing was posted */
        batch->own = -1;
        return result;
    }
    for (int c = batch->channel_low; c < batch->channel_end; c++) {
        if (c == batch->own)
            continue;
        team->workers[c].batch = batch;
        team->posted++;
        att_signal_add(&team->workers[c].posted, 1);
    }
    return ncclSuccess;
}

ncclResult_t att_batch_finish(att_batch_t *batch)
{
    att_team_t *team = batch->team;
    if (batch->own >= 0)
        run_channel(batch, &team->workers[batch->own]);
    att_signal_wait(&team->done, team->posted, NULL);
    return (ncclResult_t)atomic_load(&batch->result);
}
