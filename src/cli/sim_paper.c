#include "cli/sim_paper.h"

#include "base/names.h"
#include "base/data_file.h"
#include "cli/json_file.h"
#include "cli/paper_rows.h"
#include "cli/sim_report.h"
#include "cli/sim_suite.h"
#include "sim/crew.h"
#include "sim/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAPER_BYTES_MAX (1u << 20)
#define POINTS_MOST     1024
#define SEEDS           5
#define SEARCH          "coordinate_descent:variant=code"
#define AFNFA           "afnfa"
#define SEARCH_MOST     200000 /* calls */

/* One task of one row that is simulated. */
typedef struct att_paper_point {
    uint32_t row;
    char surface[128];
    int collective;
    uint64_t bytes;
    char load[32];
} att_paper_point_t;

typedef struct att_paper_result {
    double native_us, tuned_us, stock_us;
    double search, afnfa; /* speedups; 0: not run */
} att_paper_result_t;

typedef struct att_paper {
    const att_sim_options_t *options;
    struct att_strategy_host *host;
    int has_afnfa;
    json_t *document, *rows;
    uint32_t count;
    att_paper_point_t points[POINTS_MOST];
    att_paper_result_t results[POINTS_MOST];
} att_paper_t;

/* ---- which tasks a row means ---- */

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

static double number_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int add_point(att_paper_t *paper, uint32_t row, const char *surface, int collective,
                     uint64_t bytes, const char *load, att_error_t *error)
{
    if (paper->count == POINTS_MOST)
        return att_fail(error, ATT_EFULL, "paper.json asks for more than %d points", POINTS_MOST);
    att_paper_point_t *p = &paper->points[paper->count++];
    p->row = row;
    p->collective = collective;
    p->bytes = bytes;
    snprintf(p->surface, sizeof p->surface, "%s", surface);
    snprintf(p->load, sizeof p->load, "%s", load);
    return ATT_OK;
}

/* The sizes of a row on one surface; none when the surface lacks the collective or the load. */
static int add_surface(att_paper_t *paper, uint32_t number, const char *name, att_error_t *error)
{
    const json_t *row = json_array_get(paper->rows, number);
    struct att_surface *surface;
    att_error_t why = {""};
    int rc = att_surface_open(name, &surface, &why);
    if (rc == -ATT_ENOENT)
        return ATT_OK; /* the row says that it was not simulated */
    if (rc != ATT_OK)
        return att_fail(error, (att_status_t)-rc, "%s", why.text);
    int collective = att_collective_parse(text_of(row, "collective"));
    if (collective < 0) /* "all" */
        collective = att_surface_info(surface)->tasks[0].collective;
    const char *load = text_of(row, "load");
    bool there =
        att_surface_pairs(surface, collective) != 0 && att_surface_load_index(surface, load) >= 0;
    att_surface_close(surface);
    if (!there)
        return ATT_OK;
    double bytes = number_of(row, "bytes");
    if (bytes > 0)
        return add_point(paper, number, name, collective, (uint64_t)bytes, load, error);
    double last = number_of(row, "bytes_to");
    for (double at = number_of(row, "bytes_from"); rc == ATT_OK && at >= 1 && at <= last; at *= 2)
        rc = add_point(paper, number, name, collective, (uint64_t)at, load, error);
    return rc;
}

/* A row without a surface is over all of the paper's setups that have its collective. */
static bool belongs(const char *surface, const char *collective)
{
    if (strncmp(surface, "a40-", 4) != 0)
        return false;
    size_t length = strlen(surface), ending = strlen(collective);
    return strcmp(collective, "all") == 0 ||
           (length > ending && strcmp(surface + length - ending, collective) == 0);
}

static int add_row(att_paper_t *paper, uint32_t number, const att_sim_suite_t *suite,
                   att_error_t *error)
{
    const json_t *row = json_array_get(paper->rows, number);
    const char *surface = text_of(row, "surface");
    if (strcmp(text_of(row, "kind"), "step") == 0)
        return ATT_OK;
    if (surface[0] != '\0')
        return add_surface(paper, number, surface, error);
    int rc = ATT_OK;
    for (uint32_t i = 0; rc == ATT_OK && i < suite->count; i++) {
        const char *name = suite->entries[i].surface;
        if (belongs(name, text_of(row, "collective")) &&
            (i == 0 || strcmp(suite->entries[i - 1].surface, name) != 0))
            rc = add_surface(paper, number, name, error);
    }
    return rc;
}

