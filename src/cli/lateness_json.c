#include "cli/lateness_json.h"

#include "cli/json_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *episode_json(const struct att_trace *trace, const att_lateness_group_t *g,
                            const att_straggler_episode_t *e, int64_t origin_ns)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    const att_catalog_place_t *place = &c->places[g->places[e->rank]];
    uint32_t count;
    const att_straggler_step_t *steps = att_straggler_steps(g->straggler, &count);
    json_t *object = json_pack(
        "{s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:b}", "rank", (json_int_t)place->job_rank,
        "node", (json_int_t)c->nodes[place->node].agent, "host",
        att_json_text(c->nodes[place->node].host), "group_rank", (json_int_t)g->ranks[e->rank],
        "from_step", (json_int_t)e->from, "to_step", (json_int_t)e->to, "named_steps",
        (json_int_t)e->named, "onset_s", (double)(steps[e->from].at_ns - origin_ns) * 1e-9, "end_s",
        (double)(steps[e->to].at_ns - origin_ns) * 1e-9, "lateness_us", e->lateness_ns * 1e-3,
        "wait_caused_s", e->wait_ns * 1e-9, "constant", e->constant);
    uint64_t iteration;
    if (att_lateness_iteration(trace, g->places[e->rank], steps[e->from].at_ns, &iteration))
        json_object_set_new(object, "onset_iteration", json_integer((json_int_t)iteration));
    return object;
}

static json_t *rank_json(const struct att_trace *trace, const att_lateness_group_t *g, uint32_t r)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    const att_catalog_place_t *place = &c->places[g->places[r]];
    const att_straggler_rank_t *rank = att_straggler_rank(g->straggler, r);
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f}", "rank", (json_int_t)place->job_rank,
        "node", (json_int_t)c->nodes[place->node].agent, "group_rank", (json_int_t)g->ranks[r],
        "arrived_first", (json_int_t)rank->first, "arrived_last", (json_int_t)rank->last, "named",
        (json_int_t)rank->named, "wait_caused_s", rank->wait_caused_ns * 1e-9, "waited_s",
        rank->waited_ns * 1e-9, "lateness_median_us", rank->median_ns * 1e-3, "lateness_p95_us",
        rank->high_ns * 1e-3, "calm_limit_us", rank->calm_ns * 1e-3);
}

static json_t *group_json(const struct att_trace *trace, const att_lateness_group_t *g,
                          int64_t origin_ns)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t steps = 0, episodes = 0;
    const att_straggler_episode_t *episode = NULL;
    json_t *named = json_array(), *ranks = json_array();
    if (g->straggler != NULL) {
        att_straggler_steps(g->straggler, &steps);
        episode = att_straggler_episodes(g->straggler, &episodes);
    }
    for (uint32_t i = 0; i < episodes; i++)
        json_array_append_new(named, episode_json(trace, g, &episode[i], origin_ns));
    for (uint32_t r = 0; r < g->rank_count; r++)
        json_array_append_new(ranks, rank_json(trace, g, r));
    char hash[24];
    snprintf(hash, sizeof hash, "0x%" PRIx64, c->groups[g->group].hash);
    return json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:o,s:o}", "communicator", hash, "ranks",
        (json_int_t)c->groups[g->group].ranks, "recorded_ranks", (json_int_t)g->rank_count, "steps",
        (json_int_t)steps, "records_matched", (json_int_t)g->counts.matched, "records_unmatched",
        (json_int_t)g->counts.unmatched, "records_twice", (json_int_t)g->counts.twice,
        "records_disagree", (json_int_t)g->counts.disagree, "period_us",
        g->straggler != NULL ? att_straggler_period_ns(g->straggler) * 1e-3 : 0.0,
        "clock_uncertainty_us", g->uncertainty_ns * 1e-3, "named", named, "by_rank", ranks);
}

json_t *att_lateness_json(const struct att_trace *trace, const char *run, const att_lateness_t *l,
                          int64_t origin_ns)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    att_lateness_node_t *sums = att_lateness_nodes(trace, l);
    json_t *groups = json_array(), *nodes = json_array();
    for (uint32_t g = 0; g < l->group_count; g++)
        json_array_append_new(groups, group_json(trace, &l->groups[g], origin_ns));
    for (uint32_t n = 0; sums != NULL && n < c->node_count; n++)
        json_array_append_new(
            nodes,
            json_pack("{s:I,s:o,s:I,s:I,s:f,s:f}", "node", (json_int_t)c->nodes[n].agent, "host",
                      att_json_text(c->nodes[n].host), "arrived_last", (json_int_t)sums[n].last,
                      "named", (json_int_t)sums[n].named, "wait_caused_s",
                      sums[n].wait_caused_ns * 1e-9, "waited_s", sums[n].waited_ns * 1e-9));
    free(sums);
    return json_pack("{s:i,s:s,s:s,s:o,s:o,s:o}", "version", 1, "attune", ATTUNE_VERSION, "units",
                     "us = microseconds, s = seconds since the trace began", "run",
                     att_json_text(run), "groups", groups, "nodes", nodes);
}
