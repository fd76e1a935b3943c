#include "profile/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORTEST_NS 100000000ull  /* between reads: finer would not tell more */
#define LONGEST_NS  1000000000ull /* a source that cannot be read this often is of no use */
#define TRIES       3             /* reads that measure the cost */
#define MEMORY                                                                                     \
    7 /* reads whose median is what one costs: one that was interrupted is                         \
         paid for by a pause and tells nothing of the source */

typedef struct entry {
    att_counter_source_t source;
    att_counter_status_t status;
    att_counter_state_t told;
    double costs_ns[MEMORY];
    uint32_t reads;
} entry_t;

struct att_counters {
    double budget;
    att_counters_clock_fn clock;
    void *context;
    uint64_t step_ns, last_ns;
    double spent_ns;
    double last_cost_ns; /* of the last read of all: it may have been an unlucky one */
    uint32_t count;
    entry_t entries[ATT_COUNTER_SOURCES];
};

const char *att_counter_scope_name(att_counter_scope_t scope)
{
    static const char *const names[] = {"agent", "process", "node"};
    return scope <= ATT_COUNTER_NODE ? names[scope] : "unknown";
}

int att_counters_check(const char *events, att_error_t *error)
{
    for (const char *name = events;;) {
        size_t length = strcspn(name, ",");
        if (length == 0)
            return att_fail(error, ATT_EUSAGE,
                            "--counters: '%.80s' has an empty name; expected off, on or "
                            "EVENT,EVENT,...",
                            events);
        if (length >= ATT_COUNTER_NAME)
            return att_fail(error, ATT_EUSAGE, "--counters: a name beyond %d characters",
                            ATT_COUNTER_NAME - 1);
        if (name[length] == '\0')
            return ATT_OK;
        name += length + 1;
    }
}

int att_counters_create(double budget, att_counters_clock_fn clock, void *context,
                        struct att_counters **out)
{
    struct att_counters *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ATT_ENOMEM;
    c->budget = budget;
    c->clock = clock;
    c->context = context;
    *out = c;
    return ATT_OK;
}

static void close_source(entry_t *e)
{
    if (e->source.close != NULL)
        e->source.close(e->source.context);
    e->source.close = NULL;
}

void att_counters_destroy(struct att_counters *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->count; i++)
        close_source(&c->entries[i]);
    free(c);
}

/* --- budget ----------------------------------------------------------------------------------- */

static double cost_of_all(const struct att_counters *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->entries[i].status.state == ATT_COUNTER_ON)
            sum += c->entries[i].status.cost_ns;
    return sum;
}

static uint64_t longest(const struct att_counters *c)
{
    return c->step_ns > LONGEST_NS ? c->step_ns : LONGEST_NS;
}

static void switch_off(struct att_counters *c, entry_t *e)
{
    e->status.state = ATT_COUNTER_OFF;
    snprintf(e->status.reason, sizeof e->status.reason,
             "switched off: a read takes %.3g us, the budget is %.3g %% of the time, which is %.3g "
             "us every %.1f s for all counters together",
             e->status.cost_ns * 1e-3, 100 * c->budget, c->budget * (double)longest(c) * 1e-3,
             (double)longest(c) * 1e-9);
    close_source(e);
}

static void keep_budget(struct att_counters *c)
{
    while (c->budget > 0 && cost_of_all(c) > c->budget * (double)longest(c)) {
        entry_t *dearest = NULL;
        for (uint32_t i = 0; i < c->count; i++) {
            entry_t *e = &c->entries[i];
            if (e->status.state == ATT_COUNTER_ON &&
                (dearest == NULL || e->status.cost_ns > dearest->status.cost_ns))
                dearest = e;
        }
        switch_off(c, dearest);
    }
}

uint64_t att_counters_interval_ns(const struct att_counters *c)
{
    uint64_t interval = c->step_ns > SHORTEST_NS ? c->step_ns : SHORTEST_NS;
    double cost = cost_of_all(c);
    if (cost < c->last_cost_ns)
        cost = c->last_cost_ns;
    double needed = c->budget > 0 ? cost / c->budget : 0;
    return (double)interval < needed ? (uint64_t)needed : interval;
}

void att_counters_step(struct att_counters *c, uint64_t step_ns)
{
    c->step_ns = step_ns;
    keep_budget(c);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_cost(const entry_t *e)
{
    double sorted[MEMORY];
    memcpy(sorted, e->costs_ns, sizeof sorted);
    qsort(sorted, MEMORY, sizeof *sorted, ascending);
    return sorted[MEMORY / 2];
}

/* Returns what it took, nanoseconds. */
static double read_one(struct att_counters *c, entry_t *e)
{
    uint64_t began = c->clock(c->context);
    int status = e->source.read(e->source.context, e->status.values);
    double took = (double)(c->clock(c->context) - began);
    c->spent_ns += took;
    e->costs_ns[e->reads++ % MEMORY] = took;
    if (status == ATT_OK)
        return took;
    e->status.state = ATT_COUNTER_GONE;
    snprintf(e->status.reason, sizeof e->status.reason, "%s",
             status == -ATT_ENOENT ? "it has ended" : "it cannot be read any more");
    close_source(e);
    return took;
}

int att_counters_add(struct att_counters *c, const att_counter_source_t *source)
{
    if (c->count == ATT_COUNTER_SOURCES) {
        if (source->close != NULL)
            source->close(source->context);
        return -ATT_EFULL;
    }
    entry_t *e = &c->entries[c->count];
    e->source = *source;
    /* The first read opens what later ones find open; the cheapest of a few is what it costs,
     * unless already one is beyond all bounds. */
    double least = 0;
    for (int i = 0; i < TRIES && e->status.state == ATT_COUNTER_ON; i++) {
        double took = read_one(c, e);
        if (i == 0 || took < least)
            least = took;
        if (c->budget > 0 && took > 100 * c->budget * (double)longest(c))
            break;
    }
    for (int i = 0; i < MEMORY; i++)
        e->costs_ns[i] = least;
    e->status.cost_ns = least;
    c->count++;
    keep_budget(c);
    return (int)c->count - 1;
}

int att_counters_read(struct att_counters *c, uint64_t now_ns)
{
    if (c->last_ns != 0 && now_ns < c->last_ns + att_counters_interval_ns(c))
        return 0;
    double before_ns = c->spent_ns;
    c->last_ns = now_ns;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->entries[i].status.state == ATT_COUNTER_ON)
            read_one(c, &c->entries[i]);
    for (uint32_t i = 0; i < c->count; i++)
        c->entries[i].status.cost_ns = median_cost(&c->entries[i]);
    c->last_cost_ns = c->spent_ns - before_ns;
    keep_budget(c);
    return 1;
}

/* --- what is known ---------------------------------------------------------------------------- */

uint32_t att_counters_count(const struct att_counters *c)
{
    return c->count;
}

const att_counter_source_t *att_counters_source(const struct att_counters *c, uint32_t index)
{
    return &c->entries[index].source;
}

const att_counter_status_t *att_counters_status(const struct att_counters *c, uint32_t index)
{
    return &c->entries[index].status;
}

int att_counters_changed(struct att_counters *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->entries[i].told != c->entries[i].status.state) {
            c->entries[i].told = c->entries[i].status.state;
            return (int)i;
        }
    return -1;
}

double att_counters_spent_ns(const struct att_counters *c)
{
    return c->spent_ns;
}
