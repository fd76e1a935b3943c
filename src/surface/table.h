/*
 * table: recorded durations, by task and setting. Filled by the readers of T4 and CSV, finished
 * once, immutable afterwards.
 *
 * Owns its points and their samples.
 */
#ifndef ATT_SURFACE_TABLE_H
#define ATT_SURFACE_TABLE_H

#include "surface/surface.h"

typedef struct att_table_task {
    int collective;
    uint64_t bytes;
    att_surface_point_t *points; /* sorted after att_table_finish */
    size_t count, capacity;
    size_t native_point;           /* NCCL's choice, or what stands for it */
    att_setting_t native;          /* what NCCL's choice is, as far as it was noted */
    float cost_us[ATT_PAIR_COUNT]; /* NCCL's estimate, negative unknown */
    double *residuals;
    size_t residual_count;
} att_table_task_t;

typedef struct att_table {
    int task_count;
    att_table_task_t tasks[ATT_SURFACE_TASKS];
} att_table_t;

/* What one record says, before it is in the table. */
typedef struct att_table_record {
    att_setting_t setting;
    double time_us; /* as recorded; 0: the median of the samples */
    int at_least;
    uint32_t number; /* line or element, for messages */
    const double *samples_us, *again_us;
    uint32_t sample_count, again_count;
} att_table_record_t;

/* The task, made when it is new; NULL with the reason when there are too many. */
att_table_task_t *att_table_task(att_table_t *table, int collective, uint64_t bytes,
                                 att_error_t *error);
/* Copies the samples. Every duration must be above 0 and finite. */
int att_table_add(att_table_task_t *task, const att_table_record_t *record, att_error_t *error);
/* Sort, refuse doubled settings (`where` names what a record's number counts, "line" or
 * "/results"), find NCCL's choice: the record with every knob kept; without one the record whose
 * duration is the median of all. */
int att_table_finish(att_table_t *table, const char *where, att_error_t *error);
void att_table_free(att_table_t *table);

const att_table_task_t *att_table_find(const att_table_t *table, int collective, uint64_t bytes);
/* att_surface_nearest; NULL when nothing answers. */
const att_surface_point_t *att_table_nearest(const att_table_task_t *task, att_setting_t setting);
/* ATT_PAIR_BIT of what was recorded. */
uint32_t att_table_pairs(const att_table_task_t *task);
uint32_t att_table_space(const att_table_task_t *task, att_subspace_t *subspaces);
/* Largest channels recorded, 1 at least. */
int att_table_channels(const att_table_t *table);
/* 1.4826 * median of |residual| over all tasks, 0 without residuals. */
double att_table_noise(const att_table_t *table);
/* Not in place: sorts a copy. 0 for no values or no memory. */
double att_table_median(const double *values, size_t count);

#endif
