#include "profile/chrome.h"

#include "profile/chrome_event.h"

#include <stdlib.h>
#include <string.h>

/* What is written, in order of time and then of this number. */
typedef enum item_kind {
    ITEM_ASYNC_END = 0,
    ITEM_SPAN = 1, /* a setting in force */
    ITEM_SWITCH = 2,
    ITEM_MARK = 3,
    ITEM_COUNTER = 4,
    ITEM_COUNTED = 5,
    ITEM_PART = 6,
    ITEM_CALL = 7,
    ITEM_ASYNC_BEGIN = 8,
    ITEM_FLOW_START = 9,
    ITEM_FLOW_STEP = 10,
    ITEM_FLOW_END = 11
} item_kind_t;

typedef struct item {
    int64_t at_ns;
    uint32_t kind;
    uint32_t index;
} item_t;

/* A document and the order of its events. */
typedef struct draft {
    att_chrome_document_t document;
    item_t *items;
    size_t count, capacity;
} draft_t;

static int add_item(draft_t *d, int64_t at_ns, item_kind_t kind, size_t index)
{
    if (d->count == d->capacity) {
        size_t capacity = d->capacity == 0 ? 4096 : d->capacity * 2;
        item_t *items = realloc(d->items, capacity * sizeof *items);
        if (items == NULL)
            return -ATT_ENOMEM;
        d->items = items;
        d->capacity = capacity;
    }
    d->items[d->count++] = (item_t){at_ns, (uint32_t)kind, (uint32_t)index};
    return ATT_OK;
}

