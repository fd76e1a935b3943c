/*
 * drift: does a settled task still take the time that it took when it settled?
 *
 * The first samples after settling give the reference and their noise. Later ones are taken in
 * windows of 5; three windows in a row whose medians lie more than 25 % from the reference, or more
 * than four standard errors of such a median where that is more, on the same side, are a drift.
 * After each search the next one has to wait twice as long.
 */
#ifndef ATT_SEARCH_DRIFT_H
#define ATT_SEARCH_DRIFT_H

#include <stdint.h>

#define ATT_DRIFT_REFERENCE 15   /* samples */
#define ATT_DRIFT_WINDOW    5    /* samples */
#define ATT_DRIFT_WINDOWS   3    /* in a row */
#define ATT_DRIFT_CHANGE    0.25 /* relative */
#define ATT_DRIFT_ERRORS    4.0  /* standard errors of a window's median */
#define ATT_DRIFT_HOLD      64   /* samples before the second search; doubled each time */

typedef struct att_drift {
    double reference_us; /* 0 while it is gathered */
    double limit;        /* relative change that counts, from the reference's noise */
    double latest_us;    /* median of the last full window */
    double values[ATT_DRIFT_REFERENCE];
    uint32_t count;
    int32_t run; /* windows in a row beyond the limit: positive slower, negative faster */
    uint64_t seen;
    uint32_t searches; /* drifts so far */
} att_drift_t;

/* The task has settled: learn the reference anew. */
void att_drift_settle(att_drift_t *drift);
/* One duration of the settled setting. 1: the task has drifted (counted as a search). */
int att_drift_sample(att_drift_t *drift, double duration_us);

#endif
