#include "cli/bench_shape.h"

#include "attune/setting.h"

att_shape_t att_shape_make(int collective, uint64_t bytes, int type, int op, int root, int ranks)
{
    att_shape_t shape = {
        .collective = collective, .type = type, .op = op, .root = root, .ranks = ranks};
    shape.element = att_nccl_type_size(type);
    size_t total = bytes / shape.element;
    size_t part = total / (size_t)ranks & ~(16 / shape.element - 1);
    switch (collective) {
    case ATT_COLLECTIVE_ALL_GATHER:
        shape.count = shape.send_count = part;
        shape.recv_count = part * (size_t)ranks;
        break;
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        shape.count = shape.recv_count = part;
        shape.send_count = part * (size_t)ranks;
        break;
    default:
        shape.count = shape.send_count = shape.recv_count = total;
        break;
    }
    size_t larger = shape.send_count > shape.recv_count ? shape.send_count : shape.recv_count;
    shape.bytes = larger * shape.element;
    return shape;
}

size_t att_shape_send_offset(const att_shape_t *shape, int rank)
{
    return shape->collective == ATT_COLLECTIVE_ALL_GATHER ? (size_t)rank * shape->count : 0;
}

size_t att_shape_recv_offset(const att_shape_t *shape, int rank)
{
    return shape->collective == ATT_COLLECTIVE_REDUCE_SCATTER ? (size_t)rank * shape->count : 0;
}

bool att_shape_reduces(const att_shape_t *shape)
{
    return shape->collective == ATT_COLLECTIVE_ALL_REDUCE ||
           shape->collective == ATT_COLLECTIVE_REDUCE_SCATTER ||
           shape->collective == ATT_COLLECTIVE_REDUCE;
}

bool att_shape_has_root(const att_shape_t *shape)
{
    return shape->collective == ATT_COLLECTIVE_BROADCAST ||
           shape->collective == ATT_COLLECTIVE_REDUCE;
}

bool att_shape_is_symmetric(const att_shape_t *shape)
{
    return !att_shape_has_root(shape);
}

const char *att_shape_title(const att_shape_t *shape)
{
    static const char *const titles[ATT_COLLECTIVE_COUNT] = {
        [ATT_COLLECTIVE_BROADCAST] = "Broadcast",
        [ATT_COLLECTIVE_REDUCE] = "Reduce",
        [ATT_COLLECTIVE_ALL_GATHER] = "AllGather",
        [ATT_COLLECTIVE_REDUCE_SCATTER] = "ReduceScatter",
        [ATT_COLLECTIVE_ALL_REDUCE] = "AllReduce"};
    return titles[shape->collective];
}

int att_shape_call(const att_shape_t *shape, const att_nccl_t *nccl, const void *send, void *recv,
                   void *comm, void *stream)
{
    switch (shape->collective) {
    case ATT_COLLECTIVE_ALL_GATHER:
        return nccl->all_gather(send, recv, shape->count, shape->type, comm, stream);
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return nccl->reduce_scatter(send, recv, shape->count, shape->type, shape->op, comm, stream);
    case ATT_COLLECTIVE_BROADCAST:
        return nccl->broadcast(send, recv, shape->count, shape->type, shape->root, comm, stream);
    case ATT_COLLECTIVE_REDUCE:
        return nccl->reduce(send, recv, shape->count, shape->type, shape->op, shape->root, comm,
                            stream);
    default:
        return nccl->all_reduce(send, recv, shape->count, shape->type, shape->op, comm, stream);
    }
}
