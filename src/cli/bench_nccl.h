/*
 * bench_nccl: the NCCL functions that the workload driver calls, taken from a library at run time.
 *
 * Only what is used here is declared; numbers and signatures are those of nccl.h (2.18 to 2.30).
 */
#ifndef ATT_CLI_BENCH_NCCL_H
#define ATT_CLI_BENCH_NCCL_H

#include "base/status.h"
#include "search/knobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ncclUniqueId, passed by value. */
typedef struct att_nccl_id {
    char bytes[128];
} att_nccl_id_t;

/* ncclDataType_t */
typedef enum att_nccl_type {
    ATT_NCCL_INT8 = 0,
    ATT_NCCL_UINT8 = 1,
    ATT_NCCL_INT32 = 2,
    ATT_NCCL_UINT32 = 3,
    ATT_NCCL_INT64 = 4,
    ATT_NCCL_UINT64 = 5,
    ATT_NCCL_HALF = 6,
    ATT_NCCL_FLOAT = 7,
    ATT_NCCL_DOUBLE = 8,
    ATT_NCCL_BFLOAT16 = 9,
    ATT_NCCL_TYPES = 10
} att_nccl_type_t;

/* ncclRedOp_t */
typedef enum att_nccl_op {
    ATT_NCCL_SUM = 0,
    ATT_NCCL_PROD = 1,
    ATT_NCCL_MAX = 2,
    ATT_NCCL_MIN = 3,
    ATT_NCCL_AVG = 4,
    ATT_NCCL_OPS = 5
} att_nccl_op_t;

#define ATT_NCCL_SUCCESS 0

/* NCCL's version code, as ncclGetVersion gives it for 2.9 and later. */
#define ATT_NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

typedef struct att_nccl {
    void *library;
    char path[512]; /* the file that was really loaded */
    int version;    /* ncclGetVersion */
    bool fabric;    /* the host fabric: buffers are ordinary memory, a stream is NULL */

    int (*get_version)(int *version);
    int (*get_unique_id)(att_nccl_id_t *id);
    int (*comm_init_rank)(void **comm, int ranks, att_nccl_id_t id, int rank);
    int (*comm_destroy)(void *comm);
    int (*comm_abort)(void *comm);
    const char *(*error_string)(int result);
    const char *(*last_error)(void *comm); /* may be NULL (before 2.13) */
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                      void *stream);
    int (*all_gather)(const void *send, void *recv, size_t count, int type, void *comm,
                      void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                          void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, void *comm,
                     void *stream);
    int (*reduce)(const void *send, void *recv, size_t count, int type, int op, int root,
                  void *comm, void *stream);
    /* The host fabric's own (src/fabric/nccl_abi.h), else NULL. */
    void (*fabric_advance)(void *comm, double us);
    uint64_t (*fabric_now)(void *comm); /* nanoseconds */
} att_nccl_t;

/* Load ATTUNE_NCCL_LIB, or libnccl.so.2 when it is not set. The library stays loaded. Makes no
 * NCCL call, so that variables can still be set; att_nccl_start makes the first one. */
int att_nccl_load(att_nccl_t *nccl, att_error_t *error);

/* 0, or -ATT_ESYSTEM with `what`, NCCL's words for `result` and its last error. */
int att_nccl_check(const att_nccl_t *nccl, int result, const char *what, att_error_t *error);

/* nccl-tests' words ("float", "bfloat16", "sum"). Parse returns the number or -1. */
const char *att_nccl_type_name(int type);
int att_nccl_type_parse(const char *word);
size_t att_nccl_type_size(int type);
const char *att_nccl_op_name(int op);
int att_nccl_op_parse(const char *word);

#endif
