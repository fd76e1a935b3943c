#include "fabric/movement.h"

#include "attune/setting.h"
#include "fabric/copy.h"
#include "fabric/datatype.h"

#define STAGE ATT_ARENA_STAGE
#define PIECE 16384u /* bytes reduced at a time: fits the first cache */

static ncclResult_t reserve(att_movement_t *movement, size_t bytes)
{
    att_arena_t *arena = movement->arena;
    if (bytes <= movement->reserved)
        return ncclSuccess;
    for (int parity = 0; parity < 2; parity++) {
        ncclResult_t result =
            att_arena_reserve(arena, att_arena_stage(arena, arena->rank, parity), bytes);
        if (result == ncclSuccess)
            result = att_arena_reserve(arena, att_arena_result(arena, parity), STAGE);
        if (result != ncclSuccess)
            return result;
    }
    movement->reserved = bytes;
    return ncclSuccess;
}

ncclResult_t att_movement_open(att_movement_t *movement, att_arena_t *arena)
{
    *movement = (att_movement_t){.arena = arena};
    return reserve(movement, STAGE);
}

/* Buffers of a rank of this process. */
static uint8_t *send_of(const att_movement_t *movement, int rank)
{
    const att_arena_rank_t *block = &movement->arena->ranks[rank];
    return (uint8_t *)(uintptr_t)block->buffers[movement->task->call % 2].send;
}

static uint8_t *receive_of(const att_movement_t *movement, int rank)
{
    const att_arena_rank_t *block = &movement->arena->ranks[rank];
    return (uint8_t *)(uintptr_t)block->buffers[movement->task->call % 2].receive;
}

static bool same_process(const att_arena_t *arena, int a, int b)
{
    return arena->ranks[a].process == arena->ranks[b].process;
}

static bool one_process(const att_arena_t *arena)
{
    for (int r = 1; r < arena->count; r++)
        if (!same_process(arena, r, 0))
            return false;
    return true;
}

/* The lowest rank whose receive buffer is this rank's: it alone writes it. */
static int writer_of(const att_movement_t *movement, int rank)
{
    const uint8_t *buffer = receive_of(movement, rank);
    for (int r = 0; r < rank && buffer; r++)
        if (same_process(movement->arena, r, rank) && receive_of(movement, r) == buffer)
            return r;
    return rank;
}

static bool any_shared(const att_movement_t *movement)
{
    for (int r = 1; r < movement->arena->count; r++)
        if (writer_of(movement, r) != r)
            return true;
    return false;
}

/* Does this rank write its receive buffer? */
static bool writes(const att_movement_t *movement)
{
    int rank = movement->arena->rank;
    switch (movement->task->function) {
    case ATT_COLLECTIVE_REDUCE:
        return movement->task->root == rank;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return true;
    default:
        return writer_of(movement, rank) == rank;
    }
}

static bool reduces_to_all(const att_task_t *task)
{
    return task->function == ATT_COLLECTIVE_ALL_REDUCE || task->function == ATT_COLLECTIVE_REDUCE;
}

/* Sum over ranks, in their order, of what source(rank) gives; `into` may be one of the sources. */
static void reduce_all(const att_movement_t *movement,
                       const uint8_t *(*source)(const att_movement_t *movement, int rank),
                       size_t at, size_t bytes, uint8_t *into)
{
    _Alignas(64) uint8_t sum[PIECE];
    const att_task_t *task = movement->task;
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        size_t count = piece / att_datatype_size(task->type);
        const uint8_t *left = source(movement, 0) + at + done;
        for (int r = 1; r < movement->arena->count; r++) {
            att_datatype_reduce(sum, left, source(movement, r) + at + done, count, task->type,
                                task->op);
            left = sum;
        }
        if (task->op == ncclAvg)
            att_datatype_scale(sum, count, task->type, movement->arena->count);
        att_copy(into + done, sum, piece);
    }
}

/*
 * Through stages.
 */
static const uint8_t *stage_of(const att_movement_t *movement, int rank)
{
    return att_arena_stage(movement->arena, rank, movement->parity);
}

static void last_to_come(void *argument)
{
    att_movement_t *movement = argument;
    if (movement->offset == 0)
        movement->all_there(movement->argument);
    if (reduces_to_all(movement->task))
        reduce_all(movement, stage_of, 0, movement->piece,
                   att_arena_result(movement->arena, movement->parity));
}

static void put_stage(const att_movement_t *movement)
{
    const att_task_t *task = movement->task;
    att_arena_t *arena = movement->arena;
    uint8_t *own = att_arena_stage(arena, arena->rank, movement->parity);
    const uint8_t *send = (const uint8_t *)task->send + movement->offset;
    if (task->function == ATT_COLLECTIVE_REDUCE_SCATTER) {
        for (int r = 0; r < arena->count; r++)
            att_copy(own + (size_t)r * STAGE, send + (size_t)r * movement->block, movement->piece);
    } else if (task->function != ATT_COLLECTIVE_BROADCAST || task->root == arena->rank) {
        att_copy(own, send, movement->piece);
    }
}

