#include "profile/window.h"

#include "attune/record.h"
#include "profile/stream_reader.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_RECORDS 250000u /* held at a time by att_trace_each */

typedef struct sink {
    att_trace_event_t *events;
    size_t count, capacity;
} sink_t;

static int put(sink_t *sink, const att_trace_event_t *event)
{
    if (sink->count == sink->capacity) {
        size_t capacity = sink->capacity == 0 ? 4096 : sink->capacity + sink->capacity / 2;
        att_trace_event_t *events = realloc(sink->events, capacity * sizeof *events);
        if (events == NULL)
            return -ATT_ENOMEM;
        sink->events = events;
        sink->capacity = capacity;
    }
    sink->events[sink->count++] = *event;
    return ATT_OK;
}

static int take_record(const struct att_trace *trace, uint32_t node,
                       const att_trace_select_t *select, const att_stream_record_t *r, sink_t *sink)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t member = att_catalog_member_of(c, node, r->member);
    uint32_t task = att_catalog_task_of(c, node, r->task);
    if (member == ATT_CATALOG_NONE || task == ATT_CATALOG_NONE ||
        c->tasks[task].group != c->members[member].group || r->stop_ns <= r->start_ns ||
        r->untimed != ATT_UNTIMED_NO || (select->members != NULL && !select->members[member]))
        return ATT_OK;
    att_clock_reading_t start = att_trace_read(trace, member, r->start_ns);
    if (start.ns < select->from_ns || start.ns >= select->to_ns)
        return ATT_OK;
    att_trace_event_t event = {.start_ns = start.ns,
                               .stop_ns = att_trace_read(trace, member, r->stop_ns).ns,
                               .call = r->call,
                               .task = task,
                               .member = member,
                               .uncertainty_ns = start.uncertainty_ns,
                               .nccl_seq = r->nccl_seq,
                               .txn = r->txn,
                               .chunk_bytes = r->chunk_bytes,
                               .channels = r->channels,
                               .threads = r->threads,
                               .algorithm = r->algorithm,
                               .protocol = r->protocol,
                               .datatype = r->datatype};
    if (event.stop_ns <= event.start_ns)
        event.stop_ns = event.start_ns + 1;
    return put(sink, &event);
}

static int by_start(const void *a, const void *b)
{
    const att_trace_event_t *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    return (x->call > y->call) - (x->call < y->call);
}

int att_trace_load(const struct att_trace *trace, const att_trace_select_t *select,
                   att_trace_event_t **events, size_t *count)
{
    sink_t sink = {0};
    unsigned char *payload = malloc(ATT_FRAME_PAYLOAD);
    int status = payload == NULL ? -ATT_ENOMEM : ATT_OK;
    for (uint32_t f = 0; f < att_trace_files(trace) && status == ATT_OK; f++) {
        uint32_t node;
        size_t frames;
        const struct att_stream_reader *reader = att_trace_file(trace, f, &node);
        const att_frame_place_t *frame = att_stream_reader_frames(reader, &frames);
        for (size_t i = 0; i < frames && status == ATT_OK; i++) {
            int64_t from, to;
            if (frame[i].type != ATT_FRAME_RECORDS || frame[i].last_ns == 0)
                continue;
            att_trace_span(trace, node, frame[i].first_ns, frame[i].last_ns, &from, &to);
            if (to < select->from_ns || from >= select->to_ns ||
                !att_stream_reader_payload(reader, &frame[i], payload))
                continue;
            const att_stream_record_t *records = (const void *)payload;
            for (uint32_t k = 0; k < frame[i].count && status == ATT_OK; k++)
                status = take_record(trace, node, select, &records[k], &sink);
        }
    }
    free(payload);
    if (status != ATT_OK) {
        free(sink.events);
        return status;
    }
    if (sink.count > 0)
        qsort(sink.events, sink.count, sizeof *sink.events, by_start);
    *events = sink.events;
    *count = sink.count;
    return ATT_OK;
}

