/*
 * nccl api: the functions of NCCL's own interface that the preloaded hook stands in front of.
 * Declared anew; parameters and numbers are NCCL's (src/nccl.h.in of 2.30.7). Handles and enums
 * keep their size: pointers, int.
 *
 * NCCL exports every function twice, ncclX (weak) and pncclX (src/include/core.h, NCCL_API): who
 * takes the place of ncclX calls pncclX.
 */
#ifndef ATT_HOOK_ABI_NCCL_API_H
#define ATT_HOOK_ABI_NCCL_API_H

#include <stddef.h>

#define ATT_NCCL_ID_BYTES      128
#define ATT_NCCL_CONFIG_MAGIC  0xcafebeefu
#define ATT_NCCL_UNDEFINED_INT (-2147483647 - 1)
#define ATT_NCCL_BUILTIN_OPS   5  /* ncclNumOps: sum, prod, max, min, avg */
#define ATT_NCCL_DATATYPES     12 /* ncclNumTypes */
#define ATT_NCCL_NO_COLOR      (-1)

typedef struct att_nccl_id {
    char internal[ATT_NCCL_ID_BYTES];
} att_nccl_id_t;

/* ncclConfig_t up to CTAPolicy (2.27). The caller's own `size` says how much of it there is. */
typedef struct att_nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share;   /* 2.18 */
    int traffic_class; /* 2.26 */
    const char *comm_name;
    int collnet_enable;
    int cta_policy;
} att_nccl_config_t;

#define ATT_NCCL_CONFIG_HAS(config, member)                                                        \
    ((config)->size >= offsetof(att_nccl_config_t, member) + sizeof(config)->member)

/* Name, then parameters. All return an ncclResult_t. */
#define ATT_NCCL_API(X)                                                                            \
    X(CommInitRank, (void **comm, int ranks, att_nccl_id_t id, int rank))                          \
    X(CommInitAll, (void **comms, int devices, const int *list))                                   \
    X(CommInitRankConfig,                                                                          \
      (void **comm, int ranks, att_nccl_id_t id, int rank, att_nccl_config_t *config))             \
    X(CommInitRankScalable, (void **comm, int ranks, int rank, int id_count, att_nccl_id_t *ids,   \
                             att_nccl_config_t *config))                                           \
    X(CommSplit, (void *comm, int color, int key, void **child, att_nccl_config_t *config))        \
    X(CommShrink, (void *comm, int *excluded, int excluded_count, void **child,                    \
                   att_nccl_config_t *config, int flags))                                          \
    X(CommGrow, (void *comm, int ranks, const att_nccl_id_t *id, int rank, void **child,           \
                 att_nccl_config_t *config))                                                       \
    X(CommFinalize, (void *comm))                                                                  \
    X(CommDestroy, (void *comm))                                                                   \
    X(CommAbort, (void *comm))                                                                     \
    X(CommRevoke, (void *comm, int flags))                                                         \
    X(CommGetAsyncError, (void *comm, int *error))                                                 \
    X(CommWindowRegister, (void *comm, void *buffer, size_t size, void **window, int flags))       \
    X(GroupStart, (void))                                                                          \
    X(GroupEnd, (void))                                                                            \
    X(GroupSimulateEnd, (void *info))                                                              \
    X(AllReduce,                                                                                   \
      (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)) \
    X(Broadcast, (const void *send, void *receive, size_t count, int type, int root, void *comm,   \
                  void *stream))                                                                   \
    X(Bcast, (void *buffer, size_t count, int type, int root, void *comm, void *stream))           \
    X(Reduce, (const void *send, void *receive, size_t count, int type, int op, int root,          \
               void *comm, void *stream))                                                          \
    X(AllGather,                                                                                   \
      (const void *send, void *receive, size_t count, int type, void *comm, void *stream))         \
    X(ReduceScatter,                                                                               \
      (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)) \
    X(AlltoAll,                                                                                    \
      (const void *send, void *receive, size_t count, int type, void *comm, void *stream))         \
    X(Gather, (const void *send, void *receive, size_t count, int type, int root, void *comm,      \
               void *stream))                                                                      \
    X(Scatter, (const void *send, void *receive, size_t count, int type, int root, void *comm,     \
                void *stream))                                                                     \
    X(Send, (const void *send, size_t count, int type, int peer, void *comm, void *stream))        \
    X(Recv, (void *receive, size_t count, int type, int peer, void *comm, void *stream))           \
    X(PutSignal,                                                                                   \
      (const void *local, size_t count, int type, int peer, void *window, size_t offset,           \
       int signal, int context, unsigned flags, void *comm, void *stream))                         \
    X(Signal, (int peer, int signal, int context, unsigned flags, void *comm, void *stream))       \
    X(WaitSignal, (int count, void *signals, void *comm, void *stream))

#define ATT_NCCL_DECLARE(name, parameters)                                                         \
    __attribute__((visibility("default"))) int nccl##name parameters;
ATT_NCCL_API(ATT_NCCL_DECLARE)
#undef ATT_NCCL_DECLARE

#define ATT_NCCL_NUMBER(name, parameters) ATT_NCCL_##name,
typedef enum att_nccl_function {
    ATT_NCCL_API(ATT_NCCL_NUMBER) ATT_NCCL_FUNCTION_COUNT
} att_nccl_function_t;
#undef ATT_NCCL_NUMBER

#endif
