#include "cli/stragglers.h"

#include "base/log.h"
#include "base/names.h"
#include "base/one_line.h"
#include "cli/lateness_json.h"
#include "cli/refused_option.h"
#include "cli/trace_open.h"
#include "profile/out.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *run, *steps;
    att_trace_wish_t wish;
    bool json, help;
} options_t;

static void print_help(void)
{
    printf(
        "Usage: attune stragglers RUN [--json] [--steps FILE] [options]\n\n"
        "Say which ranks arrive late at the collectives of the run folder RUN, which must hold a\n"
        "trace ('attune run --trace on'). A rank is named when it arrives last by more than 3\n"
        "times the clocks' uncertainty, above its own calm steps, at least 5 %% of the time from\n"
        "step to step, and in 4 of 5 steps in a row.\n\n"
        "      --json          everything, as JSON\n"
        "      --steps FILE    a line a collective: who arrived last, lateness of every rank in\n"
        "                      order of arrival (.csv, .csv.gz; - is standard output)\n"
        "      --window A:B    seconds since the trace began; a side may be left out\n"
        "      --ranks LIST    ranks of the job, for example 0,4-7\n"
        "      --groups LIST   communicators, by the beginning of their hash\n");
}

enum { OPTION_JSON = 256, OPTION_STEPS, OPTION_WINDOW, OPTION_RANKS, OPTION_GROUPS };

static int parse(options_t *o, int argc, char **argv, att_error_t *error)
{
    static const struct option longs[] = {{"json", no_argument, NULL, OPTION_JSON},
                                          {"steps", required_argument, NULL, OPTION_STEPS},
                                          {"window", required_argument, NULL, OPTION_WINDOW},
                                          {"ranks", required_argument, NULL, OPTION_RANKS},
                                          {"groups", required_argument, NULL, OPTION_GROUPS},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (options_t){0};
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    optind = 1;
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (code) {
        case 'h':
            o->help = true;
            return ATT_OK;
        case OPTION_JSON:
            o->json = true;
            break;
        case OPTION_STEPS:
            o->steps = optarg;
            break;
        case OPTION_WINDOW:
            o->wish.window = optarg;
            break;
        case OPTION_RANKS:
            o->wish.ranks = optarg;
            break;
        case OPTION_GROUPS:
            o->wish.groups = optarg;
            break;
        default:
            return att_fail(
                error, ATT_EUSAGE,
                "%.60s is not an option%s, or lacks its value; see attune stragglers --help",
                att_refused_option(argv, name), att_refused_option_nearest(&nearest, argv, longs));
        }
    }
    if (optind + 1 != argc)
        return att_fail(error, ATT_EUSAGE,
                        optind == argc ? "no run folder; use: attune stragglers RUN"
                                       : "more than one run folder: '%.60s'",
                        optind < argc ? argv[optind + 1] : "");
    o->run = argv[optind];
    return ATT_OK;
}

static int print_json(const struct att_trace *trace, const char *run, const att_lateness_t *l,
                      int64_t origin_ns, att_error_t *error)
{
    json_t *root = att_lateness_json(trace, run, l, origin_ns);
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
    return ATT_OK;
}

/* --- text ---------------------------------------------------------------------------------------
 */

