/*
 * chrome: a trace as Chrome trace events (JSON), which Perfetto and Holistic Trace Analysis open.
 *
 * One process a rank of the job, one thread a communicator; collectives are complete events (X)
 * with Kineto's field names, asynchronous ones (b, e) where they overlap on their track; a flow
 * ties one collective across ranks; iteration marks; a process "attune" has a track a task with the
 * settings in force (trials marked), switches, and a counter of bus bandwidth a group. Times in
 * microseconds since the trace began. docs/trace.md lists every field.
 */
#ifndef ATT_PROFILE_CHROME_H
#define ATT_PROFILE_CHROME_H

#include "profile/digest.h"
#include "profile/out.h"

#define ATT_CHROME_ATTUNE 1000000u /* pid of "attune": above any rank */

/* What a counter of a node says at a moment (docs/counters.md). */
typedef struct att_chrome_counted {
    int64_t at_ns;
    uint32_t node;
    const char *name; /* with its unit */
    double value;
} att_chrome_counted_t;

typedef struct att_chrome_file {
    const struct att_trace *trace;
    int64_t origin_ns; /* the trace's time 0 */
    const char *run;   /* folder, for the header */
    uint32_t place;    /* NONE: merged; else the rank that a file of its own is for */
    const att_chrome_counted_t *counted;
    size_t counted_count;
    bool compact; /* leave out what only per-rank tools read: "Process Group Ranks", ... */
} att_chrome_file_t;

/* One document with these events (of att_trace_load) and their digest. */
int att_chrome_write(const att_chrome_file_t *file, const att_trace_select_t *select,
                     const att_trace_event_t *events, size_t count, const att_digest_t *digest,
                     att_out_t *out);

/* Name and window of a part, for the overview. */
typedef struct att_chrome_part {
    char name[256];
    int64_t from_ns, to_ns;
    uint64_t events, bytes;
} att_chrome_part_t;
/* A document without single calls: settings, bandwidth, marks, and which part holds what. */
int att_chrome_overview(const att_chrome_file_t *file, const att_trace_select_t *select,
                        const att_digest_t *digest, const att_chrome_part_t *parts, uint32_t count,
                        att_out_t *out);

#endif
