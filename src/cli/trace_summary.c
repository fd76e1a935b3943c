#include "cli/trace_summary.h"

#include "base/names.h"
#include "base/one_line.h"

#include <inttypes.h>
#include <jansson.h>

typedef struct clock_facts {
    double offset_us, drift_ppm, worst_us;
} clock_facts_t;

static clock_facts_t clock_of(const att_trace_node_t *node)
{
    const att_clock_model_t *m = node->model;
    clock_facts_t facts = {.drift_ppm = att_clock_model_drift(m) * 1e6};
    if (m->count > 0)
        facts.offset_us = (double)m->points[m->count - 1].offset_ns * 1e-3;
    for (uint32_t i = 0; i < m->count; i++)
        if ((double)m->points[i].uncertainty_ns * 1e-3 > facts.worst_us)
            facts.worst_us = (double)m->points[i].uncertainty_ns * 1e-3;
    return facts;
}

static void print_text(const struct att_trace *trace, const char *run, FILE *out)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    const att_trace_facts_t *f = att_trace_facts(trace);
    char name[ATT_ONE_LINE];
    fprintf(out, "# trace of %s: %" PRIu64 " records in %u files, %.3f s%s\n",
            att_one_line(run, name, sizeof name), f->records, f->files,
            (double)(f->last_ns - f->first_ns) * 1e-9,
            f->virtual_time ? " of the modelled machine's clock" : "");
    fprintf(out,
            "# lost: %" PRIu64 " records in rings, %" PRIu64 " in writing; %" PRIu64
            " frames missing, %" PRIu64 " bytes damaged, %u files unreadable\n",
            f->ring_dropped, f->writer_dropped, f->missing_frames, f->skipped_bytes,
            f->broken_files);
    for (uint32_t n = 0; n < c->node_count; n++) {
        att_trace_node_t node;
        att_trace_node(trace, n, &node);
        clock_facts_t clock = clock_of(&node);
        fprintf(out, "node %u (%s): ", node.agent, node.host);
        if (node.model->count == 0)
            fprintf(out, "%s\n", node.calibrated ? "reference clock" : "clock NOT calibrated");
        else
            fprintf(
                out,
                "offset %.3f us, drift %.3f ppm, uncertainty %.3f us, %u points (%u not used)\n",
                clock.offset_us, clock.drift_ppm, clock.worst_us, node.model->count,
                node.model->rejected);
    }
    for (uint32_t g = 0; g < c->group_count; g++)
        fprintf(out, "communicator 0x%" PRIx64 ": %u of %u ranks recorded\n", c->groups[g].hash,
                c->groups[g].members, c->groups[g].ranks);
    for (uint32_t t = 0; t < c->task_count; t++) {
        char bytes[24];
        fprintf(out, "task %s %s of 0x%" PRIx64 "\n",
                att_collective_name((int)c->tasks[t].collective),
                att_bytes_text(c->tasks[t].bytes, bytes, sizeof bytes),
                c->groups[c->tasks[t].group].hash);
    }
}

static json_t *nodes_json(const struct att_trace *trace)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    json_t *nodes = json_array();
    for (uint32_t n = 0; n < c->node_count; n++) {
        att_trace_node_t node;
        att_trace_node(trace, n, &node);
        clock_facts_t clock = clock_of(&node);
        json_array_append_new(
            nodes, json_pack("{s:I,s:s,s:b,s:f,s:f,s:f,s:I,s:I}", "node", (json_int_t)node.agent,
                             "host", node.host, "calibrated", node.calibrated, "offset_us",
                             clock.offset_us, "drift_ppm", clock.drift_ppm, "uncertainty_us",
                             clock.worst_us, "points", (json_int_t)node.model->count,
                             "points_not_used", (json_int_t)node.model->rejected));
    }
    return nodes;
}

static json_t *groups_json(const att_catalog_t *c)
{
    json_t *groups = json_array();
    for (uint32_t g = 0; g < c->group_count; g++) {
        char hash[24];
        snprintf(hash, sizeof hash, "0x%" PRIx64, c->groups[g].hash);
        json_t *tasks = json_array();
        for (uint32_t t = 0; t < c->task_count; t++)
            if (c->tasks[t].group == g)
                json_array_append_new(tasks,
                                      json_pack("{s:s,s:I}", "collective",
                                                att_collective_name((int)c->tasks[t].collective),
                                                "bytes", (json_int_t)c->tasks[t].bytes));
        json_array_append_new(groups, json_pack("{s:s,s:I,s:I,s:o}", "communicator", hash, "ranks",
                                                (json_int_t)c->groups[g].ranks, "recorded",
                                                (json_int_t)c->groups[g].members, "tasks", tasks));
    }
    return groups;
}

int att_trace_summary(const struct att_trace *trace, const char *run, bool json, FILE *out,
                      att_error_t *error)
{
    if (!json) {
        print_text(trace, run, out);
        return ATT_OK;
    }
    const att_trace_facts_t *f = att_trace_facts(trace);
    json_t *root = json_pack(
        "{s:i,s:s,s:s,s:s,s:I,s:f,s:b,s:{s:I,s:I,s:I,s:I,s:I},s:o,s:o}", "version", 1, "attune",
        ATTUNE_VERSION, "units", "us = microseconds, s = seconds", "run", run, "records",
        (json_int_t)f->records, "span_s", (double)(f->last_ns - f->first_ns) * 1e-9, "virtual_time",
        f->virtual_time, "lost", "rings", (json_int_t)f->ring_dropped, "writing",
        (json_int_t)f->writer_dropped, "frames", (json_int_t)f->missing_frames, "bytes",
        (json_int_t)f->skipped_bytes, "files", (json_int_t)f->broken_files, "nodes",
        nodes_json(trace), "groups", groups_json(att_trace_catalog(trace)));
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(root);
    return ATT_OK;
}