/* ---- simulating one task ---- */

/* Median speedup over NCCL's choice, under `load`, of where a strategy ends. */
static int search(const att_paper_t *paper, const char *surface, struct att_sim_task *task,
                  const att_sim_run_config_t *run, int load, double native_us, double *speedup,
                  att_error_t *error)
{
    double speedups[SEEDS];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        att_sim_outcome_t o;
        int rc = att_sim_run(task, run, seed, paper->host, &o, error);
        if (rc != ATT_OK)
            return rc;
        if (o.status != ATT_OK)
            return att_fail(error, ATT_EFAIL, "%.128s, seed %u: strategy %s failed: %.200s",
                            surface, (unsigned)seed, run->strategy, o.why);
        speedups[seed - 1] = native_us / att_sim_task_collective_us(task, o.setting, load);
    }
    *speedup = att_quantile(speedups, SEEDS, 0.5);
    return ATT_OK;
}

/* The searches of one task with all six knobs. */
static int simulate_searches(const att_paper_t *paper, const att_paper_point_t *p,
                             const struct att_surface *surface, struct att_sim_task *task,
                             att_paper_result_t *result, att_error_t *error)
{
    const att_sim_options_t *o = paper->options;
    const att_surface_info_t *info = att_surface_info(surface);
    int load = att_surface_load_index(surface, p->load);
    att_sim_run_config_t run = {.strategy = SEARCH,
                                .noise = info->noise,
                                .budget = SEARCH_MOST,
                                .until_stop = 1,
                                .lead = o->lead,
                                .samples = o->samples,
                                .discard = o->discard,
                                .max_slowdown = o->max_slowdown};
    int rc = att_sim_conditions_parse(surface, p->load, &run.conditions, error);
    if (rc == ATT_OK)
        rc = search(paper, p->surface, task, &run, load, result->native_us, &result->search, error);
    /* Trained before the job, on the idle machine. */
    run.strategy = AFNFA;
    if (rc == ATT_OK && paper->has_afnfa)
        rc = att_sim_conditions_parse(surface, info->loads[0], &run.conditions, error);
    if (rc == ATT_OK && paper->has_afnfa)
        rc = search(paper, p->surface, task, &run, load, result->native_us, &result->afnfa, error);
    return rc;
}

/* The optimum over the knobs of `config`. */
static int find_optimum(const struct att_surface *surface, const att_paper_point_t *p,
                        const att_sim_task_config_t *config, struct att_sim_task **task, double *us,
                        double *native_us, att_error_t *error)
{
    att_sim_optimum_t optimum;
    int load = att_surface_load_index(surface, p->load);
    int rc = att_sim_task_create(surface, config, task, error);
    if (rc == ATT_OK)
        rc = att_sim_task_optimum(*task, load, &optimum, error);
    if (rc == ATT_OK) {
        *us = optimum.us;
        *native_us = att_sim_task_collective_us(*task, ATT_SETTING_KEEP, load);
    }
    return rc;
}

static int simulate(void *context, uint32_t number, void *out, att_error_t *error)
{
    const att_paper_t *paper = context;
    const att_paper_point_t *p = &paper->points[number];
    att_paper_result_t *r = out;
    struct att_surface *surface;
    struct att_sim_task *stock = NULL, *six = NULL;
    int rc = att_surface_open(p->surface, &surface, error);
    if (rc != ATT_OK)
        return rc;
    att_sim_task_config_t config = {.collective = p->collective, .bytes = p->bytes};
    rc = find_optimum(surface, p, &config, &stock, &r->stock_us, &r->native_us, error);
    config.six_knobs = 1;
    if (rc == ATT_OK)
        rc = find_optimum(surface, p, &config, &six, &r->tuned_us, &r->native_us, error);
    if (rc == ATT_OK)
        rc = simulate_searches(paper, p, surface, six, r, error);
    att_sim_task_destroy(stock);
    att_sim_task_destroy(six);
    att_surface_close(surface);
    return rc;
}

/* A job is all searches of a point, and what ends it does not say in which of them it was. */
static void name_point(void *context, uint32_t number, char *text, size_t size)
{
    const att_paper_t *paper = context;
    const att_paper_point_t *p = &paper->points[number];
    snprintf(text, size, "%.128s under load %.32s, seeds 1 to %d: strategy " SEARCH "%s",
             p->surface, p->load, SEEDS, paper->has_afnfa ? " or " AFNFA : "");
}

