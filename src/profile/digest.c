#include "profile/digest.h"

#include "base/bandwidth.h"
#include "profile/room.h"

#include <stdlib.h>
#include <string.h>

static int by_collective(const void *a, const void *b, void *context)
{
    const att_trace_event_t *events = context;
    const att_trace_event_t *x = &events[*(const uint32_t *)a], *y = &events[*(const uint32_t *)b];
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

int att_digest_order(const att_trace_event_t *events, size_t count, uint32_t **order)
{
    *order = malloc((count + 1) * sizeof **order);
    if (*order == NULL)
        return -ATT_ENOMEM;
    for (size_t i = 0; i < count; i++)
        (*order)[i] = (uint32_t)i;
    qsort_r(*order, count, sizeof **order, by_collective, (void *)(uintptr_t)events);
    return ATT_OK;
}

/* --- spans --------------------------------------------------------------------------------------
 */

/* The member of each group whose calls stand for the group's. */
static uint32_t *find_leads(const att_catalog_t *c, const bool *members)
{
    uint32_t *leads = malloc((c->group_count + 1) * sizeof *leads);
    for (uint32_t g = 0; leads != NULL && g < c->group_count; g++)
        leads[g] = ATT_CATALOG_NONE;
    for (uint32_t i = 0; leads != NULL && i < c->member_count; i++) {
        uint32_t *lead = &leads[c->members[i].group];
        if ((members == NULL || members[i]) &&
            (*lead == ATT_CATALOG_NONE || c->members[i].rank < c->members[*lead].rank))
            *lead = i;
    }
    return leads;
}

static bool continues(const att_digest_span_t *span, const att_digest_span_t *next)
{
    return span->task == next->task && span->txn == next->txn && span->trial == next->trial &&
           span->known == next->known && att_setting_equal(span->setting, next->setting);
}

static int add_span(att_digest_t *d, const att_digest_span_t *span)
{
    if (att_room_append(&d->spans, d->span_count, sizeof *d->spans) != ATT_OK)
        return -ATT_ENOMEM;
    d->spans[d->span_count++] = *span;
    return ATT_OK;
}

static int make_spans(const struct att_trace *trace, const att_trace_select_t *select,
                      const att_trace_event_t *events, size_t count, att_digest_t *d)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t *leads = find_leads(c, select->members);
    uint32_t *latest = malloc((c->task_count + 1) * sizeof *latest);
    int status = leads != NULL && latest != NULL ? ATT_OK : -ATT_ENOMEM;
    for (uint32_t t = 0; status == ATT_OK && t < c->task_count; t++)
        latest[t] = ATT_CATALOG_NONE;
    for (size_t i = 0; status == ATT_OK && i < count; i++) {
        const att_trace_event_t *e = &events[i];
        if (e->member != leads[c->tasks[e->task].group])
            continue;
        bool last = true;
        const att_setting_t *setting = att_trace_setting(trace, e, &last);
        att_digest_span_t span = {.task = e->task,
                                  .txn = e->txn,
                                  .from_ns = e->start_ns,
                                  .to_ns = e->stop_ns,
                                  .first_call = e->call,
                                  .calls = 1,
                                  .setting = setting != NULL ? *setting : ATT_SETTING_KEEP,
                                  .known = setting != NULL || e->txn == 0,
                                  .trial = !last};
        att_digest_span_t *open =
            latest[e->task] == ATT_CATALOG_NONE ? NULL : &d->spans[latest[e->task]];
        if (open != NULL && continues(open, &span)) {
            open->to_ns = e->stop_ns;
            open->calls++;
            continue;
        }
        latest[e->task] = d->span_count;
        status = add_span(d, &span);
    }
    free(leads);
    free(latest);
    return status;
}

/* --- points -------------------------------------------------------------------------------------
 */

typedef struct slice {
    double gbs;
    uint32_t collectives;
} slice_t;

