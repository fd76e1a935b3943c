/*
 * bench_scale: how everything grows in agents, groups and ranks: the sidecar's code for groups over
 * several nodes with up to 16384 agents and 4096 groups, in virtual time (world.h).
 *
 * Costs of messages are those that bench/fence and bench/agent measured on two cores (shared
 * memory); the way between agents is that of an ordinary network. FULL=1 in the environment goes to
 * 16384 agents, else 1024. Usage: bench_scale PLUGIN-PATH [JSON [DATA]]
 */
#include "world.h"

#include "search/strategy_host.h"

#include <jansson.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24 };

/* A switch over two agents takes 12.2 us with four messages one after the other on its path
 * (PREPARE, VOTE, OUTCOME, RECORDED): 3 us a message, of which we take one for each end; a record
 * takes 0.13 us (1 M/s at 13 % of a core). The way: 2 us and 10 GB/s. */
static const sim_costs_t costs = {.send_ns = 1000,
                                  .receive_ns = 1000,
                                  .way_ns = 2000,
                                  .byte_ns = 0.1,
                                  .record_ns = 130,
                                  .look_ns = 500};

typedef struct quantity {
    const char *name, *unit;
    size_t offset;
} quantity_t;

#define Q(field, unit)                                                                             \
    {                                                                                              \
#field, unit, offsetof(sim_result_t, field)                                                \
    }
static const quantity_t quantities[] = {
    Q(placed_ms, "ms"),
    Q(settle_ms, "ms"),
    Q(settle_median_ms, "ms"),
    Q(world_settle_ms, "ms"),
    Q(switch_us, "us"),
    Q(commit_us, "us"),
    Q(messages, ""),
    Q(bytes, "bytes"),
    Q(agent_messages, ""),
    Q(leader_messages, ""),
    Q(leader_load, "cores"),
    Q(keeper_messages, ""),
    Q(keeper_load, "cores"),
    Q(busiest_load, "cores"),
    Q(owner_messages, ""),
    Q(switches, ""),
    Q(calls, ""),
    Q(waited, "calls"),
    Q(agent_kib, "KiB"),
    Q(host_s, "s"),
};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

static double value_of(const sim_result_t *r, int q)
{
    return *(const double *)(const void *)((const char *)r + quantities[q].offset);
}

/* The exponent p of c x^p, least squares in logarithms; values of 0 are left out. */
static double exponent(const sim_result_t *rows, int count, int q,
                       double (*x_of)(const sim_result_t *))
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < count; i++) {
        double y = value_of(&rows[i], q);
        if (y <= 0)
            continue;
        double x = log(x_of(&rows[i]));
        n++;
        sx += x;
        sy += log(y);
        sxx += x * x;
        sxy += x * log(y);
    }
    double width = n * sxx - sx * sx;
    return n > 1 && width > 0 ? (n * sxy - sx * sy) / width : 0;
}

static double agents_of(const sim_result_t *r)
{
    return r->agents;
}
static double groups_of(const sim_result_t *r)
{
    return r->groups;
}
static double ranks_of(const sim_result_t *r)
{
    return r->ranks;
}

typedef struct sweep {
    const char *name;
    double (*x_of)(const sim_result_t *);
    sim_result_t rows[MOST];
    int count;
} sweep_t;

static int add(sweep_t *sweep, uint32_t agents, int lines, uint32_t blocks, uint32_t ranks,
               const att_config_t *config, struct att_strategy_host *host)
{
    sim_layout_t layout;
    if (sim_layout_make(agents, lines, blocks, &layout) != 0)
        return -1;
    sim_result_t *r = &sweep->rows[sweep->count++];
    int failed = sim_world_run(&layout, ranks, &costs, config, host, r);
    printf(
        "%7u %7u %6u %9.2f %10.1f %10.1f %9.1f %9.1f %11.0f %10.0f %9.4f %9.4f %9.0f %8.1f %7.1f\n",
        r->agents, r->groups, r->ranks, r->placed_ms, r->settle_ms, r->settle_median_ms,
        r->commit_us, r->switch_us, r->messages, r->leader_messages, r->leader_load, r->keeper_load,
        r->waited, r->agent_kib, r->host_s);
    fflush(stdout);
    sim_layout_free(&layout);
    return failed;
}

static void print_fits(const sweep_t *s)
{
    printf("# growth in %s, exponent p of c x^p:", s->name);
    for (int q = 0; q < QUANTITIES - 1; q++)
        printf("%s %s %.2f", q > 0 ? "," : "", quantities[q].name,
               exponent(s->rows, s->count, q, s->x_of));
    printf("\n");
}

static json_t *sweep_json(const sweep_t *s)
{
    json_t *rows = json_array(), *fits = json_object();
    for (int i = 0; i < s->count; i++) {
        json_t *row = json_pack("{s:i,s:i,s:i}", "agents", (int)s->rows[i].agents, "groups",
                                (int)s->rows[i].groups, "ranks_per_agent", (int)s->rows[i].ranks);
        for (int q = 0; q < QUANTITIES; q++)
            json_object_set_new(row, quantities[q].name, json_real(value_of(&s->rows[i], q)));
        json_array_append_new(rows, row);
    }
    for (int q = 0; q < QUANTITIES - 1; q++)
        json_object_set_new(fits, quantities[q].name,
                            json_real(exponent(s->rows, s->count, q, s->x_of)));
    return json_pack("{s:s,s:o,s:o}", "in", s->name, "rows", rows, "exponents", fits);
}

