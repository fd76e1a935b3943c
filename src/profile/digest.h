/*
 * digest: what a stretch of a trace comes down to: which setting was in force when, and the bus
 * bandwidth of each group over time. Small, whatever the number of calls; digests of neighbouring
 * stretches join. Feeds the tracks of a trace that are about attune, and its overview.
 */
#ifndef ATT_PROFILE_DIGEST_H
#define ATT_PROFILE_DIGEST_H

#include "profile/window.h"

#define ATT_DIGEST_POINTS 1000u /* of a group and digest */

/* Calls of a task that followed each other with the same setting. */
typedef struct att_digest_span {
    uint32_t task;
    uint32_t txn;
    int64_t from_ns, to_ns;
    uint64_t first_call, calls; /* calls: on the group's lowest rank that was recorded */
    att_setting_t setting;
    bool known; /* false: the list was not recorded */
    bool trial;
} att_digest_span_t;

/* Mean over the collectives that ended in a slice of time. */
typedef struct att_digest_point {
    int64_t at_ns;
    uint32_t group;
    uint32_t collectives;
    double bus_gbs;
} att_digest_point_t;

typedef struct att_digest {
    att_digest_span_t *spans;   /* by from_ns within a task */
    att_digest_point_t *points; /* by at_ns within a group */
    uint32_t span_count, point_count;
} att_digest_t;

/* Of the events of one window (att_trace_load), whose members `select` names. */
int att_digest_make(const struct att_trace *trace, const att_trace_select_t *select,
                    const att_trace_event_t *events, size_t count, att_digest_t *digest);
/* Append `later`, which is emptied. Spans that go on are joined. */
int att_digest_join(att_digest_t *digest, att_digest_t *later);
void att_digest_free(att_digest_t *digest);

/* Events of one collective follow each other in the result: indices of `events` by task, call and
 * start. The caller frees *order. */
int att_digest_order(const att_trace_event_t *events, size_t count, uint32_t **order);

#endif
