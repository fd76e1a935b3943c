#include "cli/sim_options.h"

#include "base/names.h"
#include "cli/refused_option.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_SURFACE = 1,
    OPTION_SUITE,
    OPTION_SUITE_FILE,
    OPTION_PAPER,
    OPTION_COLLECTIVE,
    OPTION_BYTES,
    OPTION_KNOBS,
    OPTION_STRATEGY,
    OPTION_AGAINST,
    OPTION_PLUGIN_PATH,
    OPTION_SEEDS,
    OPTION_SEED,
    OPTION_NOISE,
    OPTION_LOAD,
    OPTION_LOAD_SCHEDULE,
    OPTION_DRIFT,
    OPTION_BUDGET,
    OPTION_SAMPLES,
    OPTION_DISCARD,
    OPTION_LEAD,
    OPTION_MAX_SLOWDOWN,
    OPTION_OBJECTIVE,
    OPTION_COMPUTE_US,
    OPTION_SLOWDOWN,
    OPTION_WORKERS,
    OPTION_LIMIT,
    OPTION_JSON,
    OPTION_CSV,
    OPTION_PLOTS,
    OPTION_TRACE,
    OPTION_QUIET,
    OPTION_HELP,
    OPTIONS
};

static const struct row {
    const char *name;
    int code;
    const char *argument; /* NULL: none */
    const char *help;
} rows[] = {
    {NULL, 0, NULL, "What is searched"},
    {"surface", OPTION_SURFACE, "NAME|FILE",
     "modelled or recorded surface (JSON, T4, CSV; .gz too); may be given several times"},
    {"suite", OPTION_SUITE, NULL, "every shipped surface, as data/suite.json lists them"},
    {"suite-file", OPTION_SUITE_FILE, "FILE", "another list instead of data/suite.json"},
    {"paper", OPTION_PAPER, NULL, "AutoCCL's reported rows beside what the simulation gives"},
    {"collective", OPTION_COLLECTIVE, "WORD", "collective of the surface (default its first)"},
    {"bytes", OPTION_BYTES, "SIZE", "message bytes, K/M/G binary (default the surface's first)"},
    {"knobs", OPTION_KNOBS, "stock|six",
     "what can be changed per call on a stock NCCL (default), or transport and threads too"},
    {NULL, 0, NULL, "Who searches"},
    {"strategy", OPTION_STRATEGY, "NAME[:key=value,...]",
     "may be given several times (default: default, and coordinate descent as published)"},
    {"against", OPTION_AGAINST, "NAME[:key=value,...]",
     "compare the others with this one (default the first)"},
    {"plugin-path", OPTION_PLUGIN_PATH, "DIR[:DIR...]",
     "folders searched first for strategies; ATTUNE_PLUGIN_PATH"},
    {"seeds", OPTION_SEEDS, "N", "runs of each strategy (default 20)"},
    {"seed", OPTION_SEED, "N", "first seed (default 1)"},
    {NULL, 0, NULL, "The job"},
    {"noise", OPTION_NOISE, "X|surface",
     "relative standard deviation of a sample, 0.05 or 5% (default; at most 1), or the surface's "
     "own"},
    {"load", OPTION_LOAD, "WORD", "load beside the collective (default the surface's first)"},
    {"load-schedule", OPTION_LOAD_SCHEDULE, "0:WORD,CALL:WORD,...", "loads that come and go"},
    {"drift", OPTION_DRIFT, "X", "growth of all durations every 1,000 calls (default 0)"},
    {"budget", OPTION_BUDGET, "CALLS",
     "calls of a run (default: three times those at which coordinate descent stops)"},
    {"objective", OPTION_OBJECTIVE, "collective|step",
     "what is measured: the collective (default), or the step that it overlaps"},
    {"compute-us", OPTION_COMPUTE_US, "US", "compute of a step beside the collective"},
    {"slowdown", OPTION_SLOWDOWN, "X",
     "compute time added by each channel in use, as a fraction (default 0)"},
    {NULL, 0, NULL, "The optimizer, as in attune run"},
    {"samples", OPTION_SAMPLES, "N", "usable samples of a trial (default 5)"},
    {"discard", OPTION_DISCARD, "N", "first samples after a switch that are not used (default 1)"},
    {"lead", OPTION_LEAD, "CALLS", "calls from a decision to its fence (default 1)"},
    {"max-slowdown", OPTION_MAX_SLOWDOWN, "X", "cut trials slower than this (default 3; 0 never)"},
    {NULL, 0, NULL, "Output"},
    {"json", OPTION_JSON, "FILE", "write rows and comparisons as JSON"},
    {"csv", OPTION_CSV, "FILE", "write rows as CSV"},
    {"plots", OPTION_PLOTS, "DIR", "write SVG plots (needs gnuplot)"},
    {"trace", OPTION_TRACE, "FILE", "write every call of the first seed of each strategy as CSV"},
    {"workers", OPTION_WORKERS, "N",
     "processes (default: one a core); results do not depend on it"},
    {"limit", OPTION_LIMIT, "SECONDS", "longest time of one run (default 300)"},
    {"quiet", OPTION_QUIET, NULL, "no progress"},
    {"help", OPTION_HELP, NULL, "this text"},
};
#define ROWS (sizeof rows / sizeof rows[0])