static int by_time(const void *a, const void *b)
{
    const item_t *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void write_item(att_chrome_document_t *d, const item_t *item)
{
    const att_trace_event_t *e = &d->events[item->index];
    switch ((item_kind_t)item->kind) {
    case ITEM_ASYNC_END:
        att_chrome_async_end(d, e);
        return;
    case ITEM_SPAN:
        att_chrome_span(d, &d->digest->spans[item->index]);
        return;
    case ITEM_SWITCH:
        att_chrome_switch(d, &d->digest->spans[item->index]);
        return;
    case ITEM_MARK: {
        uint32_t count;
        att_chrome_mark(d, &att_trace_marks(d->file->trace, &count)[item->index]);
        return;
    }
    case ITEM_COUNTER:
        att_chrome_counter(d, &d->digest->points[item->index]);
        return;
    case ITEM_COUNTED:
        att_chrome_counted(d, &d->file->counted[item->index]);
        return;
    case ITEM_PART:
        att_chrome_part(d, &d->parts[item->index]);
        return;
    case ITEM_CALL:
        att_chrome_call(d, e, "X");
        return;
    case ITEM_ASYNC_BEGIN:
        att_chrome_call(d, e, "b");
        return;
    case ITEM_FLOW_START:
    case ITEM_FLOW_STEP:
    case ITEM_FLOW_END:
        att_chrome_flow(d, e, (att_chrome_flow_t)(item->kind - ITEM_FLOW_START));
        return;
    }
}

/* --- what goes in -------------------------------------------------------------------------------
 */

/* Calls; on a track whose last call has not ended a further one is asynchronous. *async: by event.
 */
static int add_calls(draft_t *d, uint8_t *async)
{
    const att_chrome_document_t *doc = &d->document;
    int64_t *ends = malloc((doc->catalog->member_count + 1) * sizeof *ends);
    int status = ends == NULL ? -ATT_ENOMEM : ATT_OK;
    for (uint32_t i = 0; status == ATT_OK && i < doc->catalog->member_count; i++)
        ends[i] = INT64_MIN;
    for (size_t i = 0; status == ATT_OK && i < doc->count; i++) {
        const att_trace_event_t *e = &doc->events[i];
        async[i] = e->start_ns < ends[e->member];
        if (!async[i])
            ends[e->member] = e->stop_ns;
        status = add_item(d, e->start_ns, async[i] ? ITEM_ASYNC_BEGIN : ITEM_CALL, i);
        if (status == ATT_OK && async[i])
            status = add_item(d, e->stop_ns, ITEM_ASYNC_END, i);
    }
    free(ends);
    return status;
}

/* One flow a collective, from the first rank to arrive to the last. */
static int add_flows(draft_t *d, const uint8_t *async)
{
    const att_trace_event_t *events = d->document.events;
    size_t count = d->document.count;
    uint32_t *order = NULL;
    int status = att_digest_order(events, count, &order);
    for (size_t i = 0; status == ATT_OK && i < count;) {
        size_t end = i, used = 0;
        for (; end < count && events[order[end]].task == events[order[i]].task &&
               events[order[end]].call == events[order[i]].call;
             end++)
            if (!async[order[end]])
                order[i + used++] = order[end];
        for (size_t k = 0; used > 1 && k < used && status == ATT_OK; k++)
            status = add_item(d, events[order[i + k]].start_ns,
                              k == 0          ? ITEM_FLOW_START
                              : k + 1 == used ? ITEM_FLOW_END
                                              : ITEM_FLOW_STEP,
                              order[i + k]);
        i = end;
    }
    free(order);
    return status;
}

static int add_digest(draft_t *d)
{
    const att_digest_t *digest = d->document.digest;
    bool *seen = calloc(d->document.catalog->task_count + 1, sizeof *seen);
    int status = seen == NULL ? -ATT_ENOMEM : ATT_OK;
    for (uint32_t i = 0; i < digest->span_count && status == ATT_OK; i++) {
        const att_digest_span_t *span = &digest->spans[i];
        status = add_item(d, span->from_ns, ITEM_SPAN, i);
        if (status == ATT_OK && seen[span->task])
            status = add_item(d, span->from_ns, ITEM_SWITCH, i);
        seen[span->task] = true;
    }
    free(seen);
    for (uint32_t i = 0; i < digest->point_count && status == ATT_OK; i++)
        status = add_item(d, digest->points[i].at_ns, ITEM_COUNTER, i);
    return status;
}

static bool mark_is_selected(const draft_t *d, const att_trace_select_t *select,
                             const att_trace_mark_t *mark)
{
    const att_catalog_t *c = d->document.catalog;
    uint32_t rank = att_chrome_mark_rank(c, mark), place = d->document.file->place;
    if (rank == ATT_CATALOG_NONE || mark->time_ns < select->from_ns ||
        mark->time_ns >= select->to_ns ||
        (place != ATT_CATALOG_NONE && c->places[place].job_rank != rank))
        return false;
    for (uint32_t m = 0; m < c->member_count; m++)
        if (c->places[c->members[m].place].job_rank == rank &&
            (select->members == NULL || select->members[m]))
            return true;
    return false;
}

static int add_marks(draft_t *d, const att_trace_select_t *select)
{
    uint32_t count;
    const att_trace_mark_t *marks = att_trace_marks(d->document.file->trace, &count);
    int status = ATT_OK;
    for (uint32_t i = 0; i < count && status == ATT_OK; i++)
        if (mark_is_selected(d, select, &marks[i]))
            status = add_item(d, marks[i].time_ns, ITEM_MARK, i);
    return status;
}

static int add_counted(draft_t *d, const att_trace_select_t *select)
{
    const att_chrome_file_t *file = d->document.file;
    int status = ATT_OK;
    for (size_t i = 0; i < file->counted_count && status == ATT_OK; i++)
        if (file->counted[i].at_ns >= select->from_ns && file->counted[i].at_ns < select->to_ns)
            status = add_item(d, file->counted[i].at_ns, ITEM_COUNTED, i);
    return status;
}

static void write_document(draft_t *d, const att_trace_select_t *select)
{
    att_chrome_header(&d->document);
    att_chrome_names(&d->document, select->members);
    if (d->count > 0)
        qsort(d->items, d->count, sizeof *d->items, by_time);
    for (size_t i = 0; i < d->count; i++)
        write_item(&d->document, &d->items[i]);
    att_out_literal(d->document.out, "\n]}\n");
}

int att_chrome_write(const att_chrome_file_t *file, const att_trace_select_t *select,
                     const att_trace_event_t *events, size_t count, const att_digest_t *digest,
                     att_out_t *out)
{
    draft_t d = {.document = {.file = file,
                              .catalog = att_trace_catalog(file->trace),
                              .events = events,
                              .count = count,
                              .digest = digest,
                              .out = out}};
    uint8_t *async = calloc(count + 1, 1);
    int status = async == NULL ? -ATT_ENOMEM : add_calls(&d, async);
    if (status == ATT_OK)
        status = add_marks(&d, select);
    /* What is about the whole job is not repeated in the file of each rank. */
    if (status == ATT_OK && file->place == ATT_CATALOG_NONE)
        status = add_flows(&d, async);
    if (status == ATT_OK && file->place == ATT_CATALOG_NONE)
        status = add_digest(&d);
    if (status == ATT_OK && file->place == ATT_CATALOG_NONE)
        status = add_counted(&d, select);
    if (status == ATT_OK)
        write_document(&d, select);
    free(async);
    free(d.items);
    return status;
}

int att_chrome_overview(const att_chrome_file_t *file, const att_trace_select_t *select,
                        const att_digest_t *digest, const att_chrome_part_t *parts, uint32_t count,
                        att_out_t *out)
{
    draft_t d = {.document = {.file = file,
                              .catalog = att_trace_catalog(file->trace),
                              .digest = digest,
                              .parts = parts,
                              .out = out}};
    int status = add_marks(&d, select);
    if (status == ATT_OK)
        status = add_digest(&d);
    if (status == ATT_OK)
        status = add_counted(&d, select);
    for (uint32_t i = 0; i < count && status == ATT_OK; i++)
        status = add_item(&d, parts[i].from_ns, ITEM_PART, i);
    if (status == ATT_OK)
        write_document(&d, select);
    free(d.items);
    return status;
}
