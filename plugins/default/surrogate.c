#include "surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SQUEEZE 1.0 /* all that lies above the bend is squeezed into so much */

/* Amplitudes are standard deviations of the logarithm, lengths are octaves. Chosen on modelled and
 * recorded surfaces (docs/strategies.md says which); a third of the surfaces was not looked at. */
#define ALL           0.30
#define ALGORITHM     0.15
#define PROTOCOL      0.20
#define SUBSPACE      0.20
#define CHANNELS      0.30
#define CHANNELS_LONG 2.5
#define SLOPE         0.30 /* an octave of channels, for all */
#define SLOPE_ORIGIN  3.0
#define RIPPLE        0.10
#define RIPPLE_LONG   0.15
#define FULL          0.15 /* with all channels: no block of the device is left for anything else */
#define CHUNK         0.15
#define CHUNK_LONG    3.0
#define OWN           0.12 /* of one subspace alone: channels, chunk, both, threads */
#define OWN_CHANNELS  2.0
#define OWN_CHUNK     2.5
#define BOTH_CHANNELS 1.5
#define BOTH_CHUNK    3.0
#define THREADS_LONG  1.5
#define TWIN          0.6 /* correlation of NCCL's own threads with other numbers */
#define FINE          0.05
#define FINE_CHANNELS 0.3
#define FINE_CHUNK    0.7
#define KEPT          0.8 /* correlation of NCCL's own chunk with its likely value */

surrogate_t *surrogate_create(double noise)
{
    surrogate_t *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->noise = noise;
    s->solved = malloc(sizeof *s->solved * SURROGATE_ROWS * SURROGATE_ROOM);
    s->factor = malloc(sizeof *s->factor * SURROGATE_ROWS * SURROGATE_ROWS);
    if (s->solved == NULL || s->factor == NULL) {
        surrogate_destroy(s);
        return NULL;
    }
    return s;
}

void surrogate_destroy(surrogate_t *s)
{
    if (s == NULL)
        return;
    free(s->solved);
    free(s->factor);
    free(s);
}

/* Matern 5/2 (Rasmussen and Williams, equation 4.17). */
static double alike(double distance, double length)
{
    double r = 2.2360679775 * fabs(distance) / length;
    return (1 + r + r * r / 3) * exp(-r);
}

static double square(double x)
{
    return x * x;
}

static double covariance(const place_t *a, const place_t *b)
{
    double channels = a->channels - b->channels, chunk = a->chunk - b->chunk;
    double kept = a->kept == b->kept ? 1 : KEPT;
    double k = square(ALL) + square(CHANNELS) * alike(channels, CHANNELS_LONG) +
               square(SLOPE) * (a->channels - SLOPE_ORIGIN) * (b->channels - SLOPE_ORIGIN);
    if (fabs(channels) < 4 * RIPPLE_LONG)
        k += square(RIPPLE) * alike(channels, RIPPLE_LONG);
    if (a->full && b->full)
        k += square(FULL);
    if (a->algorithm == b->algorithm)
        k += square(ALGORITHM);
    if (a->protocol == b->protocol)
        k += square(PROTOCOL) + square(CHUNK) * alike(chunk, CHUNK_LONG) * kept;
    if (a->algorithm != b->algorithm || a->protocol != b->protocol || a->transport != b->transport)
        return k;
    double threads = a->threads == b->threads ? 1
                     : a->threads == 0 || b->threads == 0
                         ? TWIN
                         : alike(a->threads - b->threads, THREADS_LONG);
    k += square(SUBSPACE) +
         square(OWN) * (alike(channels, OWN_CHANNELS) + alike(chunk, OWN_CHUNK) * kept + threads +
                        alike(channels, BOTH_CHANNELS) * alike(chunk, BOTH_CHUNK) * kept * threads);
    if (fabs(channels) < 4 * FINE_CHANNELS)
        k += square(FINE) * alike(channels, FINE_CHANNELS) * alike(chunk, FINE_CHUNK) * kept *
             threads;
    return k;
}

int surrogate_add(surrogate_t *s, place_t place, double prior)
{
    if (s->count == SURROGATE_ROOM)
        return -1;
    int m = s->count++;
    s->places[m] = place;
    s->prior[m] = s->mean[m] = prior;
    s->variance[m] = covariance(&place, &place);
    for (int n = 0; n < s->row_count; n++) {
        const double *l = s->factor + (size_t)n * SURROGATE_ROWS;
        double v = covariance(&place, &s->places[s->rows[n].candidate]);
        for (int j = 0; j < n; j++)
            v -= l[j] * s->solved[(size_t)j * SURROGATE_ROOM + m];
        v /= l[n];
        s->solved[(size_t)n * SURROGATE_ROOM + m] = v;
        s->variance[m] -= v * v;
        s->mean[m] += v * s->rows[n].z;
    }
    s->variance[m] = fmax(s->variance[m], 1e-12);
    return m;
}

int surrogate_begin(surrogate_t *s, int candidate, int samples)
{
    if (s->row_count == SURROGATE_ROWS)
        return -1;
    int n = s->row_count++;
    double *l = s->factor + (size_t)n * SURROGATE_ROWS;
    double *row = s->solved + (size_t)n * SURROGATE_ROOM;
    /* L^-1 times the covariance of the new row is its candidate's own column so far. */
    for (int j = 0; j < n; j++)
        l[j] = s->solved[(size_t)j * SURROGATE_ROOM + candidate];
    l[n] = sqrt(s->variance[candidate] + s->noise / samples);
    for (int m = 0; m < s->count; m++)
        row[m] = covariance(&s->places[candidate], &s->places[m]);
    for (int j = 0; j < n; j++) {
        const double *solved = s->solved + (size_t)j * SURROGATE_ROOM;
        for (int m = 0; m < s->count; m++)
            row[m] -= l[j] * solved[m];
    }
    for (int m = 0; m < s->count; m++) {
        row[m] /= l[n];
        s->variance[m] = fmax(s->variance[m] - row[m] * row[m], 1e-12);
    }
    s->rows[n] = (row_t){.candidate = candidate, .samples = samples, .y = NAN};
    return n;
}

void surrogate_learn(surrogate_t *s, double bend)
{
    memcpy(s->mean, s->prior, sizeof *s->mean * (size_t)s->count);
    for (int n = 0; n < s->row_count; n++) {
        const double *l = s->factor + (size_t)n * SURROGATE_ROWS;
        row_t *row = &s->rows[n];
        double y = row->y;
        if (y > bend)
            y = bend + SQUEEZE * (1 - exp(-(y - bend) / SQUEEZE));
        double r = y - s->prior[row->candidate];
        for (int j = 0; j < n; j++)
            r -= l[j] * s->rows[j].z;
        row->z = isnan(y) ? 0 : r / l[n]; /* 0: as expected */
        const double *solved = s->solved + (size_t)n * SURROGATE_ROOM;
        for (int m = 0; m < s->count; m++)
            s->mean[m] += row->z * solved[m];
    }
}

void surrogate_renew(surrogate_t *s, double noise)
{
    int count = s->row_count;
    s->noise = noise;
    s->row_count = 0;
    for (int m = 0; m < s->count; m++)
        s->variance[m] = covariance(&s->places[m], &s->places[m]);
    for (int n = 0; n < count; n++) {
        double y = s->rows[n].y;
        surrogate_begin(s, s->rows[n].candidate, s->rows[n].samples);
        s->rows[n].y = y;
    }
}