static int write_json(const char *path, const sweep_t *sweeps, int count)
{
    json_t *list = json_array(), *units = json_object();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, sweep_json(&sweeps[i]));
    for (int q = 0; q < QUANTITIES; q++)
        json_object_set_new(units, quantities[q].name, json_string(quantities[q].unit));
    json_t *root =
        json_pack("{s:i,s:s,s:{s:f,s:f,s:f,s:f,s:f,s:f},s:o,s:o}", "version", 1, "attune",
                  ATTUNE_VERSION, "costs_ns", "send", costs.send_ns, "receive", costs.receive_ns,
                  "way", costs.way_ns, "byte", costs.byte_ns, "record", costs.record_ns, "look",
                  costs.look_ns, "units", units, "sweeps", list);
    int failed = root == NULL || json_dump_file(root, path, JSON_INDENT(1)) != 0;
    if (failed)
        perror(path);
    json_decref(root);
    return failed;
}

/* A table for gnuplot (plot.gp): a block a sweep. */
static int write_data(const char *path, const sweep_t *sweeps, int count)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    for (int s = 0; s < count; s++) {
        fprintf(file, "# %s: agents groups ranks", sweeps[s].name);
        for (int q = 0; q < QUANTITIES; q++)
            fprintf(file, " %s", quantities[q].name);
        for (int i = 0; i < sweeps[s].count; i++) {
            const sim_result_t *r = &sweeps[s].rows[i];
            fprintf(file, "\n%u %u %u", r->agents, r->groups, r->ranks);
            for (int q = 0; q < QUANTITIES; q++)
                fprintf(file, " %g", value_of(r, q));
        }
        fprintf(file, "\n\n\n");
    }
    return fclose(file);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: bench_scale PLUGIN-PATH [JSON [DATA]]\n");
        return ATT_EUSAGE;
    }
    att_config_t config = {0};
    att_error_t error = {""};
    struct att_strategy_host *host;
    /* Windows of calls are large and mostly untouched: always from fresh pages, which cost nothing
     * until they are used, also after earlier worlds were freed. */
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    setenv("ATTUNE_STRATEGY", "random:trials=4", 1);
    setenv("ATTUNE_SAMPLES", "2", 1);
    setenv("ATTUNE_MAX_COST", "0", 1);
    setenv("ATTUNE_MIN_BYTES", "0", 1);
    setenv("ATTUNE_LOG", "error", 1);
    if (att_config_init(&config, &error) != ATT_OK ||
        att_strategy_host_create(argv[1], ATT_HOST_INPROCESS, 10, &host, &error) != ATT_OK) {
        fprintf(stderr, "bench_scale: %s\n", error.text);
        return ATT_EFAIL;
    }
    uint32_t most = getenv("FULL") != NULL ? 16384 : 1024;
    const char *limit = getenv("ATTUNE_BENCH_AGENTS");
    if (limit != NULL)
        most = (uint32_t)atoi(limit);
    static sweep_t sweeps[] = {{.name = "agents", .x_of = agents_of},
                               {.name = "groups", .x_of = groups_of},
                               {.name = "ranks", .x_of = ranks_of},
                               {.name = "agents (three axes)", .x_of = agents_of}};
    enum { SWEEPS = sizeof sweeps / sizeof *sweeps };
    printf("# attune %s, the sidecar's code for groups over several nodes in virtual time\n"
           "%7s %7s %6s %9s %10s %10s %9s %9s %11s %10s %9s %9s %9s %8s %7s\n",
           ATTUNE_VERSION, "agents", "groups", "ranks", "placed", "settled", "median", "commit",
           "switch", "messages", "leader", "leader", "keeper", "waited", "memory", "run");
    printf("%7s %7s %6s %9s %10s %10s %9s %9s %11s %10s %9s %9s %9s %8s %7s\n", "", "", "/agent",
           "(ms)", "(ms)", "(ms)", "(us)", "(us)", "(all)", "(messages)", "(cores)", "(cores)",
           "(calls)", "(KiB)", "(s)");
    int failed = 0;
    for (uint32_t agents = 16; agents <= most && !failed; agents *= 4)
        failed = add(&sweeps[0], agents, 0, agents / 4 - 1, 1, &config, host);
    for (uint32_t agents = 8; agents <= most / 8 && agents <= 512 && !failed; agents *= 4)
        failed = add(&sweeps[3], agents, 1, 0, 1, &config, host);
    for (uint32_t blocks = 1; blocks <= 64 && !failed; blocks *= 2)
        failed = add(&sweeps[1], 256, 0, blocks, 1, &config, host);
    for (uint32_t ranks = 1; ranks <= 8 && !failed; ranks *= 2)
        failed = add(&sweeps[2], 64, 0, 8, ranks, &config, host);
    for (int s = 0; s < SWEEPS && !failed; s++)
        print_fits(&sweeps[s]);
    if (!failed && argc > 2)
        failed = write_json(argv[2], sweeps, SWEEPS);
    if (!failed && argc > 3)
        failed = write_data(argv[3], sweeps, SWEEPS);
    att_strategy_host_destroy(host);
    att_config_free(&config);
    return failed ? ATT_EFAIL : ATT_OK;
}
