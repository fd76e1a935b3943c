#include "profile/matcher.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE 2 /* windows that an incomplete collective waits */

typedef struct waiting {
    att_trace_event_t event;
    uint32_t age;
} waiting_t;

/* A complete collective: `count` entries of `order` from `first` on. */
typedef struct match {
    int64_t last_ns;
    size_t first;
    uint32_t count;
} match_t;

struct att_matcher {
    const att_catalog_t *catalog;
    att_match_fn each;
    void *context;
    uint32_t *expected; /* per group */
    att_match_counts_t *counts;
    waiting_t *pool;
    size_t count, capacity;
};

int att_matcher_create(const att_catalog_t *catalog, const bool *members, att_match_fn each,
                       void *context, struct att_matcher **out)
{
    struct att_matcher *m = calloc(1, sizeof *m);
    if (m == NULL)
        return -ATT_ENOMEM;
    m->catalog = catalog;
    m->each = each;
    m->context = context;
    m->expected = calloc(catalog->group_count + 1, sizeof *m->expected);
    m->counts = calloc(catalog->group_count + 1, sizeof *m->counts);
    if (m->expected == NULL || m->counts == NULL) {
        att_matcher_destroy(m);
        return -ATT_ENOMEM;
    }
    for (uint32_t i = 0; i < catalog->member_count; i++) {
        const att_catalog_member_t *a = &catalog->members[i];
        bool known = members != NULL && !members[i];
        for (uint32_t k = 0; k < i && !known; k++)
            known = catalog->members[k].group == a->group && catalog->members[k].rank == a->rank &&
                    (members == NULL || members[k]);
        m->expected[a->group] += !known;
    }
    *out = m;
    return ATT_OK;
}

void att_matcher_destroy(struct att_matcher *m)
{
    if (m == NULL)
        return;
    free(m->expected);
    free(m->counts);
    free(m->pool);
    free(m);
}

const att_match_counts_t *att_matcher_counts(const struct att_matcher *m, uint32_t group)
{
    return &m->counts[group];
}

uint32_t att_matcher_expected(const struct att_matcher *m, uint32_t group)
{
    return m->expected[group];
}

static int by_identity(const void *a, const void *b, void *context)
{
    const struct att_matcher *m = context;
    const att_trace_event_t *x = &m->pool[*(const uint32_t *)a].event;
    const att_trace_event_t *y = &m->pool[*(const uint32_t *)b].event;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    uint32_t p = m->catalog->members[x->member].rank, q = m->catalog->members[y->member].rank;
    return (p > q) - (p < q);
}

static int by_last(const void *a, const void *b)
{
    const match_t *x = a, *y = b;
    return (x->last_ns > y->last_ns) - (x->last_ns < y->last_ns);
}

static att_match_counts_t *counts_of(struct att_matcher *m, const att_trace_event_t *e)
{
    return &m->counts[m->catalog->tasks[e->task].group];
}

typedef enum verdict { WAIT = 0, MATCH = 1, TWICE = 2, DISAGREE = 3 } verdict_t;

static verdict_t judge(const struct att_matcher *m, const uint32_t *order, size_t count)
{
    const att_trace_event_t *first = &m->pool[order[0]].event;
    for (size_t i = 1; i < count; i++) {
        const att_trace_event_t *e = &m->pool[order[i]].event;
        const att_trace_event_t *before = &m->pool[order[i - 1]].event;
        if (m->catalog->members[e->member].rank == m->catalog->members[before->member].rank)
            return TWICE;
        if (e->nccl_seq != first->nccl_seq)
            return DISAGREE;
    }
    return count == m->expected[m->catalog->tasks[first->task].group] ? MATCH : WAIT;
}

static int emit(struct att_matcher *m, match_t *matches, size_t count, const uint32_t *order)
{
    const att_trace_event_t **ranks = NULL;
    uint32_t room = 0;
    if (count > 0)
        qsort(matches, count, sizeof *matches, by_last);
    for (size_t i = 0; i < count; i++) {
        if (matches[i].count > room) {
            const att_trace_event_t **grown = realloc(ranks, matches[i].count * sizeof *ranks);
            if (grown == NULL) {
                free(ranks);
                return -ATT_ENOMEM;
            }
            ranks = grown;
            room = matches[i].count;
        }
        for (uint32_t k = 0; k < matches[i].count; k++)
            ranks[k] = &m->pool[order[matches[i].first + k]].event;
        m->each(m->context, ranks, matches[i].count);
    }
    free(ranks);
    return ATT_OK;
}

/* Go through the pool; what stays waits for the next window. */
static int settle(struct att_matcher *m, bool last)
{
    uint32_t *order = malloc((m->count + 1) * sizeof *order);
    match_t *matches = malloc((m->count + 1) * sizeof *matches);
    waiting_t *kept = NULL;
    size_t match_count = 0, kept_count = 0;
    int status = order != NULL && matches != NULL ? ATT_OK : -ATT_ENOMEM;
    for (size_t i = 0; status == ATT_OK && i < m->count; i++)
        order[i] = (uint32_t)i;
    if (status == ATT_OK && m->count > 0)
        qsort_r(order, m->count, sizeof *order, by_identity, m);
    uint8_t *keep = calloc(m->count + 1, 1);
    if (keep == NULL)
        status = -ATT_ENOMEM;
    for (size_t i = 0; status == ATT_OK && i < m->count;) {
        const att_trace_event_t *first = &m->pool[order[i]].event;
        size_t end = i;
        int64_t last_ns = INT64_MIN;
        uint32_t age = UINT32_MAX;
        for (; end < m->count; end++) {
            const waiting_t *w = &m->pool[order[end]];
            if (w->event.task != first->task || w->event.call != first->call)
                break;
            if (w->event.start_ns > last_ns)
                last_ns = w->event.start_ns;
            if (w->age < age)
                age = w->age;
        }
        att_match_counts_t *counts = counts_of(m, first);
        verdict_t verdict = judge(m, order + i, end - i);
        if (verdict == MATCH) {
            matches[match_count++] = (match_t){last_ns, i, (uint32_t)(end - i)};
            counts->collectives++;
            counts->matched += end - i;
        } else if (verdict == TWICE) {
            counts->twice += end - i;
        } else if (verdict == DISAGREE) {
            counts->disagree += end - i;
        } else if (last || age >= PATIENCE) {
            counts->unmatched += end - i;
        } else {
            for (size_t k = i; k < end; k++)
                keep[order[k]] = 1;
        }
        i = end;
    }
    if (status == ATT_OK)
        status = emit(m, matches, match_count, order);
    kept = m->pool;
    for (size_t i = 0; status == ATT_OK && i < m->count; i++)
        if (keep[i]) {
            kept[kept_count] = m->pool[i];
            kept[kept_count++].age++;
        }
    m->count = kept_count;
    free(keep);
    free(order);
    free(matches);
    return status;
}

int att_matcher_add(struct att_matcher *m, const att_trace_event_t *events, size_t count)
{
    if (m->count + count > m->capacity) {
        size_t capacity = m->count + count;
        waiting_t *pool = realloc(m->pool, capacity * sizeof *pool);
        if (pool == NULL)
            return -ATT_ENOMEM;
        m->pool = pool;
        m->capacity = capacity;
    }
    for (size_t i = 0; i < count; i++)
        m->pool[m->count++] = (waiting_t){.event = events[i]};
    return settle(m, false);
}

int att_matcher_finish(struct att_matcher *m)
{
    return settle(m, true);
}