/* ---- the table ---- */

typedef struct att_paper_mean {
    uint32_t count;
    double nccl_gbs, tuned_gbs;  /* of a single task */
    double tuned, low, high;     /* speedups: geometric mean and range */
    double stock, search, afnfa; /* speedups: geometric means */
} att_paper_mean_t;

static att_paper_mean_t mean_of(const att_paper_t *paper, uint32_t row)
{
    att_paper_mean_t m = {.low = INFINITY};
    for (uint32_t i = 0; i < paper->count; i++) {
        const att_paper_result_t *r = &paper->results[i];
        if (paper->points[i].row != row)
            continue;
        double speedup = r->native_us / r->tuned_us;
        m.count++;
        m.nccl_gbs = (double)paper->points[i].bytes / r->native_us * 1e-3;
        m.tuned_gbs = (double)paper->points[i].bytes / r->tuned_us * 1e-3;
        m.low = speedup < m.low ? speedup : m.low;
        m.high = speedup > m.high ? speedup : m.high;
        m.tuned += log(speedup);
        m.stock += log(r->native_us / r->stock_us);
        m.search += log(r->search);
        m.afnfa += r->afnfa > 0 ? log(r->afnfa) : NAN;
    }
    if (m.count > 0) {
        m.tuned = exp(m.tuned / m.count);
        m.stock = exp(m.stock / m.count);
        m.search = exp(m.search / m.count);
        m.afnfa = exp(m.afnfa / m.count);
    }
    return m;
}

/* A published and a simulated number with their difference; "-" where there is none. */
static void print_pair(double published, double simulated, const char *unit)
{
    char text[2][16] = {"-", "-"}, difference[16] = "";
    if (isfinite(published))
        snprintf(text[0], sizeof text[0], "%.2f%s", published, unit);
    if (isfinite(simulated) && simulated > 0)
        snprintf(text[1], sizeof text[1], "%.2f%s", simulated, unit);
    if (isfinite(published) && isfinite(simulated) && simulated > 0)
        snprintf(difference, sizeof difference, "%+.1f%%", 100 * (simulated / published - 1));
    printf(" %7s %7s %7s ", text[0], text[1], difference);
}

static void print_row(const json_t *row, const att_paper_mean_t *m)
{
    char bytes[24] = "", last[24];
    if (number_of(row, "bytes") > 0) {
        att_bytes_text((uint64_t)number_of(row, "bytes"), bytes, sizeof bytes);
    } else if (number_of(row, "bytes_from") > 0) {
        att_bytes_text((uint64_t)number_of(row, "bytes_from"), bytes, sizeof bytes);
        att_bytes_text((uint64_t)number_of(row, "bytes_to"), last, sizeof last);
        snprintf(bytes + strlen(bytes), sizeof bytes - strlen(bytes), "-%.10s", last);
    }
    bool one = m->count == 1;
    printf("%-20.20s %-21.21s %-13.13s %-8s %-6s", text_of(row, "source"), text_of(row, "setup"),
           text_of(row, "collective"), bytes, text_of(row, "load"));
    print_pair(number_of(row, "nccl_gbs"), one ? m->nccl_gbs : NAN, "");
    print_pair(number_of(row, "autoccl_gbs"), one ? m->tuned_gbs : NAN, "");
    print_pair(number_of(row, "autoccl_speedup"), m->count > 0 ? m->tuned : NAN, "x");
    print_pair(number_of(row, "afnfa_speedup"), m->count > 0 ? m->afnfa : NAN, "x");
    double low = number_of(row, "autoccl_speedup_low"),
           high = number_of(row, "autoccl_speedup_high");
    bool step = strcmp(text_of(row, "kind"), "step") == 0;
    if (m->count == 0)
        printf(" not simulated: %s%s", step ? text_of(row, "note") : "no surface has it: ",
               step ? "" : text_of(row, "surface"));
    else
        printf(" stock knobs %.2fx, search %.2fx", m->stock, m->search);
    if (m->count > 1)
        printf("; sizes %.2f to %.2fx", m->low, m->high);
    if (m->count > 0 && (isfinite(low) || isfinite(high)))
        printf(" (published %.2f to %.2fx)", isfinite(low) ? low : 1, high);
    printf("\n");
}

