/*
 * surrogate: what is believed about the duration of every candidate from what was measured so far:
 * a Gaussian process over the logarithm of (duration / duration of NCCL's choice).
 *
 * The covariance of two candidates is a sum of parts, from what all of them share down to what only
 * neighbours share, so that a trial teaches something about every subspace and much about its own
 * surroundings. What channels do is mostly shared (they run out of SMs together, whatever the
 * protocol), even in small ripples.
 *
 * Rows are trials. The Cholesky factor L of their covariance, and L^-1 times their covariance with
 * each candidate, grow by one row a trial: O(rows * candidates) each, nothing is factored twice
 * (C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, algorithm
 * 2.1). Samples of one setting asked several times are pooled by this alone.
 */
#ifndef ATT_DEFAULT_SURROGATE_H
#define ATT_DEFAULT_SURROGATE_H

#include <stdint.h>

#define SURROGATE_ROWS 300  /* trials */
#define SURROGATE_ROOM 1400 /* candidates */

/* Where a candidate is. */
typedef struct place {
    float channels, threads, chunk; /* octaves (log2); 0 where the whole subspace keeps the knob */
    int16_t subspace;
    int8_t algorithm, protocol, transport;
    int8_t kept; /* the chunk is NCCL's own; `chunk` is only its likely place */
    int8_t full; /* all channels that there may be */
} place_t;

typedef struct row {
    int candidate;
    int samples;
    double y; /* NAN: not told yet, or nothing was learnt */
    double z; /* L^-1 (y - prior mean) */
} row_t;

typedef struct surrogate {
    double noise; /* variance of one sample's logarithm */
    int count;    /* candidates */
    place_t places[SURROGATE_ROOM];
    double prior[SURROGATE_ROOM];    /* mean before any trial */
    double mean[SURROGATE_ROOM];     /* as of surrogate_learn */
    double variance[SURROGATE_ROOM]; /* as if the results of all rows were known */
    int row_count;
    row_t rows[SURROGATE_ROWS];
    double *solved; /* row-major, SURROGATE_ROOM wide: L^-1 times covariance */
    double *factor; /* row-major, SURROGATE_ROWS wide: L */
} surrogate_t;

surrogate_t *surrogate_create(double noise); /* NULL without memory */
void surrogate_destroy(surrogate_t *s);      /* NULL is fine */
/* A new candidate; its index, -1 when there is no room. */
int surrogate_add(surrogate_t *s, place_t place, double prior);
/* A trial of a candidate with so many samples begins. Returns its row, -1 when there is no room. */
int surrogate_begin(surrogate_t *s, int candidate, int samples);
/* Means from the rows' y. Above `bend` y is squeezed: how much too slow a slow setting is must not
 * shape what is believed of fast ones. */
void surrogate_learn(surrogate_t *s, double bend);
/* Another noise: everything again. */
void surrogate_renew(surrogate_t *s, double noise);

#endif
