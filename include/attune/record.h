/*
 * record: the timing of one call on one rank, as the hook writes it and the agent reads it.
 *
 * A record is 96 bytes and lives in a ring of the node segment (src/base/ring.h). Times are
 * nanoseconds on the clock named by `clock`; two records may be compared only on the same clock.
 */
#ifndef ATTUNE_RECORD_H
#define ATTUNE_RECORD_H

#include <assert.h>
#include <stdint.h>
#include <stddef.h>

/* Where start and stop came from. Never mixed within one comparison. */
typedef enum att_time_source {
    ATT_TIME_NONE = 0,   /* the call was seen but not timed */
    ATT_TIME_KERNEL = 1, /* stamps of the collective's kernel (profiler KernelCh events) */
    ATT_TIME_MARK = 2,   /* no call: an iteration mark (attune/mark.h): call = iteration number,
                            start = stop = its time, nccl_seq = rank, task = member = none */
    ATT_TIME_EVENT = 3,  /* a pair of CUDA events around the call; start on no shared clock */
    ATT_TIME_SOURCE_COUNT = 4
} att_time_source_t;

/* Why a call carries no usable time. Counted per process and printed as coverage. */
typedef enum att_untimed {
    ATT_UNTIMED_NO = 0,       /* timed */
    ATT_UNTIMED_OFF = 1,      /* kernel stamps were switched off for this call */
    ATT_UNTIMED_GROUPED = 2,  /* several decisions in one batch: one kernel, not separable */
    ATT_UNTIMED_MISMATCH = 3, /* no Coll event with this function, bytes, algorithm and protocol */
    ATT_UNTIMED_LOST = 4,     /* stamps missing, zero or reversed */
    ATT_UNTIMED_FULL = 5,     /* no free handle or the ring was full */
    ATT_UNTIMED_CAPTURED = 6, /* recorded into a CUDA graph */
    ATT_UNTIMED_COUNT = 7
} att_untimed_t;

typedef struct att_record {
    uint64_t call;        /* call number of the task on this rank, from 0 */
    uint64_t start_ns;    /* earliest start over channels */
    uint64_t stop_ns;     /* latest stop over channels */
    uint64_t nccl_seq;    /* NCCL's own sequence number (per communicator and function) */
    uint64_t bytes;       /* the tuner's message bytes */
    uint32_t task;        /* index of the task in the segment */
    uint32_t member;      /* index of the member (rank of a group) in the segment */
    uint32_t process;     /* index of the process in the segment */
    uint32_t txn;         /* id of the schedule that gave the setting, 0 = none */
    uint8_t collective;   /* att_collective_t */
    int8_t algorithm;     /* really used, att_algorithm_t */
    int8_t protocol;      /* really used, att_protocol_t */
    uint8_t source;       /* att_time_source_t */
    uint8_t untimed;      /* att_untimed_t */
    uint8_t datatype;     /* ncclDataType_t, 255 = unknown: a label, not part of the task */
    uint16_t channels;    /* really used */
    uint16_t threads;     /* really used (32 x warps) */
    uint16_t reserved0;   /* 0 */
    uint32_t chunk_bytes; /* chunk asked for through the tuner, 0 = NCCL's */
    /* CLOCK_MONOTONIC of the process's host, 0 when not timed. They bound the device's clock:
     * decided <= start and stop <= seen hold on any pair of clocks once translated. */
    uint64_t decided_ns; /* before the launch */
    uint64_t seen_ns;    /* after the last stop stamp */
} att_record_t;
static_assert(sizeof(att_record_t) == 88, "ring cell = sequence word + record = 96 bytes");

#endif