void att_sim_options_help(FILE *out)
{
    fprintf(out,
            "Usage: attune sim --surface NAME|FILE [options]\n"
            "       attune sim --suite [options]\n"
            "       attune sim --paper [options]\n\n"
            "Run search strategies on surfaces, many seeds each, through the optimizer that a\n"
            "tuned job uses, and compare what they find and what it costs. Every call counts.\n");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].name == NULL) {
            fprintf(out, "\n%s:\n", rows[i].help);
            continue;
        }
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument != NULL ? " " : "",
                 rows[i].argument != NULL ? rows[i].argument : "");
        fprintf(out, "  %-36s %s\n", left, rows[i].help);
    }
    fprintf(out,
            "\nExit status: 0; 1 when a strategy failed, crashed, ended its process or hung in a "
            "run;\n2 wrong usage; 3 a file that cannot be used; 4 one that cannot be written, a "
            "plot, or no "
            "process;\n5 no memory; 6 a surface, strategy or program that is not there; 7 another "
            "version;\n9 too many entries in a suite; 12 a strategy that does not fit attune.\n");
}

/* 5 meant as 5 % would be 500 %: nothing measured varies by more than itself. */
#define NOISE_MOST 1

/* A number; "5%" is 0.05. */
static int number(const char *flag, const char *text, double least, double most, double *value,
                  att_error_t *error)
{
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    if (end != text && *end == '%') {
        x /= 100;
        end++;
    }
    if (errno != 0 || end == text || *end != '\0' || !(x >= least && x <= most))
        return att_fail(error, ATT_EUSAGE, "--%s: \"%.40s\" is no number from %g to %g", flag, text,
                        least, most);
    *value = x;
    return ATT_OK;
}

static int count(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *value,
                 att_error_t *error)
{
    char *end;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || x < least || x > most)
        return att_fail(error, ATT_EUSAGE, "--%s: \"%.40s\" is no whole number from %llu to %llu",
                        flag, text, (unsigned long long)least, (unsigned long long)most);
    *value = x;
    return ATT_OK;
}

static int count32(const char *flag, const char *text, uint32_t least, uint32_t most,
                   uint32_t *value, att_error_t *error)
{
    uint64_t wide;
    int rc = count(flag, text, least, most, &wide, error);
    if (rc == ATT_OK)
        *value = (uint32_t)wide;
    return rc;
}

static int small(const char *flag, const char *text, int least, int most, int *value,
                 att_error_t *error)
{
    uint32_t wide;
    int rc = count32(flag, text, (uint32_t)least, (uint32_t)most, &wide, error);
    if (rc == ATT_OK)
        *value = (int)wide;
    return rc;
}

static int word(const char *flag, const char *text, const char *zero, const char *one, int *value,
                att_error_t *error)
{
    att_nearest_t nearest;
    if (strcmp(text, zero) != 0 && strcmp(text, one) != 0)
        return att_fail(error, ATT_EUSAGE, "--%s: \"%.40s\" is neither %s nor %s%s", flag, text,
                        zero, one,
                        att_nearest_of(&nearest, text, (const char *const[]){zero, one, NULL}));
    *value = strcmp(text, one) == 0;
    return ATT_OK;
}

