/*
 * aggregate: reduces the records that several ranks wrote for one call of one task to one sample.
 *
 * An aggregate belongs to one task and knows how many parts a call has (ranks on a node, or nodes
 * of a group: a part may itself be a reduction). Calls may arrive in any order within a window; a
 * call that falls out of the window incomplete is counted as lost.
 */
#ifndef ATT_PROFILE_AGGREGATE_H
#define ATT_PROFILE_AGGREGATE_H

#include "attune/record.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ATT_AGGREGATE_WINDOW 2048 /* calls in flight, a power of two */

/* How ranks are reduced; fixed for the life of an aggregate, never mixed within a comparison. */
typedef enum att_reduction {
    ATT_REDUCTION_NONE = 0, /* no clock relation and no barrier in the collective: not comparable */
    ATT_REDUCTION_COMMON = 1,   /* last stop - last start, all stamps on one clock */
    ATT_REDUCTION_MIN = 2,      /* smallest stop - start over ranks; every rank needs every other */
    ATT_REDUCTION_INTERVAL = 3, /* start to start of two calls that follow each other at once, mean
                                   over ranks (clock offsets cancel) */
    ATT_REDUCTION_COUNT = 4
} att_reduction_t;
const char *att_reduction_name(att_reduction_t reduction);

/* The rule of docs/architecture.md, "What a sample is". */
att_reduction_t att_reduction_choose(int collective, bool one_clock);

/* A rank's record, or the reduction of a node's ranks. */
typedef struct att_part {
    uint64_t call;
    uint64_t last_start_ns;
    uint64_t second_start_ns; /* the last but one start; 0: a rank alone */
    uint64_t last_stop_ns;
    uint64_t shortest_ns;  /* smallest stop - start */
    uint64_t start_sum_ns; /* of the ranks' starts, modulo 2^64: only differences are of use */
    uint64_t nccl_seq;
    uint32_t ranks; /* ranks reduced into this part */
    uint32_t txn;
    uint8_t untimed;  /* att_untimed_t of the first rank without a time, 0 = all timed */
    int8_t algorithm; /* of any timed rank */
    int8_t protocol;
    uint8_t differs; /* ranks disagree on sequence number or transaction */
    uint16_t channels;
    uint8_t disturbed; /* another group's list was in force on the node of a rank */
    uint8_t reserved;
    uint32_t rank;      /* one of its ranks; set by the caller */
    uint32_t odd_rank;  /* when it differs: one that does not agree with `rank` */
    uint32_t last_rank; /* whose start was last; set by the caller like `rank` */
    uint32_t reserved2;
} att_part_t;

att_part_t att_part_of_record(const att_record_t *record);

struct att_aggregate;
/* `ranks` parts complete a call. */
int att_aggregate_create(uint32_t ranks, struct att_aggregate **aggregate);
void att_aggregate_destroy(struct att_aggregate *aggregate); /* NULL is fine */

/* Add one part. Returns 1 and the completed call in *whole when it was the last one, else 0. */
int att_aggregate_add(struct att_aggregate *aggregate, const att_part_t *part, att_part_t *whole);

/* Calls that fell out of the window incomplete. */
uint64_t att_aggregate_lost(const struct att_aggregate *aggregate);

/* Where the ranks' records in the parts are: added = in whole calls + in calls that fell out of the
 * window + too late for such a call + waiting in the window for the others'. */
typedef struct att_aggregate_fates {
    uint64_t added, whole, lost, late, waiting;
} att_aggregate_fates_t;
att_aggregate_fates_t att_aggregate_fates(const struct att_aggregate *aggregate);
/* Destroy it; what waits for others' records is lost. */
att_aggregate_fates_t att_aggregate_end(struct att_aggregate *aggregate);

/* Start to start of a complete call and the next one in microseconds, mean over ranks; negative
 * when they do not follow each other or one has no time. */
double att_part_interval_us(const att_part_t *whole, const att_part_t *next);

/* Duration in microseconds of a complete call; negative when it has none. Not for INTERVAL. */
double att_part_duration_us(const att_part_t *whole, att_reduction_t reduction);

#endif
