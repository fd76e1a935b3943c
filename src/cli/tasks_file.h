/*
 * tasks file: `tasks.json` of a run folder, written by the sidecar about once a second and at its
 * end: every task with NCCL's choice, the tuned setting and what it cost. `attune run` shows it,
 * makes the summary and the tuner CSV of it, and --apply takes settings from it.
 */
#ifndef ATT_CLI_TASKS_FILE_H
#define ATT_CLI_TASKS_FILE_H

#include "attune/setting.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATT_TASKS_VERSION   1
#define ATT_TASKS_FILE_MAX  (1u << 30) /* bytes; a larger file is refused */
#define ATT_TASKS_COUNT_MAX 524288u    /* twice what a sidecar writes (control/rows.h) */

/* A setting and what was measured with it. */
typedef struct att_measured {
    att_setting_t setting;
    double median_us; /* 0 = not measured */
    uint64_t samples;
} att_measured_t;

typedef struct att_task_row {
    char group[32]; /* "0x1234abcd" */
    int ranks;
    int nodes;
    int collective; /* att_collective_t */
    uint64_t bytes; /* as NCCL's tuner counts them */
    uint64_t legal_pairs;
    char phase[16];
    bool kept_default;
    char reason[192];
    uint64_t trials;
    uint64_t calls; /* spent in trials and comparisons */
    uint64_t switches;
    double lost_us;
    att_measured_t native; /* NCCL's choice */
    att_measured_t tuned;
    double now_us, now_age_s; /* median of the last samples, 0 = none; seconds since the last */
    int late_rank;            /* that keeps arriving last, -1 = nobody or not known */
    double late_us;           /* what the others wait for it */
    bool step_objective;
    double collective_gain,
        step_gain; /* of the tuned setting, relative, where one is a gain and the
                    * other a loss; both 0: they agree, or it is not known */
} att_task_row_t;

typedef struct att_tasks {
    char attune[24];  /* version of the sidecar */
    int nccl_version; /* NCCL_VERSION_CODE, 0 unknown */
    char device[96];  /* "" unknown */
    bool finished;
    struct {
        double cpu_share; /* of one core */
        uint64_t records, dropped, polls;
    } agent;
    struct {
        uint64_t decisions, timed, frozen, unseen, dropped, anomalies, waited, in_doubt;
        uint64_t called, answered, bypassed, streams; /* by the preload; 0 without it */
        double longest_wait_us;
        size_t untimed_count;
        struct {
            char reason[32];
            uint64_t count;
        } untimed[16];
    } coverage;
    struct {
        double lost_us, timing_us, run_us;
    } cost;
    att_task_row_t *rows;
    size_t count;
} att_tasks_t;

/* Parse the bytes. -ATT_EINPUT: malformed (text has the place); -ATT_EVERSION: another version of
 * the format. Numbers are checked, texts are cut to the fields and rid of control characters. */
int att_tasks_parse(const char *bytes, size_t length, att_tasks_t *tasks, att_error_t *error);
/* One line about `row` that a reader must not miss: that the collective and its step disagree; ""
 * when there is nothing. */
#define ATT_TASK_WARNING 160
const char *att_task_row_warning(const att_task_row_t *row, char text[ATT_TASK_WARNING]);
/* The task's search ended in an error and NCCL's choice stayed: it was not tuned, and nothing was
 * compared. */
bool att_task_row_failed(const att_task_row_t *row);
/* How many did; *reason is the first one's. */
size_t att_tasks_failed(const att_tasks_t *tasks, const char **reason);
/* Read and parse. -ATT_ENOENT when there is no file; the text begins with the path. */
int att_tasks_read(const char *path, att_tasks_t *tasks, att_error_t *error);
void att_tasks_free(att_tasks_t *tasks); /* NULL is fine */

#endif
