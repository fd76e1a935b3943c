#include "cli/lateness.h"

#include "base/segment.h"

#include <stdlib.h>
#include <string.h>

typedef struct work {
    const struct att_trace *trace;
    const att_catalog_t *catalog;
    struct att_matcher *matcher;
    att_lateness_group_t *groups; /* per group of the catalog while reading */
    int64_t *arrivals;
    uint32_t arrival_room;
    int status;
} work_t;

/* Half widths of two clocks add up; times on one clock have none. */
static uint32_t uncertainty_of(const work_t *w, const att_trace_event_t *const *ranks,
                               uint32_t count)
{
    const att_catalog_member_t *first = &w->catalog->members[ranks[0]->member];
    uint64_t worst = 0, second = 0;
    bool one_clock = true;
    for (uint32_t i = 0; i < count; i++) {
        const att_catalog_member_t *m = &w->catalog->members[ranks[i]->member];
        one_clock &= m->clock_kind == first->clock_kind &&
                     (m->clock_kind == ATT_CLOCK_VIRTUAL ||
                      (m->node == first->node &&
                       (m->clock_kind == ATT_CLOCK_HOST || m->clock_id == first->clock_id)));
        uint64_t one = ranks[i]->uncertainty_ns;
        if (one > worst) {
            second = worst;
            worst = one;
        } else if (one > second) {
            second = one;
        }
    }
    if (one_clock)
        return 0;
    return worst + second > UINT32_MAX ? UINT32_MAX : (uint32_t)(worst + second);
}

static int begin_group(work_t *w, att_lateness_group_t *g, const att_trace_event_t *const *ranks,
                       uint32_t count)
{
    g->ranks = malloc(count * sizeof *g->ranks);
    g->places = malloc(count * sizeof *g->places);
    if (g->ranks == NULL || g->places == NULL ||
        att_straggler_create(count, &g->straggler) != ATT_OK)
        return -ATT_ENOMEM;
    g->rank_count = count;
    for (uint32_t i = 0; i < count; i++) {
        g->ranks[i] = w->catalog->members[ranks[i]->member].rank;
        g->places[i] = w->catalog->members[ranks[i]->member].place;
    }
    return ATT_OK;
}

static void take_match(void *context, const att_trace_event_t *const *ranks, uint32_t count)
{
    work_t *w = context;
    att_lateness_group_t *g = &w->groups[w->catalog->tasks[ranks[0]->task].group];
    if (w->status == ATT_OK && g->straggler == NULL)
        w->status = begin_group(w, g, ranks, count);
    if (count > w->arrival_room) {
        free(w->arrivals);
        w->arrivals = malloc(count * sizeof *w->arrivals);
        w->arrival_room = w->arrivals != NULL ? count : 0;
        if (w->arrivals == NULL)
            w->status = -ATT_ENOMEM;
    }
    if (w->status != ATT_OK)
        return;
    att_straggler_step_t step = {.at_ns = INT64_MIN,
                                 .call = ranks[0]->call,
                                 .task = ranks[0]->task,
                                 .uncertainty_ns = uncertainty_of(w, ranks, count)};
    for (uint32_t i = 0; i < count; i++) {
        w->arrivals[i] = ranks[i]->start_ns;
        if (ranks[i]->start_ns > step.at_ns)
            step.at_ns = ranks[i]->start_ns;
    }
    w->status = att_straggler_add(g->straggler, &step, w->arrivals);
}

static int take_events(void *context, const att_trace_event_t *events, size_t count)
{
    work_t *w = context;
    int status = att_matcher_add(w->matcher, events, count);
    return status == ATT_OK ? w->status : status;
}

static int read_windows(work_t *w, const att_trace_choice_t *choice)
{
    int status = att_trace_each(w->trace, &choice->select, take_events, w);
    if (status == ATT_OK)
        status = att_matcher_finish(w->matcher);
    return status == ATT_OK ? w->status : status;
}

