/*
 * trace: the recorded calls of a run, over all of its nodes, on one clock. Opened from a run
 * folder, finished or still being written (then: what is there now). Holds an index, not the
 * records.
 *
 * Times are nanoseconds of the reference: agent 0's CLOCK_MONOTONIC, or the modelled fabric's
 * clock.
 */
#ifndef ATT_PROFILE_TRACE_H
#define ATT_PROFILE_TRACE_H

#include "profile/catalog.h"
#include "profile/clock_model.h"
#include "profile/trace_damage.h"

/* One timed call of one rank. */
typedef struct att_trace_event {
    int64_t start_ns, stop_ns;
    uint64_t call;
    uint32_t task, member; /* of the catalog */
    uint32_t uncertainty_ns;
    uint32_t nccl_seq;
    uint32_t txn, chunk_bytes;
    uint16_t channels, threads;
    int8_t algorithm, protocol;
    uint8_t datatype, untimed;
} att_trace_event_t;

/* Settings of a task that one switch put in force. */
typedef struct att_trace_list {
    uint32_t task; /* of the catalog */
    att_stream_list_t list;
} att_trace_list_t;

typedef struct att_trace_mark {
    int64_t time_ns;
    uint64_t iteration;
    uint32_t node, process, rank;
} att_trace_mark_t;

typedef struct att_trace_facts {
    uint64_t records;                       /* in the files */
    uint64_t ring_dropped, writer_dropped;  /* as the agents counted */
    uint64_t skipped_bytes, missing_frames; /* as the files show */
    int64_t first_ns, last_ns;              /* of any record's frame */
    int64_t origin_unix_ns;                 /* CLOCK_REALTIME at first_ns; 0 unknown */
    uint32_t files, broken_files;
    bool virtual_time;
} att_trace_facts_t;

/* Clock of one node, for reports. */
typedef struct att_trace_node {
    uint32_t agent;
    const char *host;
    const att_clock_model_t *model; /* without points: the reference itself, or not calibrated */
    bool calibrated;
    int64_t injected_offset_ns; /* tests: what the clock was bent by */
    double injected_drift;
    int64_t first_ns, last_ns; /* of its records, on its own clock */
} att_trace_node_t;

struct att_trace;

/* -ATT_ENOENT: no stream in the folder; the text says how to record one. -ATT_EINPUT: none of its
 * files can be read; one that can is enough. */
int att_trace_open(const char *folder, struct att_trace **trace, att_error_t *error);
void att_trace_close(struct att_trace *trace); /* NULL is fine */

const att_catalog_t *att_trace_catalog(const struct att_trace *trace);
const att_trace_facts_t *att_trace_facts(const struct att_trace *trace);
/* Of the files, in order of their names. */
const att_trace_damage_t *att_trace_damage(const struct att_trace *trace, uint32_t *count);
/* In order of (task, txn). */
const att_trace_list_t *att_trace_lists(const struct att_trace *trace, uint32_t *count);
/* In order of time. */
const att_trace_mark_t *att_trace_marks(const struct att_trace *trace, uint32_t *count);
void att_trace_node(const struct att_trace *trace, uint32_t node, att_trace_node_t *about);

/* 0, or -ATT_EMISMATCH with the first clock of the selected members that is not tied to the others:
 * their times must not be laid side by side. */
int att_trace_calibrated(const struct att_trace *trace, const bool *members, att_error_t *error);
/* A time of this member's clock on the reference. */
att_clock_reading_t att_trace_read(const struct att_trace *trace, uint32_t member, int64_t ns);
/* The list entry that gave a call its setting, or NULL; *last: it is the list's last entry. */
const att_setting_t *att_trace_setting(const struct att_trace *trace,
                                       const att_trace_event_t *event, bool *last);

/* The files, for whoever reads records: reader and node of each. */
struct att_stream_reader;
uint32_t att_trace_files(const struct att_trace *trace);
const struct att_stream_reader *att_trace_file(const struct att_trace *trace, uint32_t file,
                                               uint32_t *node);
/* Bounds of a frame on the reference. */
void att_trace_span(const struct att_trace *trace, uint32_t node, int64_t first_ns, int64_t last_ns,
                    int64_t *from_ns, int64_t *to_ns);

#endif
