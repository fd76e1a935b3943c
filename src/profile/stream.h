/*
 * stream: the timing records of a run as they lie on disk (docs/trace.md describes the same).
 *
 * A file is a header and frames. It is only appended to, a frame at a time, so that whatever ends
 * the writer leaves a readable file: a reader skips what does not check. Numbers are in the byte
 * order of the machine that wrote (the header says which). Times are nanoseconds of the node's
 * CLOCK_MONOTONIC unless a member's clock says otherwise; CLOCK and DEVICE_CLOCK frames hold what
 * is needed to bring them onto one clock.
 *
 * Files of a node: RUN/trace/node-<agent>-<part>.records, or .ring.records in ring mode. Indices of
 * tasks, members, groups and processes are those of the node's segment, named by node_id.
 */
#ifndef ATT_PROFILE_STREAM_H
#define ATT_PROFILE_STREAM_H

#include "attune/setting.h"

#include <stddef.h>
#include <stdint.h>

#define ATT_STREAM_FOLDER       "trace"
#define ATT_STREAM_MAGIC        0x6563617254747461ull /* "attTrace" */
#define ATT_STREAM_VERSION      1u
#define ATT_STREAM_ORDER        0x01020304u
#define ATT_FRAME_MAGIC         0x46747461u /* "attF" */
#define ATT_FRAME_PAYLOAD       65536u      /* largest payload */
#define ATT_FRAME_FULL          512u        /* records of a full RECORDS frame */
#define ATT_STREAM_LIST_ENTRIES 16u

typedef struct att_stream_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t byte_order;
    uint32_t node;  /* number of the agent */
    uint32_t nodes; /* agents of the sidecar */
    uint32_t part;
    uint64_t opened_ns;      /* node's clock */
    uint64_t opened_unix_ns; /* CLOCK_REALTIME at the same moment */
    uint8_t node_id[16];
    char attune[16];
    char host[64];
    char run_id[64];
    /* Tests only (ATTUNE_CLOCK_INJECT): what was added to the true clock: offset + drift * time. */
    int64_t injected_offset_ns;
    double injected_drift;
} att_stream_header_t;
_Static_assert(sizeof(att_stream_header_t) == 224, "on disk");

typedef enum att_frame_type {
    ATT_FRAME_RECORDS = 1,      /* att_stream_record_t[count] */
    ATT_FRAME_GROUP = 2,        /* att_stream_group_t */
    ATT_FRAME_MEMBER = 3,       /* att_stream_member_t */
    ATT_FRAME_TASK = 4,         /* att_stream_task_t */
    ATT_FRAME_PROCESS = 5,      /* att_stream_process_t */
    ATT_FRAME_LIST = 6,         /* att_stream_list_t: settings that were committed */
    ATT_FRAME_CLOCK = 7,        /* att_stream_clock_t: node's clock against the reference */
    ATT_FRAME_DEVICE_CLOCK = 8, /* att_stream_device_clock_t: a GPU's timer against its host */
    ATT_FRAME_LOSS = 9,         /* att_stream_loss_t: totals since the start of the run */
    ATT_FRAME_MARK = 10,        /* att_stream_mark_t[count] */
    ATT_FRAME_STATE = 11,       /* att_stream_state_t */
    ATT_FRAME_TYPES = 12
} att_frame_type_t;

typedef struct att_frame {
    uint32_t magic;
    uint16_t type; /* att_frame_type_t; readers skip what they do not know */
    uint16_t reserved;
    uint32_t bytes;            /* of the payload that follows */
    uint32_t count;            /* entries in it */
    uint64_t seq;              /* +1 a frame of this stream, also over parts: a gap is a loss */
    int64_t first_ns, last_ns; /* RECORDS: earliest and latest time in it, on the node's clock or
                                  the virtual one; 0, 0 = no record has a time */
    uint32_t payload_crc;      /* zlib's crc32 */
    uint32_t header_crc;       /* of the fields before */
} att_frame_t;
_Static_assert(sizeof(att_frame_t) == 48, "on disk");