static int by_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double median_uncertainty(const struct att_straggler *straggler)
{
    uint32_t count;
    const att_straggler_step_t *steps = att_straggler_steps(straggler, &count);
    uint32_t *values = malloc((count + 1) * sizeof *values);
    if (values == NULL || count == 0) {
        free(values);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        values[i] = steps[i].uncertainty_ns;
    qsort(values, count, sizeof *values, by_u32);
    double median = values[count / 2];
    free(values);
    return median;
}

int att_lateness_make(const struct att_trace *trace, const att_trace_choice_t *choice,
                      att_lateness_t *lateness, att_error_t *error)
{
    *lateness = (att_lateness_t){0};
    int status = att_trace_calibrated(trace, choice->members, error);
    if (status != ATT_OK)
        return status;
    work_t w = {.trace = trace, .catalog = att_trace_catalog(trace)};
    lateness->groups = calloc(w.catalog->group_count + 1, sizeof *lateness->groups);
    lateness->group_count = w.catalog->group_count;
    w.groups = lateness->groups;
    if (w.groups == NULL)
        status = -ATT_ENOMEM;
    if (status == ATT_OK)
        status = att_matcher_create(w.catalog, choice->members, take_match, &w, &w.matcher);
    if (status == ATT_OK)
        status = read_windows(&w, choice);
    uint32_t kept = 0;
    for (uint32_t g = 0; status == ATT_OK && g < w.catalog->group_count; g++) {
        att_lateness_group_t *group = &lateness->groups[g];
        group->group = g;
        group->counts = *att_matcher_counts(w.matcher, g);
        if (group->straggler != NULL)
            status = att_straggler_finish(group->straggler);
        if (group->straggler != NULL)
            group->uncertainty_ns = median_uncertainty(group->straggler);
        if (group->straggler != NULL ||
            group->counts.unmatched + group->counts.disagree + group->counts.twice > 0)
            lateness->groups[kept++] = *group;
    }
    if (status == ATT_OK)
        lateness->group_count = kept;
    free(w.arrivals);
    att_matcher_destroy(w.matcher);
    if (status != ATT_OK) {
        att_lateness_free(lateness);
        return att_fail(error, ATT_ENOMEM, "no memory; a narrower --window needs less");
    }
    return ATT_OK;
}

void att_lateness_free(att_lateness_t *lateness)
{
    for (uint32_t g = 0; lateness->groups != NULL && g < lateness->group_count; g++) {
        att_straggler_destroy(lateness->groups[g].straggler);
        free(lateness->groups[g].ranks);
        free(lateness->groups[g].places);
    }
    free(lateness->groups);
    *lateness = (att_lateness_t){0};
}

bool att_lateness_iteration(const struct att_trace *trace, uint32_t place, int64_t at_ns,
                            uint64_t *iteration)
{
    const att_catalog_place_t *p = &att_trace_catalog(trace)->places[place];
    uint32_t count;
    const att_trace_mark_t *marks = att_trace_marks(trace, &count);
    bool found = false;
    for (uint32_t i = 0; i < count && marks[i].time_ns <= at_ns; i++)
        if (marks[i].node == p->node && marks[i].process == p->process &&
            marks[i].rank == p->job_rank) {
            *iteration = marks[i].iteration;
            found = true;
        }
    return found;
}

att_lateness_node_t *att_lateness_nodes(const struct att_trace *trace, const att_lateness_t *l)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    att_lateness_node_t *sums = calloc(c->node_count + 1, sizeof *sums);
    for (uint32_t g = 0; sums != NULL && g < l->group_count; g++)
        for (uint32_t r = 0; r < l->groups[g].rank_count; r++) {
            const att_straggler_rank_t *rank = att_straggler_rank(l->groups[g].straggler, r);
            att_lateness_node_t *sum = &sums[c->places[l->groups[g].places[r]].node];
            sum->last += rank->last;
            sum->named += rank->named;
            sum->wait_caused_ns += rank->wait_caused_ns;
            sum->waited_ns += rank->waited_ns;
        }
    return sums;
}
