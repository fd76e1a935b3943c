/*
 * chrome event: writes single Chrome trace events of a document. The order is chrome.c's matter.
 */
#ifndef ATT_PROFILE_CHROME_EVENT_H
#define ATT_PROFILE_CHROME_EVENT_H

#include "profile/chrome.h"

typedef struct att_chrome_document {
    const att_chrome_file_t *file;
    const att_catalog_t *catalog;
    const att_trace_event_t *events;
    size_t count;
    const att_digest_t *digest;
    const att_chrome_part_t *parts;
    att_out_t *out;
    bool any; /* an event was written: a comma is due */
} att_chrome_document_t;

typedef enum att_chrome_flow {
    ATT_CHROME_FLOW_START = 0,
    ATT_CHROME_FLOW_STEP = 1,
    ATT_CHROME_FLOW_END = 2
} att_chrome_flow_t;

/* Everything before the first event. */
void att_chrome_header(att_chrome_document_t *document);
/* Metadata events: names of processes and threads. */
void att_chrome_names(att_chrome_document_t *document, const bool *members);
/* phase: "X", or "b" for one that overlaps others on its track. */
void att_chrome_call(att_chrome_document_t *document, const att_trace_event_t *event,
                     const char *phase);
void att_chrome_async_end(att_chrome_document_t *document, const att_trace_event_t *event);
void att_chrome_flow(att_chrome_document_t *document, const att_trace_event_t *event,
                     att_chrome_flow_t flow);
void att_chrome_span(att_chrome_document_t *document, const att_digest_span_t *span);
void att_chrome_switch(att_chrome_document_t *document, const att_digest_span_t *span);
void att_chrome_mark(att_chrome_document_t *document, const att_trace_mark_t *mark);
void att_chrome_counter(att_chrome_document_t *document, const att_digest_point_t *point);
void att_chrome_counted(att_chrome_document_t *document, const att_chrome_counted_t *counted);
void att_chrome_part(att_chrome_document_t *document, const att_chrome_part_t *part);
/* Rank of the job that sent a mark, NONE when it is not in the records. */
uint32_t att_chrome_mark_rank(const att_catalog_t *catalog, const att_trace_mark_t *mark);

#endif
