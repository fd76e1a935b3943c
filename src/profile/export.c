#include "profile/export.h"

#include "base/bandwidth.h"
#include "base/names.h"
#include "base/one_line.h"
#include "profile/kineto.h"

static const char *in_force(const att_export_t *x, const att_trace_event_t *e)
{
    bool last = true;
    const att_setting_t *setting = att_trace_setting(x->trace, e, &last);
    if (setting == NULL)
        return e->txn == 0 ? "default" : "unknown";
    if (!last)
        return "trial";
    return att_setting_is_keep(*setting) ? "default" : "tuned";
}

void att_export_begin(const att_export_t *x, att_out_t *out)
{
    const att_trace_facts_t *facts = att_trace_facts(x->trace);
    if (x->format == ATT_EXPORT_INSPECTOR)
        return;
    if (x->format == ATT_EXPORT_CSV) {
        att_out_literal(out, "# attune " ATTUNE_VERSION " trace, version 1, of ");
        char name[ATT_ONE_LINE];
        att_out_text(out, att_one_line(x->run, name, sizeof name));
        att_out_literal(out, "; times in microseconds; time 0 is unix ns ");
        att_out_i64(out, facts->origin_unix_ns);
        att_out_literal(
            out, "\nstart_us,duration_us,rank,node,communicator,group_rank,group_size,collective,"
                 "bytes,datatype,call,nccl_seq,algorithm,protocol,channels,threads,chunk_bytes,"
                 "list,in_force,clock_uncertainty_us\n");
        return;
    }
    att_out_literal(out, "{\"version\":1,\"attune\":\"" ATTUNE_VERSION
                         "\",\"what\":\"calls\",\"units\":\"microseconds, bytes\",\"run\":");
    att_out_string(out, x->run);
    att_out_literal(out, ",\"origin_unix_ns\":");
    att_out_i64(out, facts->origin_unix_ns);
    att_out_literal(out, ",\"lost\":");
    att_out_u64(out, facts->ring_dropped + facts->writer_dropped);
    att_out_literal(out, "}\n");
}

static void csv_line(const att_export_t *x, const att_trace_event_t *e, att_out_t *out)
{
    const att_catalog_t *c = att_trace_catalog(x->trace);
    const att_catalog_member_t *m = &c->members[e->member];
    const att_catalog_task_t *t = &c->tasks[e->task];
    const att_catalog_group_t *g = &c->groups[t->group];
    att_out_us(out, e->start_ns - x->origin_ns);
    att_out_literal(out, ",");
    att_out_us(out, e->stop_ns - e->start_ns);
    uint64_t first[] = {c->places[m->place].job_rank, c->nodes[m->node].agent};
    for (int i = 0; i < 2; i++) {
        att_out_literal(out, ",");
        att_out_u64(out, first[i]);
    }
    att_out_literal(out, ",");
    att_out_hex(out, g->hash);
    att_out_literal(out, ",");
    att_out_u64(out, m->rank);
    att_out_literal(out, ",");
    att_out_u64(out, g->ranks);
    att_out_literal(out, ",");
    att_out_text(out, att_collective_name((int)t->collective));
    att_out_literal(out, ",");
    att_out_u64(out, t->bytes);
    att_out_literal(out, ",");
    att_out_text(out, att_kineto_dtype(e->datatype));
    att_out_literal(out, ",");
    att_out_u64(out, e->call);
    att_out_literal(out, ",");
    att_out_u64(out, e->nccl_seq);
    att_out_literal(out, ",");
    att_out_text(out, att_algorithm_name(e->algorithm));
    att_out_literal(out, ",");
    att_out_text(out, att_protocol_name(e->protocol));
    uint64_t rest[] = {e->channels, e->threads, e->chunk_bytes, e->txn};
    for (int i = 0; i < 4; i++) {
        att_out_literal(out, ",");
        att_out_u64(out, rest[i]);
    }
    att_out_literal(out, ",");
    att_out_text(out, in_force(x, e));
    att_out_literal(out, ",");
    att_out_us(out, e->uncertainty_ns);
    att_out_literal(out, "\n");
}

static void key(att_out_t *out, const char *name)
{
    att_out_literal(out, ",\"");
    att_out_text(out, name);
    att_out_literal(out, "\":");
}

static void key_u64(att_out_t *out, const char *name, uint64_t value)
{
    key(out, name);
    att_out_u64(out, value);
}

static void key_word(att_out_t *out, const char *name, const char *word)
{
    key(out, name);
    att_out_literal(out, "\"");
    att_out_text(out, word);
    att_out_literal(out, "\"");
}