static void gather_stages(const att_movement_t *movement, uint8_t *receive)
{
    att_arena_t *arena = movement->arena;
    for (int r = 0; r < arena->count; r++) {
        uint8_t *target = receive + (size_t)r * movement->block;
        bool there = same_process(arena, r, arena->rank) &&
                     send_of(movement, r) + movement->offset == target;
        if (!there)
            att_copy(target, stage_of(movement, r), movement->piece);
    }
}

static void get_stages(const att_movement_t *movement)
{
    const att_task_t *task = movement->task;
    uint8_t *receive = (uint8_t *)task->receive + movement->offset;
    if (!writes(movement))
        return;
    switch (task->function) {
    case ATT_COLLECTIVE_ALL_GATHER:
        gather_stages(movement, receive);
        break;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        reduce_all(movement, stage_of, (size_t)movement->arena->rank * STAGE, movement->piece,
                   receive);
        break;
    case ATT_COLLECTIVE_BROADCAST:
        att_copy(receive, stage_of(movement, task->root), movement->piece);
        break;
    default:
        att_copy(receive, att_arena_result(movement->arena, movement->parity), movement->piece);
    }
}

static ncclResult_t move_staged(att_movement_t *movement, size_t moved)
{
    bool scatter = movement->task->function == ATT_COLLECTIVE_REDUCE_SCATTER;
    ncclResult_t result =
        reserve(movement, scatter ? (size_t)movement->arena->count * STAGE : STAGE);
    for (movement->offset = 0; movement->offset < moved && result == ncclSuccess;
         movement->offset += STAGE) {
        size_t left = moved - movement->offset;
        movement->piece = left < STAGE ? left : STAGE;
        put_stage(movement);
        result = att_arena_barrier(movement->arena, last_to_come, movement);
        if (result == ncclSuccess)
            get_stages(movement);
        movement->parity ^= 1;
    }
    /* What another rank wrote for us must be there when we return. */
    if (result == ncclSuccess && any_shared(movement))
        result = att_arena_barrier(movement->arena, NULL, NULL);
    return result;
}

/*
 * Directly.
 */
static const uint8_t *direct_send(const att_movement_t *movement, int rank)
{
    return send_of(movement, rank);
}

/* The part of the vector that a rank reduces for all; in place nobody else reads it. */
static size_t slice_start(const att_movement_t *movement, int rank)
{
    size_t element = att_datatype_size(movement->task->type);
    size_t count = movement->block / element;
    return count * (size_t)rank / (size_t)movement->arena->count * element;
}

static size_t slice_bytes(const att_movement_t *movement, int rank)
{
    return slice_start(movement, rank + 1) - slice_start(movement, rank);
}

static ncclResult_t all_reduce_directly(att_movement_t *movement)
{
    att_arena_t *arena = movement->arena;
    uint8_t *receive = movement->task->receive;
    size_t start = slice_start(movement, arena->rank);
    reduce_all(movement, direct_send, start, slice_bytes(movement, arena->rank), receive + start);
    ncclResult_t result = att_arena_barrier(arena, NULL, NULL);
    for (int r = 0; r < arena->count && result == ncclSuccess && writes(movement); r++) {
        size_t at = slice_start(movement, r);
        att_copy(receive + at, receive_of(movement, r) + at, slice_bytes(movement, r));
    }
    return result;
}

static void gather_directly(const att_movement_t *movement)
{
    for (int r = 0; r < movement->arena->count && writes(movement); r++)
        att_copy((uint8_t *)movement->task->receive + (size_t)r * movement->block,
                 send_of(movement, r), movement->block);
}

static ncclResult_t move_directly(att_movement_t *movement)
{
    const att_task_t *task = movement->task;
    att_arena_t *arena = movement->arena;
    ncclResult_t result = att_arena_barrier(arena, movement->all_there, movement->argument);
    if (result != ncclSuccess)
        return result;
    switch (task->function) {
    case ATT_COLLECTIVE_ALL_REDUCE:
        result = all_reduce_directly(movement);
        break;
    case ATT_COLLECTIVE_ALL_GATHER:
        gather_directly(movement);
        break;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        reduce_all(movement, direct_send, (size_t)arena->rank * movement->block, movement->block,
                   task->receive);
        break;
    case ATT_COLLECTIVE_BROADCAST:
        if (writes(movement))
            att_copy(task->receive, send_of(movement, task->root), movement->block);
        break;
    default:
        if (writes(movement))
            reduce_all(movement, direct_send, 0, movement->block, task->receive);
    }
    /* Nobody returns to its caller while another reads its buffers. */
    return result == ncclSuccess ? att_arena_barrier(arena, NULL, NULL) : result;
}

ncclResult_t att_movement_run(att_movement_t *movement, const att_task_t *task, size_t moved,
                              void (*all_there)(void *argument), void *argument)
{
    att_arena_rank_t *own = &movement->arena->ranks[movement->arena->rank];
    movement->task = task;
    movement->block = task->count * att_datatype_size(task->type);
    movement->all_there = all_there;
    movement->argument = argument;
    own->buffers[task->call % 2].send = (uint64_t)(uintptr_t)task->send;
    own->buffers[task->call % 2].receive = (uint64_t)(uintptr_t)task->receive;
    if (moved == movement->block && moved > STAGE && one_process(movement->arena))
        return move_directly(movement);
    return move_staged(movement, moved);
}