static void print_group(const struct att_trace *trace, const att_lateness_group_t *g,
                        int64_t origin_ns)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t count = 0, episodes = 0;
    printf("communicator 0x%" PRIx64 ", %u ranks: ", c->groups[g->group].hash,
           c->groups[g->group].ranks);
    if (g->straggler == NULL) {
        printf("no collective with all of its ranks (%" PRIu64 " records unmatched)\n",
               g->counts.unmatched);
        return;
    }
    const att_straggler_step_t *steps = att_straggler_steps(g->straggler, &count);
    printf("%u collectives, every %.3f ms, clocks within %.3f us; %" PRIu64
           " records unmatched, %" PRIu64 " disagree\n",
           count, att_straggler_period_ns(g->straggler) * 1e-6, g->uncertainty_ns * 1e-3,
           g->counts.unmatched + g->counts.twice, g->counts.disagree);
    const att_straggler_episode_t *e = att_straggler_episodes(g->straggler, &episodes);
    for (uint32_t i = 0; i < episodes; i++) {
        const att_catalog_place_t *place = &c->places[g->places[e[i].rank]];
        uint64_t iteration;
        printf("  LATE rank %u (node %u, %s): %.3f ms late in %u of %u collectives%s, from %.3f s",
               place->job_rank, c->nodes[place->node].agent, c->nodes[place->node].host,
               e[i].lateness_ns * 1e-6, e[i].named, e[i].to - e[i].from + 1,
               e[i].constant ? " (always)" : "",
               (double)(steps[e[i].from].at_ns - origin_ns) * 1e-9);
        if (att_lateness_iteration(trace, g->places[e[i].rank], steps[e[i].from].at_ns, &iteration))
            printf(" (iteration %" PRIu64 ")", iteration);
        printf(" to %.3f s; the others waited %.3f s\n",
               (double)(steps[e[i].to].at_ns - origin_ns) * 1e-9, e[i].wait_ns * 1e-9);
    }
    if (episodes == 0)
        printf("  nobody is late beyond the clocks' uncertainty and the ranks' calm steps\n");
    printf("  %5s %5s %7s %7s %7s %12s %12s %12s %12s\n", "rank", "node", "first", "last", "named",
           "median ms", "p95 ms", "caused s", "waited s");
    for (uint32_t r = 0; r < g->rank_count; r++) {
        const att_straggler_rank_t *rank = att_straggler_rank(g->straggler, r);
        const att_catalog_place_t *place = &c->places[g->places[r]];
        printf("  %5u %5u %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %12.6f %12.6f %12.6f %12.6f\n",
               place->job_rank, c->nodes[place->node].agent, rank->first, rank->last, rank->named,
               rank->median_ns * 1e-6, rank->high_ns * 1e-6, rank->wait_caused_ns * 1e-9,
               rank->waited_ns * 1e-9);
    }
}

static void print_text(const struct att_trace *trace, const char *run, const att_lateness_t *l,
                       int64_t origin_ns)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    char name[ATT_ONE_LINE];
    printf("# who arrives late in %s (times since the trace began; wait summed over ranks)\n",
           att_one_line(run, name, sizeof name));
    for (uint32_t g = 0; g < l->group_count; g++)
        print_group(trace, &l->groups[g], origin_ns);
    att_lateness_node_t *sums = att_lateness_nodes(trace, l);
    for (uint32_t n = 0; sums != NULL && c->node_count > 1 && n < c->node_count; n++)
        printf("node %u (%s): last %" PRIu64 " times, named %" PRIu64
               "; the others waited %.6f s for it, its ranks waited %.6f s\n",
               c->nodes[n].agent, c->nodes[n].host, sums[n].last, sums[n].named,
               sums[n].wait_caused_ns * 1e-9, sums[n].waited_ns * 1e-9);
    free(sums);
    if (l->group_count == 0)
        printf("no timed collectives\n");
}

/* --- steps --------------------------------------------------------------------------------------
 */

static int by_lateness(const void *a, const void *b, void *context)
{
    const float *row = context;
    float x = row[*(const uint32_t *)a], y = row[*(const uint32_t *)b];
    return (x > y) - (x < y);
}