static void add_collective(const att_catalog_t *c, const att_trace_event_t *events,
                           const uint32_t *order, size_t ranks, int64_t from_ns, double width_ns,
                           slice_t *slices)
{
    const att_trace_event_t *first = &events[order[0]];
    const att_catalog_task_t *task = &c->tasks[first->task];
    if (ranks != c->groups[task->group].ranks)
        return; /* in part outside of the window, or lost */
    int64_t start = first->start_ns, stop = first->stop_ns;
    for (size_t i = 1; i < ranks; i++) {
        const att_trace_event_t *e = &events[order[i]];
        start = e->start_ns > start ? e->start_ns : start;
        stop = e->stop_ns > stop ? e->stop_ns : stop;
    }
    if (stop <= start)
        return;
    double slot = (double)(stop - from_ns) / width_ns;
    uint32_t at = slot < 0 ? 0 : slot >= ATT_DIGEST_POINTS ? ATT_DIGEST_POINTS - 1 : (uint32_t)slot;
    slice_t *slice = &slices[(size_t)task->group * ATT_DIGEST_POINTS + at];
    slice->gbs += att_algorithm_gbs(task->bytes, (double)(stop - start) * 1e-3) *
                  att_bus_factor((int)task->collective, (int)ranks);
    slice->collectives++;
}

static int make_points(const struct att_trace *trace, const att_trace_event_t *events, size_t count,
                       att_digest_t *d)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t *order = NULL;
    slice_t *slices = calloc((size_t)(c->group_count + 1) * ATT_DIGEST_POINTS, sizeof *slices);
    int status = slices == NULL ? -ATT_ENOMEM : att_digest_order(events, count, &order);
    int64_t from = events[0].start_ns;
    double width = (double)(events[count - 1].start_ns - from + 1) / ATT_DIGEST_POINTS;
    for (size_t i = 0; status == ATT_OK && i < count;) {
        size_t end = i + 1;
        while (end < count && events[order[end]].task == events[order[i]].task &&
               events[order[end]].call == events[order[i]].call)
            end++;
        add_collective(c, events, order + i, end - i, from, width, slices);
        i = end;
    }
    for (uint32_t g = 0; status == ATT_OK && g < c->group_count; g++)
        for (uint32_t k = 0; status == ATT_OK && k < ATT_DIGEST_POINTS; k++) {
            const slice_t *slice = &slices[(size_t)g * ATT_DIGEST_POINTS + k];
            if (slice->collectives == 0)
                continue;
            status = att_room_append(&d->points, d->point_count, sizeof *d->points);
            if (status == ATT_OK)
                d->points[d->point_count++] =
                    (att_digest_point_t){.at_ns = from + (int64_t)(width * k),
                                         .group = g,
                                         .collectives = slice->collectives,
                                         .bus_gbs = slice->gbs / slice->collectives};
        }
    free(order);
    free(slices);
    return status;
}

int att_digest_make(const struct att_trace *trace, const att_trace_select_t *select,
                    const att_trace_event_t *events, size_t count, att_digest_t *digest)
{
    *digest = (att_digest_t){0};
    if (count == 0)
        return ATT_OK;
    int status = make_spans(trace, select, events, count, digest);
    if (status == ATT_OK)
        status = make_points(trace, events, count, digest);
    if (status != ATT_OK)
        att_digest_free(digest);
    return status;
}

/* --- join ---------------------------------------------------------------------------------------
 */

int att_digest_join(att_digest_t *d, att_digest_t *later)
{
    int status = ATT_OK;
    for (uint32_t i = 0; i < later->span_count && status == ATT_OK; i++) {
        const att_digest_span_t *next = &later->spans[i];
        att_digest_span_t *open = NULL;
        for (uint32_t k = d->span_count; k > 0 && open == NULL; k--)
            if (d->spans[k - 1].task == next->task)
                open = &d->spans[k - 1];
        if (open != NULL && continues(open, next)) {
            open->to_ns = next->to_ns;
            open->calls += next->calls;
        } else {
            status = add_span(d, next);
        }
    }
    for (uint32_t i = 0; i < later->point_count && status == ATT_OK; i++) {
        status = att_room_append(&d->points, d->point_count, sizeof *d->points);
        if (status == ATT_OK)
            d->points[d->point_count++] = later->points[i];
    }
    att_digest_free(later);
    return status;
}

void att_digest_free(att_digest_t *d)
{
    free(d->spans);
    free(d->points);
    *d = (att_digest_t){0};
}