static json_t *number_json(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

static json_t *row_json(const json_t *row, const att_paper_mean_t *m)
{
    bool one = m->count == 1;
    double published = number_of(row, "autoccl_speedup");
    return json_pack(
        "{s:O,s:{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o},s:o}", "published", row, "simulated", "tasks",
        (int)m->count, "nccl_gbs", number_json(one ? m->nccl_gbs : NAN), "tuned_gbs",
        number_json(one ? m->tuned_gbs : NAN), "tuned_speedup",
        number_json(m->count > 0 ? m->tuned : NAN), "tuned_speedup_low",
        number_json(m->count > 0 ? m->low : NAN), "tuned_speedup_high",
        number_json(m->count > 0 ? m->high : NAN), "stock_speedup",
        number_json(m->count > 0 ? m->stock : NAN), "search_speedup",
        number_json(m->count > 0 ? m->search : NAN), "afnfa_speedup",
        number_json(m->count > 0 ? m->afnfa : NAN), "speedup_difference",
        m->count > 0 && isfinite(published) ? json_real(m->tuned / published - 1) : json_null());
}

static int report(const att_paper_t *paper, att_error_t *error)
{
    json_t *rows = json_array();
    printf("%s\n", text_of(paper->document, "source"));
    printf(
        "published, simulated, difference; bandwidth in GB/s (10^9 bytes of algorithm bandwidth), "
        "speedup over NCCL.\n\"tuned\" is the fastest of the surface's six knobs, \"search\" where "
        "%s ends%s.\n\n",
        SEARCH,
        paper->has_afnfa ? "; AFNFA is trained on the idle machine"
                         : "; the strategy afnfa is not there");
    printf("%-20s %-21s %-13s %-8s %-6s %-24s %-24s %-24s %-24s\n", "source", "setup", "collective",
           "bytes", "load", " NCCL GB/s", " AutoCCL, tuned GB/s", " AutoCCL, tuned speedup",
           " AFNFA speedup");
    for (uint32_t i = 0; i < json_array_size(paper->rows); i++) {
        const json_t *row = json_array_get(paper->rows, i);
        att_paper_mean_t mean = mean_of(paper, i);
        print_row(row, &mean);
        json_t *json = row_json(row, &mean);
        if (json == NULL || json_array_append_new(rows, json) != 0) {
            json_decref(rows);
            return att_fail(error, ATT_ENOMEM, "no memory for the paper's rows");
        }
    }
    if (paper->options->json == NULL) {
        json_decref(rows);
        return ATT_OK;
    }
    return att_json_replace(paper->options->json,
                            json_pack("{s:i,s:s,s:O,s:o}", "version", 1, "search", SEARCH, "units",
                                      json_object_get(paper->document, "units"), "rows", rows),
                            error);
}

static int read_rows(att_paper_t *paper, att_error_t *error)
{
    char path[PATH_MAX];
    int rc = att_data_find("paper.json", path, NULL, error);
    if (rc == ATT_OK)
        rc = att_json_read_checked(path, PAPER_BYTES_MAX, att_paper_rows_parse, &paper->document,
                                   error);
    if (rc == ATT_OK)
        paper->rows = json_object_get(paper->document, "rows");
    return rc;
}

int att_sim_paper(const att_sim_options_t *options, struct att_strategy_host *host,
                  att_error_t *error)
{
    att_sim_suite_t suite = {0};
    att_paper_t *paper = calloc(1, sizeof *paper);
    if (paper == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the paper's rows");
    paper->options = options;
    paper->host = host;
    paper->has_afnfa = att_strategy_host_check(host, AFNFA, NULL) == ATT_OK;
    int rc = att_strategy_host_check(host, SEARCH, error);
    if (rc == ATT_OK && options->json != NULL)
        rc = att_sim_report_try(options->json, error);
    if (rc == ATT_OK)
        rc = read_rows(paper, error);
    if (rc == ATT_OK)
        rc = att_sim_suite_read(NULL, &suite, error);
    for (uint32_t i = 0; rc == ATT_OK && i < json_array_size(paper->rows); i++)
        rc = add_row(paper, i, &suite, error);
    att_crew_t crew = {.workers = options->workers,
                       .limit_s = options->limit_s,
                       .work = simulate,
                       .context = paper,
                       .what = "simulated rows of the paper",
                       .name = name_point};
    if (rc == ATT_OK)
        rc = att_crew_run(&crew, paper->count, sizeof paper->results[0], paper->results, error);
    if (rc == ATT_OK)
        rc = report(paper, error);
    att_sim_suite_free(&suite);
    json_decref(paper->document);
    free(paper);
    return rc;
}