static void write_step(const struct att_trace *trace, const att_lateness_group_t *g, uint32_t step,
                       int64_t origin_ns, uint32_t *order, att_out_t *out)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    uint32_t count;
    const att_straggler_step_t *s = &att_straggler_steps(g->straggler, &count)[step];
    const float *row = att_straggler_lateness(g->straggler, step);
    const att_catalog_task_t *task = &c->tasks[s->task];
    char text[160];
    for (uint32_t r = 0; r < g->rank_count; r++)
        order[r] = r;
    qsort_r(order, g->rank_count, sizeof *order, by_lateness, (void *)(uintptr_t)row);
    snprintf(text, sizeof text, "%u,%.3f,0x%" PRIx64 ",%s,%" PRIu64 ",%" PRIu64 ",%u,%.3f,%.3f,%d,",
             step, (double)(s->at_ns - origin_ns) * 1e-3, c->groups[g->group].hash,
             att_collective_name((int)task->collective), task->bytes, s->call,
             c->places[g->places[s->last]].job_rank, (double)row[s->last] * 1e-3,
             s->uncertainty_ns * 1e-3, s->named);
    att_out_text(out, text);
    for (uint32_t i = 0; i < g->rank_count; i++) {
        snprintf(text, sizeof text, "%s%u:%.3f", i > 0 ? " " : "",
                 c->places[g->places[order[i]]].job_rank, (double)row[order[i]] * 1e-3);
        att_out_text(out, text);
    }
    att_out_literal(out, "\n");
}

static int write_steps(const struct att_trace *trace, const char *path, const char *run,
                       const att_lateness_t *l, int64_t origin_ns, att_error_t *error)
{
    att_out_t *out = malloc(sizeof *out);
    if (out == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = att_out_open(out, path, error);
    if (status != ATT_OK) {
        free(out);
        return status;
    }
    att_out_literal(out, "# attune " ATTUNE_VERSION " stragglers, version 1, of ");
    char name[ATT_ONE_LINE];
    att_out_text(out, att_one_line(run, name, sizeof name));
    att_out_literal(out, "; times in microseconds; arrivals: rank:lateness in order\n"
                         "step,last_arrival_us,communicator,collective,bytes,call,last_rank,"
                         "lateness_us,clock_uncertainty_us,named,arrivals\n");
    for (uint32_t g = 0; g < l->group_count; g++) {
        uint32_t count = 0;
        uint32_t *order = malloc((l->groups[g].rank_count + 1) * sizeof *order);
        if (l->groups[g].straggler != NULL && order != NULL)
            att_straggler_steps(l->groups[g].straggler, &count);
        for (uint32_t i = 0; i < count; i++)
            write_step(trace, &l->groups[g], i, origin_ns, order, out);
        free(order);
    }
    status = att_out_close(out, error);
    free(out);
    return status;
}

static int handle(const options_t *o, att_error_t *error)
{
    struct att_trace *trace;
    att_trace_choice_t choice;
    att_lateness_t lateness;
    int status = att_trace_open_told(o->run, &trace, error);
    if (status != ATT_OK)
        return status;
    status = att_trace_choose(trace, &o->wish, &choice, error);
    if (status != ATT_OK)
        goto close_trace;
    status = att_lateness_make(trace, &choice, &lateness, error);
    if (status != ATT_OK)
        goto free_choice;
    if (o->steps != NULL)
        status = write_steps(trace, o->steps, o->run, &lateness, choice.origin_ns, error);
    if (status == ATT_OK && o->json)
        status = print_json(trace, o->run, &lateness, choice.origin_ns, error);
    else if (status == ATT_OK && (o->steps == NULL || strcmp(o->steps, "-") != 0))
        print_text(trace, o->run, &lateness, choice.origin_ns);
    att_lateness_free(&lateness);
free_choice:
    att_trace_choice_free(&choice);
close_trace:
    att_trace_close(trace);
    return status;
}

int att_stragglers_main(int argc, char **argv)
{
    options_t o;
    att_error_t error = {""};
    int status = parse(&o, argc, argv, &error);
    if (status == ATT_OK && o.help) {
        print_help();
        return 0;
    }
    if (status == ATT_OK)
        status = handle(&o, &error);
    if (status != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return -status;
}