static int append(const char *flag, const char *text, const char **list, uint32_t *length,
                  uint32_t most, att_error_t *error)
{
    if (*length == most)
        return att_fail(error, ATT_EUSAGE, "--%s: more than %u", flag, most);
    list[(*length)++] = text;
    return ATT_OK;
}

static int take_job(att_sim_options_t *o, int code, const char *flag, const char *text,
                    att_error_t *error)
{
    int choice = 0, rc = ATT_OK;
    switch (code) {
    case OPTION_NOISE:
        if (strcmp(text, "surface") == 0)
            o->noise = -1;
        else
            rc = number(flag, text, 0, NOISE_MOST, &o->noise, error);
        return rc;
    case OPTION_LOAD:
        if (strpbrk(text, ":,") != NULL)
            return att_fail(error, ATT_EUSAGE, "--load takes one word; --load-schedule a schedule");
        /* fallthrough */
    case OPTION_LOAD_SCHEDULE:
        o->load = text;
        return ATT_OK;
    case OPTION_DRIFT:
        return number(flag, text, -1, 100, &o->drift, error);
    case OPTION_BUDGET:
        return count(flag, text, 1, 10000000, &o->budget, error);
    case OPTION_OBJECTIVE:
        rc = word(flag, text, "collective", "step", &choice, error);
        o->objective = choice ? ATT_SIM_STEP : ATT_SIM_COLLECTIVE;
        return rc;
    case OPTION_COMPUTE_US:
        return number(flag, text, 0, 1e9, &o->step.compute_us, error);
    case OPTION_SLOWDOWN:
        return number(flag, text, 0, 100, &o->step.slowdown, error);
    case OPTION_SAMPLES:
        return small(flag, text, 1, 64, &o->samples, error);
    case OPTION_DISCARD:
        return small(flag, text, 0, 16, &o->discard, error);
    case OPTION_LEAD:
        return count32(flag, text, 1, 10000, &o->lead, error);
    default:
        return number(flag, text, 0, 1e6, &o->max_slowdown, error);
    }
}

static int take(att_sim_options_t *o, int code, const char *flag, const char *text,
                att_error_t *error)
{
    att_nearest_t nearest;
    switch (code) {
    case OPTION_SURFACE:
        return append(flag, text, o->surfaces, &o->surface_count, ATT_SIM_SURFACES, error);
    case OPTION_SUITE:
        o->mode = ATT_SIM_MODE_SUITE;
        return ATT_OK;
    case OPTION_SUITE_FILE:
        o->mode = ATT_SIM_MODE_SUITE;
        o->suite_file = text;
        return ATT_OK;
    case OPTION_PAPER:
        o->mode = ATT_SIM_MODE_PAPER;
        return ATT_OK;
    case OPTION_COLLECTIVE:
        o->collective = att_collective_parse(text);
        return o->collective >= 0
                   ? ATT_OK
                   : att_fail(error, ATT_EUSAGE,
                              "--collective: \"%.40s\" is none of allreduce, allgather, "
                              "reducescatter, broadcast, reduce%s",
                              text, att_collective_nearest(&nearest, text));
    case OPTION_BYTES:
        return att_bytes_parse(text, &o->bytes) == ATT_OK && o->bytes > 0
                   ? ATT_OK
                   : att_fail(error, ATT_EUSAGE, "--bytes: \"%.40s\" is no size such as 64M", text);
    case OPTION_KNOBS:
        return word(flag, text, "stock", "six", &o->six_knobs, error);
    case OPTION_STRATEGY:
        for (uint32_t i = 0; i < o->strategy_count; i++)
            if (strcmp(o->strategies[i], text) == 0)
                return att_fail(error, ATT_EUSAGE, "--strategy %.80s is given twice", text);
        return append(flag, text, o->strategies, &o->strategy_count, ATT_SIM_STRATEGIES, error);
    case OPTION_AGAINST:
        o->against = text;
        return ATT_OK;
    case OPTION_PLUGIN_PATH:
        o->plugin_path = text;
        return ATT_OK;
    case OPTION_SEEDS:
        return count32(flag, text, 1, ATT_SIM_SEEDS_MAX, &o->seeds, error);
    case OPTION_SEED:
        return count(flag, text, 0, INT64_MAX, &o->first_seed, error);
    case OPTION_WORKERS:
        return count32(flag, text, 1, 256, &o->workers, error);
    case OPTION_LIMIT:
        return number(flag, text, 0, 1e6, &o->limit_s, error);
    case OPTION_JSON:
        o->json = text;
        return ATT_OK;
    case OPTION_CSV:
        o->csv = text;
        return ATT_OK;
    case OPTION_PLOTS:
        o->plots = text;
        return ATT_OK;
    case OPTION_TRACE:
        o->trace = text;
        return ATT_OK;
    case OPTION_QUIET:
        o->quiet = 1;
        return ATT_OK;
    default:
        return take_job(o, code, flag, text, error);
    }
}

