#include "profile/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW       16u
#define CALM_FACTOR  2.0
#define CLOCK_FACTOR 3.0
#define CALM_PART    0.95
#define MATTERS      0.05
#define CONSTANT     0.20
#define STREAK       5u /* steps that are looked at together */
#define STREAK_LATE  4u /* late ones that begin an episode */
#define STREAK_CALM  1u /* late ones that are left at its end */

struct att_straggler {
    uint32_t ranks;
    att_straggler_step_t *steps;
    float *lateness; /* [step][rank] */
    uint32_t count, capacity;
    att_straggler_rank_t *about;
    att_straggler_episode_t *episodes;
    uint32_t episode_count;
    double period_ns;
    int64_t *sorted; /* scratch, [ranks] */
};

int att_straggler_create(uint32_t ranks, struct att_straggler **out)
{
    struct att_straggler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -ATT_ENOMEM;
    s->ranks = ranks;
    s->about = calloc(ranks + 1, sizeof *s->about);
    s->sorted = calloc(ranks + 1, sizeof *s->sorted);
    if (s->about == NULL || s->sorted == NULL) {
        att_straggler_destroy(s);
        return -ATT_ENOMEM;
    }
    *out = s;
    return ATT_OK;
}

void att_straggler_destroy(struct att_straggler *s)
{
    if (s == NULL)
        return;
    free(s->steps);
    free(s->lateness);
    free(s->about);
    free(s->episodes);
    free(s->sorted);
    free(s);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Of sorted values. */
static double quantile(const float *sorted, size_t count, double part)
{
    return count == 0 ? 0 : (double)sorted[(size_t)((double)(count - 1) * part + 0.5)];
}

int att_straggler_add(struct att_straggler *s, const att_straggler_step_t *step,
                      const int64_t *arrivals)
{
    if (s->ranks < 2)
        return ATT_OK;
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity == 0 ? 1024 : s->capacity + s->capacity / 2;
        att_straggler_step_t *steps = realloc(s->steps, capacity * sizeof *steps);
        if (steps == NULL)
            return -ATT_ENOMEM;
        s->steps = steps;
        float *lateness = realloc(s->lateness, (size_t)capacity * s->ranks * sizeof *lateness);
        if (lateness == NULL)
            return -ATT_ENOMEM;
        s->lateness = lateness;
        s->capacity = capacity;
    }
    memcpy(s->sorted, arrivals, s->ranks * sizeof *arrivals);
    qsort(s->sorted, s->ranks, sizeof *s->sorted, by_number);
    int64_t median = s->sorted[(s->ranks - 1) / 2], last_ns = s->sorted[s->ranks - 1];
    int64_t gap = last_ns - s->sorted[s->ranks - 2];
    uint32_t last = 0, first = 0;
    float *row = &s->lateness[(size_t)s->count * s->ranks];
    for (uint32_t r = 0; r < s->ranks; r++) {
        row[r] = (float)(arrivals[r] - median);
        s->about[r].waited_ns += (double)(last_ns - arrivals[r]);
        if (arrivals[r] > arrivals[last])
            last = r;
        if (arrivals[r] < arrivals[first])
            first = r;
    }
    /* All at once, as on a modelled machine: nobody is first or last. */
    if (last_ns > s->sorted[0]) {
        s->about[first].first++;
        s->about[last].last++;
        s->about[last].wait_caused_ns += (double)gap * (s->ranks - 1);
    }
    s->steps[s->count] = *step;
    s->steps[s->count].last = last;
    s->steps[s->count].named = false;
    s->count++;
    return ATT_OK;
}

/* --- calm steps ---------------------------------------------------------------------------------
 */

typedef struct stretch {
    float median, high;
} stretch_t;

static uint32_t window_of(const struct att_straggler *s)
{
    /* Short traces have short windows, so that there is a choice. */
    return s->count >= 4 * WINDOW ? WINDOW : s->count >= 16 ? s->count / 4 : s->count;
}

