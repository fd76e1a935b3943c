/*
 * compare side: one of the two results that `attune report --compare` lays side by side, whatever
 * it was read from: a run folder, the output or JSON of nccl-tests or attune bench, or the JSON of
 * attune bench --sweep.
 */
#ifndef ATT_CLI_COMPARE_SIDE_H
#define ATT_CLI_COMPARE_SIDE_H

#include "attune/setting.h"
#include "base/names.h"
#include "base/status.h"
#include "cli/result_rows.h"
#include "cli/run_end.h"

#include <jansson.h>

typedef enum att_compare_kind {
    ATT_COMPARE_RUN = 0,   /* a run folder */
    ATT_COMPARE_ROWS = 1,  /* nccl-tests, attune bench */
    ATT_COMPARE_SWEEP = 2, /* attune bench --sweep */
} att_compare_kind_t;
const char *att_compare_kind_name(att_compare_kind_t kind);

/* What was measured, and its time. Two entries are the same thing when all before time_us agree. */
typedef struct att_compare_entry {
    char collective[24], type[16], redop[16], load[16];
    const char *what; /* "NCCL's choice", "in force", "tuned", "best"; "out of place", "in place" */
    uint64_t bytes;
    int ranks, nodes; /* 0 unknown */
    int ordinal;      /* among entries that are alike otherwise, as of several communicators */
    double time_us;
    double error; /* 95 % half width of time_us over it; negative: unknown */
    char by[24];  /* what the time was taken by: times by different means are not compared */
    char setting[ATT_SETTING_TEXT]; /* "" unknown */
} att_compare_entry_t;

typedef struct att_compare_side {
    const char *path; /* the caller's */
    att_compare_kind_t kind;
    char nccl[24], device[96]; /* "" unknown */
    char clock[160];           /* "wall", or "modelled" and by which surface; "" unknown */
    att_compare_entry_t *entries;
    uint32_t count;
    att_result_rows_t rows; /* ROWS only */
    char
        end[ATT_RUN_END_TEXT]; /* RUN: that the sidecar is gone without a closing report, else "" */
} att_compare_side_t;

/* -ATT_ENOENT, -ATT_EINPUT, -ATT_EVERSION; the text names the path. */
int att_compare_side_read(const char *path, att_compare_side_t *side, att_error_t *error);
void att_compare_side_free(att_compare_side_t *side);

/* --- for the readers */
int att_compare_side_add(att_compare_side_t *side, const att_compare_entry_t *entry);
/* 95 % half width of the median of samples over it; negative when there are too few. */
double att_compare_error(const double *samples, uint32_t count);
int att_compare_run_read(att_compare_side_t *side, att_error_t *error);

#endif