static void json_line(const att_export_t *x, const att_trace_event_t *e, att_out_t *out)
{
    const att_catalog_t *c = att_trace_catalog(x->trace);
    const att_catalog_member_t *m = &c->members[e->member];
    const att_catalog_task_t *t = &c->tasks[e->task];
    const att_catalog_group_t *g = &c->groups[t->group];
    att_out_literal(out, "{\"start_us\":");
    att_out_us(out, e->start_ns - x->origin_ns);
    key(out, "duration_us");
    att_out_us(out, e->stop_ns - e->start_ns);
    key_u64(out, "rank", c->places[m->place].job_rank);
    key_u64(out, "node", c->nodes[m->node].agent);
    att_out_literal(out, ",\"communicator\":\"");
    att_out_hex(out, g->hash);
    att_out_literal(out, "\"");
    key_u64(out, "group_rank", m->rank);
    key_u64(out, "group_size", g->ranks);
    key_word(out, "collective", att_collective_name((int)t->collective));
    key_u64(out, "bytes", t->bytes);
    key_word(out, "datatype", att_kineto_dtype(e->datatype));
    key_u64(out, "call", e->call);
    key_u64(out, "nccl_seq", e->nccl_seq);
    key_word(out, "algorithm", att_algorithm_name(e->algorithm));
    key_word(out, "protocol", att_protocol_name(e->protocol));
    key_u64(out, "channels", e->channels);
    key_u64(out, "threads", e->threads);
    key_u64(out, "chunk_bytes", e->chunk_bytes);
    key_u64(out, "list", e->txn);
    key_word(out, "in_force", in_force(x, e));
    key(out, "clock_uncertainty_us");
    att_out_us(out, e->uncertainty_ns);
    att_out_literal(out, "}\n");
}

/* plugins/profiler/inspector/inspector_json.cc of NCCL 2.30: the fields and their order. */
static void inspector_line(const att_export_t *x, const att_trace_event_t *e, att_out_t *out)
{
    const att_catalog_t *c = att_trace_catalog(x->trace);
    const att_catalog_member_t *m = &c->members[e->member];
    const att_catalog_task_t *t = &c->tasks[e->task];
    const att_catalog_group_t *g = &c->groups[t->group];
    const att_trace_facts_t *facts = att_trace_facts(x->trace);
    double us = (double)(e->stop_ns - e->start_ns) * 1e-3;
    double gbs = att_algorithm_gbs(t->bytes, us);
    att_out_literal(out, "{\"header\":{\"id\":\"");
    att_out_hex(out, g->hash);
    att_out_literal(out, "\",\"comm_name\":\"\"");
    key_u64(out, "rank", m->rank);
    key_u64(out, "n_ranks", g->ranks);
    key_u64(out, "nnodes", g->nodes);
    att_out_literal(out, "},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
                         "\"git_rev\":\"attune-" ATTUNE_VERSION
                         "\",\"rec_mechanism\":\"nccl_profiler_interface\"");
    int64_t unix_ns = facts->origin_unix_ns != 0
                          ? facts->origin_unix_ns + (e->stop_ns - facts->first_ns)
                          : e->stop_ns;
    key_u64(out, "dump_timestamp_us", (uint64_t)(unix_ns / 1000));
    key(out, "hostname");
    att_out_string(out, c->nodes[m->node].host);
    key_u64(out, "pid", (uint64_t)c->places[m->place].pid);
    att_out_literal(out, "},\"coll_perf\":{\"coll\":\"");
    att_out_text(out, att_kineto_function((int)t->collective));
    att_out_literal(out, "\"");
    key_u64(out, "coll_sn", e->nccl_seq);
    key_u64(out, "coll_msg_size_bytes", t->bytes);
    key_u64(out, "coll_exec_time_us", (uint64_t)(us + 0.5));
    key_word(out, "coll_timing_source", "kernel_gpu");
    key(out, "coll_algobw_gbs");
    att_out_real(out, gbs);
    key(out, "coll_busbw_gbs");
    att_out_real(out, gbs * att_bus_factor((int)t->collective, (int)g->ranks));
    att_out_literal(out, "}}\n");
}

void att_export_events(const att_export_t *x, const att_trace_event_t *events, size_t count,
                       att_out_t *out)
{
    for (size_t i = 0; i < count; i++) {
        if (x->format == ATT_EXPORT_CSV)
            csv_line(x, &events[i], out);
        else if (x->format == ATT_EXPORT_JSON_LINES)
            json_line(x, &events[i], out);
        else
            inspector_line(x, &events[i], out);
    }
}