static stretch_t look_at_window(const struct att_straggler *s, uint32_t rank, uint32_t from,
                                uint32_t length)
{
    float values[WINDOW];
    for (uint32_t i = 0; i < length; i++)
        values[i] = s->lateness[(size_t)(from + i) * s->ranks + rank];
    qsort(values, length, sizeof *values, by_float);
    return (stretch_t){values[(length - 1) / 2], values[(length - 1) * 9 / 10]};
}

/* Limit of one rank from its calm windows, and the level of the calmest: by `high`, since one with
 * the first late steps in it has a low median. A window beside one that is not calm may hold such
 * steps: it does not count, or, when it is the calmest, without what lies above its `high`.
 * scratch: [count]. */
static void find_calm(struct att_straggler *s, uint32_t rank, float *scratch, double *level)
{
    uint32_t window = window_of(s), windows = s->count / window, kept = 0, best = 0;
    stretch_t calmest = {INFINITY, INFINITY};
    for (uint32_t w = 0; w < windows; w++) {
        stretch_t one = look_at_window(s, rank, w * window, window);
        if (one.high < calmest.high || (one.high == calmest.high && one.median < calmest.median)) {
            calmest = one;
            best = w;
        }
    }
    float bound = calmest.high + 3 * (calmest.high - calmest.median) + 1000.0f;
    bool before = true, now = true;
    for (uint32_t w = 0; w < windows; w++) {
        bool after =
            w + 1 >= windows || look_at_window(s, rank, (w + 1) * window, window).median <= bound;
        if (w == 0)
            now = look_at_window(s, rank, 0, window).median <= bound;
        bool whole = before && now && after;
        for (uint32_t i = 0; i < window && (whole || w == best); i++) {
            float value = s->lateness[(size_t)(w * window + i) * s->ranks + rank];
            if (whole || value <= calmest.high)
                scratch[kept++] = value;
        }
        before = now;
        now = after;
    }
    qsort(scratch, kept, sizeof *scratch, by_float);
    double high = quantile(scratch, kept, CALM_PART);
    s->about[rank].calm_ns = high > 0 ? CALM_FACTOR * high : 0;
    *level = calmest.high;
}

static int find_limits(struct att_straggler *s)
{
    float *scratch = malloc((s->count + 1) * sizeof *scratch);
    double *levels = malloc((s->ranks + 1) * sizeof *levels);
    double *limits = malloc((s->ranks + 1) * sizeof *limits);
    int status = scratch != NULL && levels != NULL && limits != NULL ? ATT_OK : -ATT_ENOMEM;
    for (uint32_t r = 0; status == ATT_OK && r < s->ranks; r++) {
        find_calm(s, r, scratch, &levels[r]);
        limits[r] = s->about[r].calm_ns;
        for (uint32_t i = 0; i < s->count; i++)
            scratch[i] = s->lateness[(size_t)i * s->ranks + r];
        qsort(scratch, s->count, sizeof *scratch, by_float);
        s->about[r].median_ns = quantile(scratch, s->count, 0.5);
        s->about[r].high_ns = quantile(scratch, s->count, 0.95);
    }
    for (uint32_t r = 0; status == ATT_OK && r < s->ranks; r++) {
        double others = 0;
        for (uint32_t o = 0; o < s->ranks; o++)
            if (o != r && limits[o] > others)
                others = limits[o];
        if (levels[r] > CONSTANT * s->period_ns && levels[r] > 3 * others) {
            s->about[r].constant = true;
            s->about[r].calm_ns = others;
        }
    }
    free(scratch);
    free(levels);
    free(limits);
    return status;
}

/* --- episodes -----------------------------------------------------------------------------------
 */

static bool is_late(const struct att_straggler *s, uint32_t step, uint32_t rank)
{
    const att_straggler_step_t *at = &s->steps[step];
    double lateness = s->lateness[(size_t)step * s->ranks + rank];
    return at->last == rank && lateness > 0 &&
           lateness > CLOCK_FACTOR * (double)at->uncertainty_ns &&
           lateness > s->about[rank].calm_ns && lateness >= MATTERS * s->period_ns;
}