typedef struct att_stream_record {
    uint64_t
        call; /* of the task on this rank, never reset: with the task it names the collective */
    int64_t start_ns, stop_ns;   /* on the member's clock */
    int64_t decided_ns, seen_ns; /* on the node's clock; see attune/record.h */
    uint32_t nccl_seq;           /* low 32 bits */
    uint32_t task, member;
    uint32_t txn; /* list that gave the setting, 0 = NCCL's own choice */
    uint32_t chunk_bytes;
    uint16_t channels, threads; /* really used */
    int8_t algorithm, protocol; /* really used */
    uint8_t untimed;            /* att_untimed_t */
    uint8_t datatype;           /* ncclDataType_t, 255 unknown */
    uint32_t process;
} att_stream_record_t;
_Static_assert(sizeof(att_stream_record_t) == 72, "on disk");

typedef struct att_stream_group {
    uint64_t hash; /* NCCL's commHash */
    uint32_t index;
    uint32_t ranks, nodes;
    uint32_t reserved;
} att_stream_group_t;
_Static_assert(sizeof(att_stream_group_t) == 24, "on disk");

typedef struct att_stream_member {
    uint32_t index;
    uint32_t group, process, rank;
    uint32_t clock_kind; /* att_clock_kind_t */
    uint32_t nccl_version;
    uint64_t clock_id;
    uint8_t device_id[16];
} att_stream_member_t;
_Static_assert(sizeof(att_stream_member_t) == 48, "on disk");

typedef struct att_stream_task {
    uint64_t bytes; /* as NCCL's tuner counts them */
    uint32_t index;
    uint32_t group;
    uint32_t collective; /* att_collective_t */
    uint32_t legal_pairs;
} att_stream_task_t;
_Static_assert(sizeof(att_stream_task_t) == 24, "on disk");

typedef struct att_stream_process {
    uint32_t index;
    int32_t pid;
    char program[64];
} att_stream_process_t;
_Static_assert(sizeof(att_stream_process_t) == 72, "on disk");

/* From first_call of an entry on, until the next one. The last entry holds for good. */
typedef struct att_stream_list {
    uint32_t task;
    uint32_t txn;
    uint32_t count;
    uint32_t reserved;
    int64_t at_ns; /* node's clock when the agent saw it committed */
    struct {
        uint64_t first_call;
        att_setting_t setting;
    } entries[ATT_STREAM_LIST_ENTRIES];
} att_stream_list_t;
_Static_assert(sizeof(att_stream_list_t) == 24 + 24 * 16, "on disk");

/* reference = node + offset, exact at at_ns; between points readers interpolate. */
typedef struct att_stream_clock {
    int64_t at_ns;     /* node's clock */
    int64_t offset_ns; /* reference - node */
    double drift;      /* seconds of offset a second, from the points before; 0 for the first */
    uint32_t uncertainty_ns;
    uint32_t round_trip_ns; /* best of the burst */
    uint32_t reference;     /* agent whose clock it is */
    uint32_t reserved;
} att_stream_clock_t;
_Static_assert(sizeof(att_stream_clock_t) == 40, "on disk");

/* node = device + offset, exact at at_ns. */
typedef struct att_stream_device_clock {
    uint64_t clock_id;
    int64_t at_ns; /* device's clock */
    int64_t offset_ns;
    uint32_t uncertainty_ns;
    uint32_t process;
} att_stream_device_clock_t;
_Static_assert(sizeof(att_stream_device_clock_t) == 32, "on disk");

typedef struct att_stream_loss {
    uint64_t ring_dropped;   /* the agent was too slow */
    uint64_t writer_dropped; /* the disk was too slow or full, or the size limit was reached */
    uint64_t records;        /* taken for this stream */
} att_stream_loss_t;
_Static_assert(sizeof(att_stream_loss_t) == 24, "on disk");

typedef struct att_stream_mark {
    uint64_t iteration;
    int64_t time_ns; /* node's clock, or the virtual one */
    uint32_t process, rank;
    uint32_t clock_kind; /* HOST or VIRTUAL */
    uint32_t reserved;
} att_stream_mark_t;
_Static_assert(sizeof(att_stream_mark_t) == 32, "on disk");

typedef struct att_stream_state {
    int64_t at_ns;
    uint32_t recording; /* 1 from here on, 0 until the next */
    uint32_t ring;      /* 1: ring mode */
} att_stream_state_t;
_Static_assert(sizeof(att_stream_state_t) == 16, "on disk");

#endif
