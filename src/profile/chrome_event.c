#include "profile/chrome_event.h"

#include "base/names.h"
#include "profile/kineto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- header and names ---------------------------------------------------------------------------
 */

static void begin_event(att_chrome_document_t *d)
{
    if (d->any)
        att_out_literal(d->out, ",\n");
    d->any = true;
}

static void field_u64(att_out_t *out, const char *key, uint64_t value)
{
    att_out_literal(out, ",\"");
    att_out_text(out, key);
    att_out_literal(out, "\":");
    att_out_u64(out, value);
}

static void field_text(att_out_t *out, const char *key, const char *value)
{
    att_out_literal(out, ",\"");
    att_out_text(out, key);
    att_out_literal(out, "\":");
    att_out_string(out, value);
}

static void write_clock(att_chrome_document_t *d, uint32_t node)
{
    att_trace_node_t about;
    att_trace_node(d->file->trace, node, &about);
    att_out_t *out = d->out;
    att_out_literal(out, "{\"node\":");
    att_out_u64(out, about.agent);
    field_text(out, "host", about.host);
    const att_clock_model_t *m = about.model;
    field_text(out, "calibrated", about.calibrated ? "yes" : "no");
    field_u64(out, "points", m->count);
    field_u64(out, "rejected_points", m->rejected);
    uint32_t worst = 0;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->points[i].uncertainty_ns > worst)
            worst = m->points[i].uncertainty_ns;
    att_out_literal(out, ",\"offset_us\":");
    att_out_us(out, m->count > 0 ? m->points[m->count - 1].offset_ns : 0);
    att_out_literal(out, ",\"drift_ppm\":");
    att_out_real(out, att_clock_model_drift(m) * 1e6);
    att_out_literal(out, ",\"uncertainty_us\":");
    att_out_us(out, worst);
    att_out_literal(out, "}");
}