/* The suite names tasks and loads itself; the paper's table also who searches, and how often. */
static bool goes_with_suite(int code)
{
    return code != OPTION_SURFACE && code != OPTION_COLLECTIVE && code != OPTION_BYTES &&
           code != OPTION_LOAD && code != OPTION_LOAD_SCHEDULE;
}

static bool goes_with_paper(int code)
{
    static const int codes[] = {OPTION_PAPER, OPTION_PLUGIN_PATH,  OPTION_SAMPLES, OPTION_DISCARD,
                                OPTION_LEAD,  OPTION_MAX_SLOWDOWN, OPTION_JSON,    OPTION_WORKERS,
                                OPTION_LIMIT, OPTION_QUIET};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* What would be of no effect is refused. */
static int check_given(const bool given[OPTIONS], att_error_t *error)
{
    bool suite = given[OPTION_SUITE] || given[OPTION_SUITE_FILE], paper = given[OPTION_PAPER];
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].name == NULL || !given[rows[i].code])
            continue;
        if (paper && !goes_with_paper(rows[i].code))
            return att_fail(error, ATT_EUSAGE, "--%s does not go with --paper", rows[i].name);
        if (suite && !goes_with_suite(rows[i].code))
            return att_fail(error, ATT_EUSAGE, "--%s does not go with --suite", rows[i].name);
    }
    return ATT_OK;
}

static int check(const att_sim_options_t *o, att_error_t *error)
{
    if (o->mode == ATT_SIM_MODE_SURFACES && o->surface_count == 0)
        return att_fail(error, ATT_EUSAGE,
                        "what is to be searched? --surface NAME|FILE, --suite or --paper");
    if (o->objective == ATT_SIM_STEP && o->step.compute_us <= 0)
        return att_fail(error, ATT_EUSAGE, "--objective step needs the compute: --compute-us US");
    return ATT_OK;
}

int att_sim_options_parse(int argc, char **argv, att_sim_options_t *options, att_error_t *error)
{
    struct option flags[ROWS + 1] = {{0}};
    size_t flag_count = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].name != NULL)
            flags[flag_count++] = (struct option){
                rows[i].name, rows[i].argument != NULL ? required_argument : no_argument, NULL,
                rows[i].code};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    att_sim_options_t o = {.collective = -1,
                           .noise = 0.05,
                           .seeds = 20,
                           .first_seed = 1,
                           .samples = 5,
                           .discard = 1,
                           .max_slowdown = 3,
                           .lead = 1,
                           .workers = cores > 0 && cores <= 256 ? (uint32_t)cores : 1,
                           .limit_s = 300};
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    optind = 0;
    opterr = 0;
    bool given[OPTIONS] = {false};
    int code, index;
    while ((code = getopt_long(argc, argv, "+:h", flags, &index)) != -1) {
        if (code == OPTION_HELP || code == 'h') {
            att_sim_options_help(stdout);
            return 1;
        }
        if (code == ':')
            return att_fail(error, ATT_EUSAGE, "%.80s needs a value",
                            att_refused_option(argv, name));
        if (code == '?')
            return att_fail(error, ATT_EUSAGE, "no option %.80s%s; attune sim --help lists them",
                            att_refused_option(argv, name),
                            att_refused_option_nearest(&nearest, argv, flags));
        int rc = take(&o, code, flags[index].name, optarg, error);
        if (rc != ATT_OK)
            return rc;
        given[code] = true;
    }
    if (optind < argc)
        return att_fail(error, ATT_EUSAGE, "\"%.80s\" is no option; attune sim --help lists them",
                        argv[optind]);
    int rc = check_given(given, error);
    if (rc == ATT_OK)
        rc = check(&o, error);
    if (rc == ATT_OK)
        *options = o;
    return rc;
}
