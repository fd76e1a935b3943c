#include "fabric/channel.h"

#include "attune/setting.h"

/* Everything that an algorithm needs while it runs. */
typedef struct att_run {
    att_channel_t *channel;
    const att_task_t *task;
    att_transfer_t transfer;
    const uint8_t *send;
    uint8_t *receive;
    size_t block; /* bytes of one rank's block (AllGather, ReduceScatter) */
    size_t start; /* byte offset of the part in its block */
    size_t bytes; /* of the part */
} att_run_t;

static int tree_place(const att_channel_t *channel, int number, int rank)
{
    return number % 2 ? channel->ranks - 1 - rank : rank;
}

void att_channel_connect(att_channel_t *channel, att_arena_t *arena, int number)
{
    int n = arena->count, r = arena->rank;
    channel->rank = r;
    channel->ranks = n;
    att_wire_open(&channel->ring_out, arena, r, number, ATT_WIRE_RING);
    att_wire_open(&channel->ring_in, arena, (r + n - 1) % n, number, ATT_WIRE_RING);

    int place = tree_place(channel, number, r);
    for (int c = 0; c < 2; c++) {
        int below = 2 * place + 1 + c;
        if (below >= n)
            continue;
        int child = tree_place(channel, number, below);
        att_wire_open(&channel->up_in[c], arena, child, number, ATT_WIRE_UP);
        att_wire_open(&channel->down_out[c], arena, r, number,
                      (att_wire_kind_t)(ATT_WIRE_DOWN_0 + c));
    }
    if (place > 0) {
        int parent = tree_place(channel, number, (place - 1) / 2);
        att_wire_open(&channel->up_out, arena, r, number, ATT_WIRE_UP);
        att_wire_open(&channel->down_in, arena, parent, number,
                      (att_wire_kind_t)(ATT_WIRE_DOWN_0 + (place - 1) % 2));
    }
    channel->connected = true;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One step over the ring. */
static ncclResult_t ring_step(att_run_t *run, bool in, bool out, const void *source, void *target,
                              size_t bytes, bool last)
{
    att_step_t step = {in ? &run->channel->ring_in : NULL,
                       out ? &run->channel->ring_out : NULL,
                       source,
                       target,
                       bytes,
                       last};
    return att_wire_step(&run->transfer, &step);
}

/* Reduce-scatter of the chunks of a loop, then all-gather of the results. */
static ncclResult_t ring_all_reduce(att_run_t *run)
{
    int n = run->channel->ranks, r = run->channel->rank;
    ncclResult_t result = ncclSuccess;
    size_t loop = run->transfer.chunk * (size_t)n;
    for (size_t at = 0; at < run->bytes; at += loop) {
        size_t left = run->bytes - at;
        /* The last loop is shared evenly, in whole elements (16 bytes hold any of them). */
        size_t chunk = left >= loop ? run->transfer.chunk
                                    : smaller(run->transfer.chunk,
                                              ((left + (size_t)n - 1) / (size_t)n + 15) / 16 * 16);
        for (int s = 0; s < 2 * n - 1 && result == ncclSuccess; s++) {
            int index = (r - 1 - s + 3 * n) % n; /* chunk in hand: ends as our own at s = n - 1 */
            size_t offset = (size_t)index * chunk;
            size_t bytes = offset < left ? smaller(chunk, left - offset) : 0;
            const uint8_t *source = run->send + run->start + at + offset;
            uint8_t *target = run->receive + run->start + at + offset;
            if (s == 0)
                result = ring_step(run, false, true, source, NULL, bytes, false);
            else if (s < n - 1)
                result = ring_step(run, true, true, source, NULL, bytes, false);
            else if (s == n - 1)
                result = ring_step(run, true, true, source, target, bytes, true);
            else
                result = ring_step(run, true, s < 2 * n - 2, NULL, target, bytes, false);
        }
        if (result != ncclSuccess)
            break;
    }
    return result;
}

static ncclResult_t ring_all_gather(att_run_t *run)
{
    int n = run->channel->ranks, r = run->channel->rank;
    ncclResult_t result = ncclSuccess;
    for (size_t at = 0; at < run->bytes && result == ncclSuccess; at += run->transfer.chunk) {
        size_t bytes = smaller(run->transfer.chunk, run->bytes - at);
        for (int s = 0; s < n && result == ncclSuccess; s++) {
            int block = (r - s + n) % n;
            uint8_t *target = run->receive + (size_t)block * run->block + run->start + at;
            const uint8_t *source = s == 0 ? run->send + run->start + at : NULL;
            result = ring_step(run, s > 0, s < n - 1, source, target, bytes, false);
        }
    }
    return result;
}

static ncclResult_t ring_reduce_scatter(att_run_t *run)
{
    int n = run->channel->ranks, r = run->channel->rank;
    ncclResult_t result = ncclSuccess;
    for (size_t at = 0; at < run->bytes && result == ncclSuccess; at += run->transfer.chunk) {
        size_t bytes = smaller(run->transfer.chunk, run->bytes - at);
        for (int s = 0; s < n && result == ncclSuccess; s++) {
            int block = (r - 1 - s + 2 * n) % n;
            bool last = s == n - 1;
            const uint8_t *source = run->send + (size_t)block * run->block + run->start + at;
            uint8_t *target = last ? run->receive + run->start + at : NULL;
            result = ring_step(run, s > 0, !last, source, target, bytes, last);
        }
    }
    return result;
}

static ncclResult_t ring_broadcast(att_run_t *run)
{
    int n = run->channel->ranks, r = run->channel->rank;
    bool root = r == run->task->root, end = (r + 1) % n == run->task->root;
    ncclResult_t result = ncclSuccess;
    for (size_t at = 0; at < run->bytes && result == ncclSuccess; at += run->transfer.chunk) {
        size_t bytes = smaller(run->transfer.chunk, run->bytes - at);
        uint8_t *target = run->receive + run->start + at;
        const uint8_t *source = root ? run->send + run->start + at : NULL;
        result = ring_step(run, !root, !end, source, target, bytes, false);
    }
    return result;
}

static ncclResult_t ring_reduce(att_run_t *run)
{
    int n = run->channel->ranks, r = run->channel->rank;
    bool root = r == run->task->root, first = (r + n - 1) % n == run->task->root;
    ncclResult_t result = ncclSuccess;
    for (size_t at = 0; at < run->bytes && result == ncclSuccess; at += run->transfer.chunk) {
        size_t bytes = smaller(run->transfer.chunk, run->bytes - at);
        const uint8_t *source = run->send + run->start + at;
        uint8_t *target = root ? run->receive + run->start + at : NULL;
        result = ring_step(run, !first, !root, source, target, bytes, root);
    }
    return result;
}

/* Contributions of one chunk towards the root, which keeps the result. */
static ncclResult_t tree_up(att_run_t *run, size_t offset, size_t bytes)
{
    att_channel_t *channel = run->channel;
    att_wire_t *up = channel->up_out.shared ? &channel->up_out : NULL;
    const uint8_t *source = run->send + offset;
    uint8_t *target = run->receive + offset;
    int children = channel->up_in[1].shared ? 2 : channel->up_in[0].shared ? 1 : 0;
    if (children == 0) {
        att_step_t step = {NULL, up, source, NULL, bytes, false};
        return att_wire_step(&run->transfer, &step);
    }
    if (children == 2) {
        /* The receive buffer holds the sum of the first two. */
        att_step_t first = {&channel->up_in[0], NULL, source, target, bytes, false};
        ncclResult_t result = att_wire_step(&run->transfer, &first);
        if (result != ncclSuccess)
            return result;
        source = target;
    }
    att_step_t step = {&channel->up_in[children - 1], up, source, up ? NULL : target, bytes, !up};
    return att_wire_step(&run->transfer, &step);
}

static ncclResult_t tree_down(att_run_t *run, size_t offset, size_t bytes)
{
    att_channel_t *channel = run->channel;
    uint8_t *target = run->receive + offset;
    att_wire_t *in = channel->down_in.shared ? &channel->down_in : NULL;
    att_wire_t *out = channel->down_out[0].shared ? &channel->down_out[0] : NULL;
    att_step_t step = {in, out, in ? NULL : target, in ? target : NULL, bytes, false};
    ncclResult_t result = att_wire_step(&run->transfer, &step);
    if (result == ncclSuccess && channel->down_out[1].shared) {
        att_step_t second = {NULL, &channel->down_out[1], target, NULL, bytes, false};
        result = att_wire_step(&run->transfer, &second);
    }
    return result;
}

/* The results of a chunk go down `lag` chunks after its contributions went up. Every wait is then
 * for an earlier chunk of a neighbour, so that waits cannot form a circle, and both ways are busy.
 */
static ncclResult_t tree_all_reduce(att_run_t *run)
{
    size_t chunk = run->transfer.chunk, chunks = (run->bytes + chunk - 1) / chunk;
    const att_wire_t *any =
        run->channel->up_out.shared ? &run->channel->up_out : &run->channel->up_in[0];
    size_t lag = att_wire_slot_count(any, run->transfer.protocol, chunk) / 2;
    ncclResult_t result = ncclSuccess;
    for (size_t k = 0; k < chunks + lag && result == ncclSuccess; k++) {
        if (k < chunks)
            result = tree_up(run, run->start + k * chunk, smaller(chunk, run->bytes - k * chunk));
        if (result == ncclSuccess && k >= lag && k - lag < chunks) {
            size_t at = (k - lag) * chunk;
            result = tree_down(run, run->start + at, smaller(chunk, run->bytes - at));
        }
    }
    return result;
}

ncclResult_t att_channel_run(att_channel_t *channel, att_arena_t *arena, const att_task_t *task,
                             const att_part_t *part)
{
    if (part->count == 0)
        return ncclSuccess;
    size_t element = att_datatype_size(task->type);
    att_run_t run = {
        .channel = channel,
        .task = task,
        .transfer = {arena, task->protocol, part->chunk, task->type, task->op, channel->ranks},
        .send = task->send,
        .receive = task->receive,
        .block = task->count * element,
        .start = part->offset * element,
        .bytes = part->count * element,
    };
    if (task->algorithm == ATT_ALGORITHM_TREE)
        return tree_all_reduce(&run);
    switch (task->function) {
    case ATT_COLLECTIVE_ALL_REDUCE:
        return ring_all_reduce(&run);
    case ATT_COLLECTIVE_ALL_GATHER:
        return ring_all_gather(&run);
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return ring_reduce_scatter(&run);
    case ATT_COLLECTIVE_BROADCAST:
        return ring_broadcast(&run);
    default:
        return ring_reduce(&run);
    }
}