/* --- cut ----------------------------------------------------------------------------------------
 */

typedef struct span {
    int64_t from_ns;
    uint32_t count;
} span_t;

static int by_from(const void *a, const void *b)
{
    const span_t *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* A frame may cover a long time: it is taken in pieces, as if its records were spread evenly. */
#define FRAME_PIECES 8

static int collect_spans(const struct att_trace *trace, const att_trace_select_t *select,
                         span_t **out, size_t *count)
{
    span_t *spans = NULL;
    size_t used = 0, capacity = 0;
    for (uint32_t f = 0; f < att_trace_files(trace); f++) {
        uint32_t node;
        size_t frames;
        const struct att_stream_reader *reader = att_trace_file(trace, f, &node);
        const att_frame_place_t *frame = att_stream_reader_frames(reader, &frames);
        for (size_t i = 0; i < frames; i++) {
            int64_t from, to;
            if (frame[i].type != ATT_FRAME_RECORDS || frame[i].last_ns == 0)
                continue;
            att_trace_span(trace, node, frame[i].first_ns, frame[i].last_ns, &from, &to);
            if (used + FRAME_PIECES > capacity) {
                capacity = capacity == 0 ? 4096 : 2 * capacity;
                span_t *grown = realloc(spans, capacity * sizeof *grown);
                if (grown == NULL) {
                    free(spans);
                    return -ATT_ENOMEM;
                }
                spans = grown;
            }
            for (int k = 0; k < FRAME_PIECES; k++) {
                int64_t at = from + (to - from) / FRAME_PIECES * k;
                if (at >= select->from_ns && at < select->to_ns)
                    spans[used++] =
                        (span_t){at, (frame[i].count + FRAME_PIECES - 1) / FRAME_PIECES};
            }
        }
    }
    if (used > 0)
        qsort(spans, used, sizeof *spans, by_from);
    *out = spans;
    *count = used;
    return ATT_OK;
}

int att_trace_cut(const struct att_trace *trace, const att_trace_select_t *select, uint64_t most,
                  int64_t **bounds, uint32_t *pieces)
{
    span_t *spans;
    size_t count;
    if (collect_spans(trace, select, &spans, &count) != ATT_OK)
        return -ATT_ENOMEM;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += spans[i].count;
    uint64_t room = total / (most > 0 ? most : 1) + 2;
    int64_t *out = malloc((room * 2 + 2) * sizeof *out);
    if (out == NULL) {
        free(spans);
        return -ATT_ENOMEM;
    }
    /* Equal pieces, so that none is a small rest. */
    uint64_t wanted = total / (room - 1) + 1, held = 0;
    uint32_t used = 0;
    out[used++] = select->from_ns;
    for (size_t i = 0; i < count; i++) {
        if (held >= wanted && spans[i].from_ns > out[used - 1]) {
            out[used++] = spans[i].from_ns;
            held = 0;
        }
        held += spans[i].count;
    }
    out[used] = select->to_ns;
    free(spans);
    *bounds = out;
    *pieces = used;
    return ATT_OK;
}

int att_trace_each(const struct att_trace *trace, const att_trace_select_t *select,
                   att_trace_take_fn take, void *context)
{
    int64_t *bounds;
    uint32_t pieces;
    int status = att_trace_cut(trace, select, PIECE_RECORDS, &bounds, &pieces);
    if (status != ATT_OK)
        return status;
    for (uint32_t i = 0; i < pieces && status == ATT_OK; i++) {
        att_trace_select_t piece = *select;
        att_trace_event_t *events;
        size_t count;
        piece.from_ns = bounds[i];
        piece.to_ns = bounds[i + 1];
        status = att_trace_load(trace, &piece, &events, &count);
        if (status != ATT_OK)
            break;
        status = take(context, events, count);
        free(events);
    }
    free(bounds);
    return status;
}