static int add_episode(struct att_straggler *s, uint32_t rank, uint32_t from, uint32_t to,
                       float *scratch)
{
    att_straggler_episode_t e = {
        .rank = rank, .from = from, .to = to, .constant = s->about[rank].constant};
    for (uint32_t i = from; i <= to; i++) {
        if (!is_late(s, i, rank))
            continue;
        const float *row = &s->lateness[(size_t)i * s->ranks];
        float next = -INFINITY;
        for (uint32_t r = 0; r < s->ranks; r++)
            if (r != rank && row[r] > next)
                next = row[r];
        scratch[e.named++] = row[rank];
        e.wait_ns += (double)(row[rank] - next) * (s->ranks - 1);
        s->steps[i].named = true;
    }
    qsort(scratch, e.named, sizeof *scratch, by_float);
    e.lateness_ns = quantile(scratch, e.named, 0.5);
    s->about[rank].named += e.named;
    uint32_t n = s->episode_count;
    if (n == 0 || (n & (n - 1)) == 0) {
        att_straggler_episode_t *grown =
            realloc(s->episodes, (n == 0 ? 1 : 2 * (size_t)n) * sizeof *grown);
        if (grown == NULL)
            return -ATT_ENOMEM;
        s->episodes = grown;
    }
    s->episodes[s->episode_count++] = e;
    return ATT_OK;
}

static int find_episodes(struct att_straggler *s, uint32_t rank, float *scratch)
{
    uint32_t late = 0, begun = 0, latest = 0;
    bool open = false;
    int status = ATT_OK;
    for (uint32_t i = 0; i < s->count && status == ATT_OK; i++) {
        bool now = is_late(s, i, rank);
        late += now;
        if (i >= STREAK)
            late -= is_late(s, i - STREAK, rank);
        if (now)
            latest = i;
        if (!open && late >= STREAK_LATE) {
            begun = i + 1 >= STREAK ? i + 1 - STREAK : 0;
            while (!is_late(s, begun, rank))
                begun++;
            open = true;
        } else if (open && late <= STREAK_CALM) {
            status = add_episode(s, rank, begun, latest, scratch);
            open = false;
        }
    }
    return open && status == ATT_OK ? add_episode(s, rank, begun, latest, scratch) : status;
}

static int find_period(struct att_straggler *s)
{
    float *gaps = malloc((s->count + 1) * sizeof *gaps);
    if (gaps == NULL)
        return -ATT_ENOMEM;
    for (uint32_t i = 1; i < s->count; i++)
        gaps[i - 1] = (float)(s->steps[i].at_ns - s->steps[i - 1].at_ns);
    if (s->count > 1)
        qsort(gaps, s->count - 1, sizeof *gaps, by_float);
    s->period_ns = s->count > 1 ? quantile(gaps, s->count - 1, 0.5) : 0;
    free(gaps);
    return ATT_OK;
}

int att_straggler_finish(struct att_straggler *s)
{
    if (s->count == 0)
        return ATT_OK;
    int status = find_period(s);
    if (status == ATT_OK)
        status = find_limits(s);
    float *scratch = malloc((s->count + 1) * sizeof *scratch);
    if (scratch == NULL)
        status = -ATT_ENOMEM;
    for (uint32_t r = 0; r < s->ranks && status == ATT_OK; r++)
        status = find_episodes(s, r, scratch);
    free(scratch);
    return status;
}

/* --- accessors ----------------------------------------------------------------------------------
 */

uint32_t att_straggler_ranks(const struct att_straggler *s)
{
    return s->ranks;
}

const att_straggler_step_t *att_straggler_steps(const struct att_straggler *s, uint32_t *count)
{
    *count = s->count;
    return s->steps;
}

const float *att_straggler_lateness(const struct att_straggler *s, uint32_t step)
{
    return &s->lateness[(size_t)step * s->ranks];
}

const att_straggler_rank_t *att_straggler_rank(const struct att_straggler *s, uint32_t rank)
{
    return &s->about[rank];
}

const att_straggler_episode_t *att_straggler_episodes(const struct att_straggler *s,
                                                      uint32_t *count)
{
    *count = s->episode_count;
    return s->episodes;
}

double att_straggler_period_ns(const struct att_straggler *s)
{
    return s->period_ns;
}