void att_chrome_header(att_chrome_document_t *d)
{
    att_out_t *out = d->out;
    const att_trace_facts_t *facts = att_trace_facts(d->file->trace);
    att_out_literal(out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"traceName\":");
    att_out_string(out, d->file->run);
    att_out_literal(out, ",\"attune\":{\"version\":1,\"attune\":\"" ATTUNE_VERSION
                         "\",\"units\":\"ts and dur in microseconds since time 0\"");
    att_out_literal(out, ",\"origin_ns\":");
    att_out_i64(out, d->file->origin_ns);
    att_out_literal(out, ",\"origin_unix_ns\":");
    att_out_i64(out, facts->origin_unix_ns);
    field_text(out, "clock",
               facts->virtual_time ? "modelled machine" : "CLOCK_MONOTONIC of node 0");
    field_u64(out, "records", facts->records);
    field_u64(out, "records_lost_in_rings", facts->ring_dropped);
    field_u64(out, "records_lost_in_writing", facts->writer_dropped);
    field_u64(out, "frames_missing", facts->missing_frames);
    field_u64(out, "bytes_skipped", facts->skipped_bytes);
    att_out_literal(out, ",\"clocks\":[");
    for (uint32_t n = 0; n < d->catalog->node_count; n++) {
        if (n > 0)
            att_out_literal(out, ",");
        write_clock(d, n);
    }
    att_out_literal(out, "]}");
    /* HTA 0.5 looks for the rank with a regular expression that wants the blank. */
    uint32_t world = d->catalog->world;
    att_out_literal(out, ",\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": ");
    att_out_u64(
        out, d->file->place == ATT_CATALOG_NONE ? 0 : d->catalog->places[d->file->place].job_rank);
    field_u64(out, "world_size", world == ATT_CATALOG_NONE ? 0 : d->catalog->groups[world].ranks);
    att_out_literal(out, "}");
    att_out_literal(out, ",\n\"traceEvents\":[\n");
}

static void name_event(att_chrome_document_t *d, const char *what, uint32_t pid, uint32_t tid,
                       const char *name)
{
    att_out_t *out = d->out;
    begin_event(d);
    att_out_literal(out, "{\"ph\":\"M\",\"name\":\"");
    att_out_text(out, what);
    att_out_literal(out, "\",\"pid\":");
    att_out_u64(out, pid);
    att_out_literal(out, ",\"tid\":");
    att_out_u64(out, tid);
    att_out_literal(out, ",\"args\":{\"name\":");
    att_out_string(out, name);
    att_out_literal(out, "}}");
}

static void sort_event(att_chrome_document_t *d, const char *what, uint32_t pid, uint32_t tid,
                       int64_t index)
{
    att_out_t *out = d->out;
    begin_event(d);
    att_out_literal(out, "{\"ph\":\"M\",\"name\":\"");
    att_out_text(out, what);
    att_out_literal(out, "\",\"pid\":");
    att_out_u64(out, pid);
    att_out_literal(out, ",\"tid\":");
    att_out_u64(out, tid);
    att_out_literal(out, ",\"args\":{\"sort_index\":");
    att_out_i64(out, index);
    att_out_literal(out, "}}");
}

static void group_text(const att_catalog_group_t *group, char text[64])
{
    snprintf(text, 64, "0x%" PRIx64 " (%u ranks)", group->hash, group->ranks);
}

static void task_text(const att_catalog_t *c, uint32_t task, char text[96])
{
    const att_catalog_task_t *t = &c->tasks[task];
    char bytes[24];
    snprintf(text, 96, "%s %s of 0x%" PRIx64, att_collective_name((int)t->collective),
             att_bytes_text(t->bytes, bytes, sizeof bytes), c->groups[t->group].hash);
}

static bool shown(const att_chrome_document_t *d, uint32_t place)
{
    return d->file->place == ATT_CATALOG_NONE || d->file->place == place;
}

void att_chrome_names(att_chrome_document_t *d, const bool *members)
{
    const att_catalog_t *c = d->catalog;
    char text[256], group[64];
    for (uint32_t i = 0; i < c->place_count; i++) {
        const att_catalog_place_t *p = &c->places[i];
        bool used = false;
        for (uint32_t m = 0; m < c->member_count && !used; m++)
            used = c->members[m].place == i && (members == NULL || members[m]);
        if (!used || !shown(d, i))
            continue;
        snprintf(text, sizeof text, "rank %u (%s, node %u, pid %d)", p->job_rank, p->program,
                 c->nodes[p->node].agent, (int)p->pid);
        name_event(d, "process_name", p->job_rank, 0, text);
        sort_event(d, "process_sort_index", p->job_rank, 0, p->job_rank);
        name_event(d, "thread_name", p->job_rank, 0, "iterations");
    }
    for (uint32_t m = 0; m < c->member_count; m++) {
        if ((members != NULL && !members[m]) || !shown(d, c->members[m].place))
            continue;
        group_text(&c->groups[c->members[m].group], group);
        snprintf(text, sizeof text, "communicator %s", group);
        name_event(d, "thread_name", c->places[c->members[m].place].job_rank,
                   c->members[m].group + 1, text);
    }
    if (d->file->place != ATT_CATALOG_NONE)
        return;
    name_event(d, "process_name", ATT_CHROME_ATTUNE, 0, "attune");
    sort_event(d, "process_sort_index", ATT_CHROME_ATTUNE, 0, -1);
    for (uint32_t t = 0; t < c->task_count; t++) {
        task_text(c, t, text);
        name_event(d, "thread_name", ATT_CHROME_ATTUNE, t + 1, text);
    }
}

/* --- events -------------------------------------------------------------------------------------
 */

static void place_fields(att_chrome_document_t *d, const char *phase, uint32_t pid, uint32_t tid,
                         int64_t at_ns)
{
    att_out_t *out = d->out;
    begin_event(d);
    att_out_literal(out, "{\"ph\":\"");
    att_out_text(out, phase);
    att_out_literal(out, "\",\"pid\":");
    att_out_u64(out, pid);
    att_out_literal(out, ",\"tid\":");
    att_out_u64(out, tid);
    att_out_literal(out, ",\"ts\":");
    att_out_us(out, at_ns - d->file->origin_ns);
}

static void group_ranks(att_chrome_document_t *d, uint32_t group)
{
    att_out_t *out = d->out;
    uint32_t ranks = d->catalog->groups[group].ranks;
    att_out_literal(out, ",\"Process Group Ranks\":\"[");
    /* Kineto too leaves out the middle of long lists. */
    for (uint32_t r = 0; r < ranks && r < 30; r++) {
        if (r > 0)
            att_out_literal(out, ", ");
        att_out_u64(out, r);
    }
    att_out_text(out, ranks > 30 ? ", ...]\"" : "]\"");
}

static void call_arguments(att_chrome_document_t *d, const att_trace_event_t *e)
{
    const att_catalog_t *c = d->catalog;
    const att_catalog_task_t *task = &c->tasks[e->task];
    const att_catalog_group_t *group = &c->groups[task->group];
    const att_catalog_member_t *member = &c->members[e->member];
    att_out_t *out = d->out;
    uint64_t in, result;
    att_kineto_elements((int)task->collective, task->bytes, group->ranks, e->datatype, &in,
                        &result);
    att_out_literal(out, ",\"args\":{\"Collective name\":\"");
    att_out_text(out, att_kineto_collective((int)task->collective));
    att_out_literal(out, "\",\"In msg nelems\":");
    att_out_u64(out, in);
    att_out_literal(out, ",\"Out msg nelems\":");
    att_out_u64(out, result);
    att_out_literal(out, ",\"Group size\":");
    att_out_u64(out, group->ranks);
    att_out_literal(out, ",\"dtype\":\"");
    att_out_text(out, att_kineto_dtype(e->datatype));
    att_out_literal(out, "\",\"Process Group Name\":\"");
    att_out_hex(out, group->hash);
    att_out_literal(out, "\",\"Rank\":");
    att_out_u64(out, member->rank);
    att_out_literal(out, ",\"Seq\":");
    att_out_u64(out, e->nccl_seq);
    att_out_literal(out, ",\"call\":");
    att_out_u64(out, e->call);
    if (!d->file->compact) {
        uint64_t size = att_kineto_dtype_bytes(e->datatype);
        att_out_literal(out, ",\"In msg size\":");
        att_out_u64(out, in * size);
        att_out_literal(out, ",\"Out msg size\":");
        att_out_u64(out, result * size);
        att_out_literal(out, ",\"In split size\":\"[]\",\"Out split size\":\"[]\""
                             ",\"Process Group Description\":\"communicator\"");
        group_ranks(d, task->group);
        field_u64(out, "device", member->place);
        field_u64(out, "bytes", task->bytes);
        field_u64(out, "clock uncertainty (ns)", e->uncertainty_ns);
    }
    att_out_literal(out, ",\"stream\":");
    att_out_u64(out, task->group + 1);
    att_out_literal(out, ",\"correlation\":");
    att_out_u64(out, (uint64_t)(e - d->events) + 1);
    bool last = true;
    const att_setting_t *setting = att_trace_setting(d->file->trace, e, &last);
    att_out_literal(out, ",\"setting\":\"");
    att_out_text(out, att_algorithm_name(e->algorithm));
    att_out_literal(out, "/");
    att_out_text(out, att_protocol_name(e->protocol));
    att_out_literal(out, " ch=");
    att_out_u64(out, e->channels);
    if (e->chunk_bytes != 0) {
        att_out_literal(out, " chunk=");
        att_out_u64(out, e->chunk_bytes);
    }
    att_out_text(out, setting == NULL && e->txn == 0  ? "\",\"in force\":\"NCCL's choice\"}"
                      : setting == NULL               ? "\",\"in force\":\"unknown list\"}"
                      : !last                         ? "\",\"in force\":\"trial\"}"
                      : att_setting_is_keep(*setting) ? "\",\"in force\":\"NCCL's choice\"}"
                                                      : "\",\"in force\":\"tuned\"}");
}

/* As NCCL's kernels are called, which is how HTA knows a collective. */
static void kernel_name(att_chrome_document_t *d, const att_trace_event_t *e)
{
    att_out_t *out = d->out;
    att_out_literal(out, ",\"name\":\"ncclDevKernel_");
    att_out_text(out, att_kineto_function((int)d->catalog->tasks[e->task].collective));
    att_out_literal(out, "_");
    att_out_text(out, att_kineto_algorithm(e->algorithm));
    att_out_literal(out, "_");
    att_out_text(out, att_kineto_protocol(e->protocol));
    att_out_literal(out, "\"");
}

/* What ties the begin and the end of an asynchronous event. */
static void overlapping(att_chrome_document_t *d, const att_trace_event_t *e)
{
    att_out_literal(d->out, ",\"cat\":\"overlapping\",\"id\":");
    att_out_u64(d->out, (uint64_t)(e - d->events) + 1);
}

void att_chrome_call(att_chrome_document_t *d, const att_trace_event_t *e, const char *phase)
{
    const att_catalog_t *c = d->catalog;
    const att_catalog_member_t *m = &c->members[e->member];
    att_out_t *out = d->out;
    place_fields(d, phase, c->places[m->place].job_rank, m->group + 1, e->start_ns);
    if (phase[0] == 'X') {
        att_out_literal(out, ",\"dur\":");
        att_out_us(out, e->stop_ns - e->start_ns);
        att_out_literal(out, ",\"cat\":\"kernel\"");
    } else {
        overlapping(d, e);
    }
    kernel_name(d, e);
    call_arguments(d, e);
    att_out_literal(out, "}");
}

void att_chrome_async_end(att_chrome_document_t *d, const att_trace_event_t *e)
{
    const att_catalog_t *c = d->catalog;
    const att_catalog_member_t *m = &c->members[e->member];
    att_out_t *out = d->out;
    place_fields(d, "e", c->places[m->place].job_rank, m->group + 1, e->stop_ns);
    overlapping(d, e);
    kernel_name(d, e);
    att_out_literal(out, "}");
}

void att_chrome_flow(att_chrome_document_t *d, const att_trace_event_t *e, att_chrome_flow_t kind)
{
    const att_catalog_t *c = d->catalog;
    const att_catalog_member_t *m = &c->members[e->member];
    att_out_t *out = d->out;
    place_fields(d,
                 kind == ATT_CHROME_FLOW_START  ? "s"
                 : kind == ATT_CHROME_FLOW_STEP ? "t"
                                                : "f",
                 c->places[m->place].job_rank, m->group + 1, e->start_ns);
    /* Unique by task and call: both stay the same in every part. */
    att_out_literal(out, ",\"cat\":\"collective\",\"name\":\"collective\",\"id\":\"");
    att_out_u64(out, e->task);
    att_out_literal(out, ".");
    att_out_u64(out, e->call);
    att_out_text(out, kind == ATT_CHROME_FLOW_END ? "\",\"bp\":\"e\"}" : "\"}");
}

static const char *span_text(const att_digest_span_t *span, char text[ATT_SETTING_TEXT])
{
    if (!span->known)
        return "unknown list";
    if (att_setting_is_keep(span->setting))
        return "NCCL's choice";
    return att_setting_text(span->setting, text, ATT_SETTING_TEXT);
}

void att_chrome_span(att_chrome_document_t *d, const att_digest_span_t *span)
{
    char text[ATT_SETTING_TEXT];
    att_out_t *out = d->out;
    place_fields(d, "X", ATT_CHROME_ATTUNE, span->task + 1, span->from_ns);
    att_out_literal(out, ",\"dur\":");
    att_out_us(out, span->to_ns - span->from_ns);
    att_out_text(out, span->trial ? ",\"cat\":\"trial\"" : ",\"cat\":\"setting\"");
    field_text(out, "name", span_text(span, text));
    att_out_literal(out, ",\"args\":{\"list\":");
    att_out_u64(out, span->txn);
    att_out_text(out, span->trial ? ",\"trial\":true" : ",\"trial\":false");
    field_u64(out, "first call", span->first_call);
    field_u64(out, "calls", span->calls);
    att_out_literal(out, "}}");
}

void att_chrome_switch(att_chrome_document_t *d, const att_digest_span_t *span)
{
    char text[ATT_SETTING_TEXT];
    place_fields(d, "i", ATT_CHROME_ATTUNE, span->task + 1, span->from_ns);
    att_out_literal(d->out,
                    ",\"s\":\"t\",\"cat\":\"switch\",\"name\":\"switch\",\"args\":{\"to\":");
    att_out_string(d->out, span_text(span, text));
    field_u64(d->out, "call", span->first_call);
    att_out_literal(d->out, "}}");
}

/* The rank of the job that sent a mark: by its number where the process has it, else the first. */
uint32_t att_chrome_mark_rank(const att_catalog_t *c, const att_trace_mark_t *mark)
{
    uint32_t found = ATT_CATALOG_NONE;
    for (uint32_t i = 0; i < c->place_count; i++) {
        const att_catalog_place_t *p = &c->places[i];
        if (p->node != mark->node || p->process != mark->process)
            continue;
        if (p->job_rank == mark->rank)
            return p->job_rank;
        if (found == ATT_CATALOG_NONE)
            found = p->job_rank;
    }
    return found;
}

void att_chrome_mark(att_chrome_document_t *d, const att_trace_mark_t *mark)
{
    uint32_t rank = att_chrome_mark_rank(d->catalog, mark);
    if (rank == ATT_CATALOG_NONE)
        return;
    place_fields(d, "i", rank, 0, mark->time_ns);
    att_out_literal(d->out, ",\"s\":\"t\",\"cat\":\"iteration\",\"name\":\"iteration ");
    att_out_u64(d->out, mark->iteration);
    att_out_literal(d->out, "\",\"args\":{\"iteration\":");
    att_out_u64(d->out, mark->iteration);
    att_out_literal(d->out, "}}");
}

void att_chrome_counter(att_chrome_document_t *d, const att_digest_point_t *point)
{
    place_fields(d, "C", ATT_CHROME_ATTUNE, 0, point->at_ns);
    att_out_literal(d->out, ",\"name\":\"bus bandwidth ");
    att_out_hex(d->out, d->catalog->groups[point->group].hash);
    att_out_literal(d->out, " (GB/s)\",\"args\":{\"GB/s\":");
    att_out_real(d->out, point->bus_gbs);
    att_out_literal(d->out, "}}");
}

void att_chrome_counted(att_chrome_document_t *d, const att_chrome_counted_t *counted)
{
    char name[256];
    snprintf(name, sizeof name, "node %u %s", counted->node, counted->name);
    place_fields(d, "C", ATT_CHROME_ATTUNE, 0, counted->at_ns);
    field_text(d->out, "name", name);
    att_out_literal(d->out, ",\"args\":{\"value\":");
    att_out_real(d->out, counted->value);
    att_out_literal(d->out, "}}");
}

void att_chrome_part(att_chrome_document_t *d, const att_chrome_part_t *part)
{
    place_fields(d, "X", ATT_CHROME_ATTUNE, 0, part->from_ns);
    att_out_literal(d->out, ",\"dur\":");
    att_out_us(d->out, part->to_ns - part->from_ns);
    att_out_literal(d->out, ",\"cat\":\"part\"");
    field_text(d->out, "name", part->name);
    att_out_literal(d->out, ",\"args\":{\"events\":");
    att_out_u64(d->out, part->events);
    field_u64(d->out, "bytes", part->bytes);
    att_out_literal(d->out, "}}");
}
