/*
 * metrics: attune's own counters as Prometheus text (exposition format 0.0.4), and the bus
 * bandwidths under the names that NCCL Inspector's exporter uses. docs/metrics.md lists all names.
 *
 * The caller fills the structs; nothing here measures. Base units: seconds, bytes.
 */
#ifndef ATT_PROFILE_METRICS_H
#define ATT_PROFILE_METRICS_H

#include "attune/record.h"
#include "attune/setting.h"
#include "base/status.h"

#include <stdint.h>
#include <stdio.h>

/* What a task's numbers are labelled with. */
typedef struct att_metrics_task {
    uint64_t hash; /* of the group */
    uint32_t ranks, nodes, collective;
    uint32_t legal_pairs; /* tasks of one size may differ by it alone */
    uint64_t bytes;
    int twin; /* a task before it differs in legal_pairs alone */
    const char *phase;
    uint64_t trials, switches, aborts, calls, calls_lost, disturbed;
    double lost_s;
    int settled, kept_default;
    double default_s, tuned_s, now_s; /* duration of one call, 0 = not measured */
    att_setting_t setting;            /* in force outside of trials */
    int late;                         /* 1: late_rank keeps arriving last */
    uint32_t late_rank;
    double late_s;
} att_metrics_task_t;

typedef struct att_metrics {
    const char *run_id, *device, *host;
    const char *job_id; /* of Slurm, "" = none */
    uint32_t nccl_version;
    int running;
    double unix_s; /* when this was gathered */
    double run_s, cpu_s, lost_s, longest_wait_s;
    uint64_t records, polls, decisions, timed, untimed[ATT_UNTIMED_COUNT], frozen, simulated,
        unseen, dropped, anomalies, waited, in_doubt, refused, processes;
    const att_metrics_task_t *tasks;
    uint32_t task_count;
} att_metrics_t;

/* Both write well-formed text whatever the strings hold. */
void att_metrics_print(const att_metrics_t *metrics, FILE *out);
/* nccl_bus_bandwidth_gbs and nccl_collective_exec_time_microseconds: the last calls of each task,
 * reduced over its ranks (gpu="all"); no other unit or label would be found by what reads them. */
void att_metrics_print_inspector(const att_metrics_t *metrics, FILE *out);

/* Replace `path` by the bytes in one step: a temporary file beside it, then rename. A device is
 * written to as it is; a link is replaced, never followed. -ATT_ESYSTEM. */
int att_metrics_replace(const char *path, const char *bytes, size_t length, att_error_t *error);

#endif
