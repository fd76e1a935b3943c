#include "base/config.h"

#include "base/names.h"
#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIELD(name) offsetof(att_config_t, name)
#define BOTH        (ATT_FOR_RUN | ATT_FOR_AGENT)

/* A year; longer waits and intervals are mistakes. */
#define YEAR_S 31557600.0

const att_option_row_t att_option_rows[] = {
    {"run-dir", "ATTUNE_RUN_DIR", ATT_OPTION_STRING, BOTH, FIELD(run_dir), "", "DIR", NULL, 0, 0,
     "folder that the run writes; new or empty; by default attune-<run id>", "Where"},
    {"run-id", "ATTUNE_RUN_ID", ATT_OPTION_STRING, BOTH, FIELD(run_id), "", "ID", NULL, 0, 0,
     "name of the run: letters, digits, '.', '_', '-'; made up by default", "Where"},
    {"node", "ATTUNE_NODE", ATT_OPTION_STRING, BOTH, FIELD(node), "", "NAME", NULL, 0, 0,
     "tells several nodes of one machine apart (tests)", "Where"},
    {"shm-dir", "ATTUNE_SHM_DIR", ATT_OPTION_STRING, BOTH, FIELD(shm_dir), "/dev/shm", "DIR", NULL,
     0, 0, "directory of the shared memory between job and sidecar", "Where"},
    {"plugin-path", "ATTUNE_PLUGIN_PATH", ATT_OPTION_STRING, BOTH, FIELD(plugin_path), "",
     "DIR[:DIR...]", NULL, 0, 0, "folders searched for strategies before attune's own", "Where"},

    {"strategy", "ATTUNE_STRATEGY", ATT_OPTION_STRING, BOTH, FIELD(strategy), "default",
     "NAME[:key=value,...]", NULL, 0, 0, "search strategy; 'attune plugins' lists them", "Search"},
    {"seed", "ATTUNE_SEED", ATT_OPTION_INT, BOTH, FIELD(seed), "1", "N", NULL, 0, 9e18,
     "seed of the strategy's random numbers", "Search"},
    {"samples", "ATTUNE_SAMPLES", ATT_OPTION_INT, BOTH, FIELD(samples), "5", "N", NULL, 1, 1000,
     "usable samples (calls) a trial", "Search"},
    {"max-cost", "ATTUNE_MAX_COST", ATT_OPTION_PERCENT, BOTH, FIELD(max_cost), "5%", "PERCENT",
     NULL, 0, 1, "most time that trials and timing may cost, as a share of run time; 0 = no limit",
     "Search"},
    {"timing-cost", "ATTUNE_TIMING_COST", ATT_OPTION_REAL, BOTH, FIELD(timing_us), "-1", "US", NULL,
     -1, 1e6, "what timing a call costs, in microseconds, for --max-cost; -1 = 10 on a GPU, else 0",
     "Search"},
    {"max-slowdown", "ATTUNE_MAX_SLOWDOWN", ATT_OPTION_FACTOR, BOTH, FIELD(max_slowdown), "3x",
     "FACTOR", NULL, 1, 1e6, "a trial slower than this times NCCL's choice is cut short", "Search"},
    {"max-trials", "ATTUNE_MAX_TRIALS", ATT_OPTION_INT, BOTH, FIELD(max_trials), "0", "N", NULL, 0,
     1e9, "most trials a task; 0 = the strategy decides", "Search"},
    {"min-bytes", "ATTUNE_MIN_BYTES", ATT_OPTION_BYTES, BOTH, FIELD(min_bytes), "0", "BYTES", NULL,
     0, 9e18, "smaller messages are not tuned; bytes, with K, M or G binary", "Search"},
    {"max-channels", "ATTUNE_MAX_CHANNELS", ATT_OPTION_INT, BOTH, FIELD(max_channels), "0", "N",
     NULL, 0, 1024, "never use more channels than this; 0 = the device decides", "Search"},
    {"reserve-sms", "ATTUNE_RESERVE_SMS", ATT_OPTION_INT, BOTH, FIELD(reserve_units), "4", "N",
     NULL, 0, 1024, "SMs kept free of channels on each device", "Search"},
    {"search-each", "ATTUNE_SEARCH_EACH", ATT_OPTION_BOOL, BOTH, FIELD(search_each), "no", NULL,
     NULL, 0, 0,
     "search every task, also where one of the same shape and about the same size has found a "
     "winner",
     "Search"},
    {"observe", "ATTUNE_OBSERVE", ATT_OPTION_BOOL, BOTH, FIELD(observe), "no", NULL, NULL, 0, 0,
     "count and time the calls, change nothing", "Search"},
    {"objective", "ATTUNE_OBJECTIVE", ATT_OPTION_CHOICE, BOTH, FIELD(objective), "collective",
     "WHAT", "collective|step", 0, 0,
     "what is made short: the collective, or the step from one call of a task to its next, so that "
     "compute slowed by communication counts",
     "Search"},
    {"apply", "ATTUNE_APPLY", ATT_OPTION_STRING, BOTH, FIELD(apply), "", "RUN", NULL, 0, 0,
     "use the settings of this finished run's folder, do not search", "Search"},
    {"quarantine", "ATTUNE_QUARANTINE", ATT_OPTION_STRING, BOTH, FIELD(quarantine), "", "RUN", NULL,
     0, 0, "never try what was on trial when this run ended badly (its folder)", "Search"},
    {"watch", "ATTUNE_WATCH", ATT_OPTION_REAL, BOTH, FIELD(watch_s), "5", "SECONDS", NULL, 0,
     YEAR_S, "interval in seconds at which settled tasks are checked for drift; 0 = off", "Search"},

    {"wait-ms", "ATTUNE_WAIT_MS", ATT_OPTION_REAL, BOTH, FIELD(wait_ms), "1000", "MS", NULL, 0,
     1e3 * YEAR_S, "longest wait of a call for the sidecar's decision, in milliseconds", "Safety"},
    {"in-doubt-ms", "ATTUNE_IN_DOUBT_MS", ATT_OPTION_REAL, BOTH, FIELD(in_doubt_ms), "600000", "MS",
     NULL, 0, 1e3 * YEAR_S,
     "a call whose decision cannot be reached for this long fails, in milliseconds", "Safety"},

    {"reproducible", "ATTUNE_REPRODUCIBLE", ATT_OPTION_BOOL, BOTH, FIELD(reproducible), "no", NULL,
     NULL, 0, 0,
     "change nothing that can change the order of additions: collectives that reduce keep NCCL's "
     "choice ('attune knobs' lists them)",
     "Safety"},
    {"graphs", "ATTUNE_GRAPHS", ATT_OPTION_BOOL, ATT_FOR_RUN, FIELD(graphs), "yes", NULL, NULL, 0,
     0,
     "the job may capture CUDA graphs; --no-graphs lets jobs be tuned where capture is not known "
     "in time: NCCL 2.27, and NCCL that the preload cannot stand before",
     "Safety"},
    {"preload", "ATTUNE_PRELOAD", ATT_OPTION_CHOICE, ATT_FOR_RUN, FIELD(preload), "auto", "WHEN",
     "auto|on|off", 0, 0,
     "preload the hook into the command besides naming it to NCCL as plugin: it keeps timing out "
     "of CUDA graphs; auto: unless --no-graphs says that there are none and no option needs it",
     "Hook"},

    {"variants", "ATTUNE_VARIANTS", ATT_OPTION_LIST, BOTH, FIELD(variants), "",
     "nt=N,...|t=T,...|buffer=B,...", NULL, 0, 0,
     "make twins of each communicator with other threads a block, transport or buffers, and search "
     "them; "
     "may be repeated",
     "Hook"},
    {"variants-memory", "ATTUNE_VARIANTS_MEMORY", ATT_OPTION_BYTES, ATT_FOR_RUN,
     FIELD(variants_memory), "8G", "BYTES", NULL, 0, 9e18,
     "most device memory that --variants may take on a GPU, for one communicator; bytes", "Hook"},

    {"log", "ATTUNE_LOG", ATT_OPTION_CHOICE, BOTH, FIELD(log), "warn", "LEVEL",
     "error|warn|info|debug", 0, 0, "how much is said on standard error", "Output"},
    {"quiet", "ATTUNE_QUIET", ATT_OPTION_BOOL, ATT_FOR_RUN, FIELD(quiet), "no", NULL, NULL, 0, 0,
     "no progress line and no table; the run folder is written all the same", "Output"},
    {"trace", "ATTUNE_TRACE", ATT_OPTION_STRING, BOTH, FIELD(trace), "off", "MODE", NULL, 0, 0,
     "record every timed call: off, on[:SIZE] (at most SIZE bytes a node), ring:SIZE (the latest)",
     "Output"},
    {"counters", "ATTUNE_COUNTERS", ATT_OPTION_STRING, BOTH, FIELD(counters), "off", "EVENTS", NULL,
     0, 0, "count beside the calls: off, on (the usual events), or names of PAPI, comma-separated",
     "Output"},
    {"counter-budget", "ATTUNE_COUNTER_BUDGET", ATT_OPTION_PERCENT, BOTH, FIELD(counter_budget),
     "0.1%", "PERCENT", NULL, 0, 1,
     "most time that reading counters may take, as a share of a step; 0 = no limit", "Output"},
    {"metrics-file", "ATTUNE_METRICS_FILE", ATT_OPTION_STRING, BOTH, FIELD(metrics_file), "",
     "FILE", NULL, 0, 0,
     "Prometheus text, replaced once a second; by default metrics.prom in the run folder",
     "Output"},
    {"metrics-port", "ATTUNE_METRICS_PORT", ATT_OPTION_INT, BOTH, FIELD(metrics_port), "0", "PORT",
     NULL, 0, 65535, "answer http://127.0.0.1:PORT/metrics with the same; 0 = off", "Output"},
    {"debug-steps", "ATTUNE_DEBUG_STEPS", ATT_OPTION_STRING, BOTH, FIELD(debug_steps), "", "FILE",
     NULL, 0, 0, "log each protocol step to this file (tests)", "Output"},

    {"fabric", "ATTUNE_FABRIC_MODE", ATT_OPTION_CHOICE, ATT_FOR_RUN, FIELD(fabric), "none", "MODE",
     "none|real|model", 0, 0, "run the command on attune's CPU libnccl instead of a GPU's",
     "Fabric"},
    {"surface", "ATTUNE_FABRIC_SURFACE", ATT_OPTION_STRING, ATT_FOR_RUN, FIELD(surface), "", "NAME",
     NULL, 0, 0, "machine that --fabric model plays: a surface's name or file", "Fabric"},
    {"load", "ATTUNE_FABRIC_LOAD", ATT_OPTION_STRING, ATT_FOR_RUN, FIELD(load), "none", "LOAD",
     NULL, 0, 0,
     "computation beside the collectives that --fabric model plays, a load of the surface",
     "Fabric"},
};
const size_t att_option_row_count = sizeof att_option_rows / sizeof att_option_rows[0];
_Static_assert(sizeof att_option_rows / sizeof att_option_rows[0] <= 64, "a bit a row");

static void *field_of(const att_config_t *config, const att_option_row_t *row)
{
    return (char *)(uintptr_t)config + row->offset;
}

static const att_option_row_t *find_row(const char *flag, size_t length)
{
    for (size_t i = 0; i < att_option_row_count; i++)
        if (strncmp(att_option_rows[i].flag, flag, length) == 0 &&
            att_option_rows[i].flag[length] == '\0')
            return &att_option_rows[i];
    return NULL;
}

static int refuse(att_error_t *error, const char *where, const char *value, const char *accepts)
{
    return att_fail(error, ATT_EUSAGE, "%s: '%.80s' is not accepted; %s", where, value, accepts);
}

static int refuse_range(att_error_t *error, const char *where, const char *value, const char *what,
                        double low, double high)
{
    char accepts[96];
    snprintf(accepts, sizeof accepts, "expected %s from %.10g to %.10g", what, low, high);
    return refuse(error, where, value, accepts);
}

/* A plain decimal number: no blanks, no hexadecimal, no "inf" or "nan". Rest of the text in *end.
 */
static bool read_number(const char *value, double *number, const char **end)
{
    const char *digits = value[0] == '-' || value[0] == '+' ? value + 1 : value;
    if (!isdigit((unsigned char)digits[0]) && digits[0] != '.')
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    char *stop;
    errno = 0;
    *number = strtod(value, &stop);
    *end = stop;
    return stop != value && errno == 0 && isfinite(*number);
}

static int set_text(char **field, const char *value, size_t length, att_error_t *error)
{
    char *copy = strndup(value, length);
    if (copy == NULL)
        return att_fail(error, ATT_ENOMEM, "out of memory");
    free(*field);
    *field = copy;
    return ATT_OK;
}

static int set_int(int64_t *field, const att_option_row_t *row, const char *value,
                   const char *where, att_error_t *error)
{
    const char *digits = value[0] == '-' ? value + 1 : value;
    char *end = NULL;
    errno = 0;
    long long number = isdigit((unsigned char)digits[0]) ? strtoll(value, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || (double)number < row->minimum ||
        (double)number > row->maximum)
        return refuse_range(error, where, value, "a whole number", row->minimum, row->maximum);
    *field = number;
    return ATT_OK;
}

static int set_bytes(int64_t *field, const att_option_row_t *row, const char *value,
                     const char *where, att_error_t *error)
{
    uint64_t bytes;
    if (att_bytes_parse(value, &bytes) != ATT_OK || (double)bytes > row->maximum ||
        (double)bytes < row->minimum)
        return refuse(error, where, value, "expected bytes such as 4096, 64K, 16M or 1G");
    *field = (int64_t)bytes;
    return ATT_OK;
}

static int set_real(double *field, const att_option_row_t *row, const char *value,
                    const char *where, att_error_t *error)
{
    double number;
    const char *rest;
    if (!read_number(value, &number, &rest) || *rest != '\0' || number < row->minimum ||
        number > row->maximum)
        return refuse_range(error, where, value, "a number", row->minimum, row->maximum);
    *field = number;
    return ATT_OK;
}

static int set_percent(double *field, const att_option_row_t *row, const char *value,
                       const char *where, att_error_t *error)
{
    double number;
    const char *rest;
    bool good = read_number(value, &number, &rest);
    if (good && strcmp(rest, "%") == 0)
        number /= 100;
    else
        good = good && *rest == '\0';
    if (!good || number < row->minimum || number > row->maximum)
        return refuse(error, where, value, "expected a share such as 1% or 0.01, from 0 to 100%");
    *field = number;
    return ATT_OK;
}

static int set_factor(double *field, const att_option_row_t *row, const char *value,
                      const char *where, att_error_t *error)
{
    double number;
    const char *rest;
    if (!read_number(value, &number, &rest) || (*rest != '\0' && strcmp(rest, "x") != 0) ||
        number < row->minimum || number > row->maximum)
        return refuse_range(error, where, value, "a factor such as 3x or 3", row->minimum,
                            row->maximum);
    *field = number;
    return ATT_OK;
}

static int set_bool(bool *field, const char *value, const char *where, att_error_t *error)
{
    static const char *const words[2][4] = {{"no", "0", "false", "off"},
                                            {"yes", "1", "true", "on"}};
    for (int truth = 0; truth < 2; truth++)
        for (int i = 0; i < 4; i++)
            if (strcasecmp(value, words[truth][i]) == 0) {
                *field = truth == 1;
                return ATT_OK;
            }
    return refuse(error, where, value, "expected yes or no");
}

static int set_choice(char **field, const att_option_row_t *row, const char *value,
                      const char *where, att_error_t *error)
{
    size_t length = strlen(value);
    for (const char *word = row->accepts; length > 0;) {
        size_t span = strcspn(word, "|");
        if (span == length && strncasecmp(word, value, span) == 0)
            return set_text(field, word, span, error);
        if (word[span] == '\0')
            break;
        word += span + 1;
    }
    att_nearest_t nearest;
    return att_fail(error, ATT_EUSAGE, "%s: '%.80s' is not accepted%s; expected one of %s", where,
                    value, att_nearest_choice(&nearest, value, row->accepts), row->accepts);
}

static int set_row(att_config_t *config, const att_option_row_t *row, const char *value,
                   const char *where, att_error_t *error)
{
    void *field = field_of(config, row);
    switch (row->type) {
    case ATT_OPTION_STRING:
    case ATT_OPTION_LIST:
        return set_text(field, value, strlen(value), error);
    case ATT_OPTION_INT:
        return set_int(field, row, value, where, error);
    case ATT_OPTION_REAL:
        return set_real(field, row, value, where, error);
    case ATT_OPTION_BOOL:
        return set_bool(field, value, where, error);
    case ATT_OPTION_BYTES:
        return set_bytes(field, row, value, where, error);
    case ATT_OPTION_PERCENT:
        return set_percent(field, row, value, where, error);
    case ATT_OPTION_FACTOR:
        return set_factor(field, row, value, where, error);
    case ATT_OPTION_CHOICE:
        return set_choice(field, row, value, where, error);
    }
    return att_fail(error, ATT_EFAIL, "%s: option of unknown type %d", where, (int)row->type);
}

int att_config_init(att_config_t *config, att_error_t *error)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        int rc = set_row(config, row, row->fallback, row->flag, error);
        const char *value = getenv(row->variable);
        if (rc == ATT_OK && value != NULL && value[0] != '\0')
            rc = set_row(config, row, value, row->variable, error);
        if (rc != ATT_OK) {
            att_config_free(config);
            return rc;
        }
    }
    return ATT_OK;
}

void att_config_free(att_config_t *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        if (row->type != ATT_OPTION_STRING && row->type != ATT_OPTION_CHOICE &&
            row->type != ATT_OPTION_LIST)
            continue;
        char **field = field_of(config, row);
        free(*field);
        *field = NULL;
    }
}

int att_config_set(att_config_t *config, const char *flag, const char *value, const char *where,
                   att_error_t *error)
{
    const att_option_row_t *row = find_row(flag, strlen(flag));
    if (row == NULL)
        return att_fail(error, ATT_EUSAGE, "%s: no option of this name", where);
    return set_row(config, row, value, where, error);
}

/* A list's flag replaces the environment's value the first time and adds to it from then on. */
static int set_flag(att_config_t *config, const att_option_row_t *row, const char *value,
                    const char *where, uint64_t *given, att_error_t *error)
{
    uint64_t bit = (uint64_t)1 << (row - att_option_rows);
    bool again = (*given & bit) != 0;
    *given |= bit;
    if (row->type != ATT_OPTION_LIST || !again)
        return set_row(config, row, value, where, error);
    const char *before = *(char *const *)field_of(config, row);
    size_t size = strlen(before) + strlen(value) + 2;
    char *both = malloc(size);
    if (both == NULL)
        return att_fail(error, ATT_ENOMEM, "out of memory");
    snprintf(both, size, "%s;%s", before, value);
    int rc = set_row(config, row, both, where, error);
    free(both);
    return rc;
}

static int refuse_flag(uint32_t program, const char *word, const char *shown, att_error_t *error)
{
    char flag[ATT_NEAREST_WORD];
    att_nearest_t nearest;
    att_nearest_init(&nearest, word);
    att_nearest_offer(&nearest, "--help");
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        bool negates = row->type == ATT_OPTION_BOOL;
        for (int no = 0; (row->programs & program) != 0 && no <= negates; no++) {
            snprintf(flag, sizeof flag, "--%s%s", no ? "no-" : "", row->flag);
            att_nearest_offer(&nearest, flag);
        }
    }
    return att_fail(error, ATT_EUSAGE, "no option %.60s%s; --help lists them", shown,
                    att_nearest_hint(&nearest));
}

/* One argument "--flag", "--flag=value" or "--no-flag" with the words after it; sets *used. */
static int take_flag(att_config_t *config, uint32_t program, int left, char **argv, int *used,
                     uint64_t *given, att_error_t *error)
{
    const char *flag = argv[0] + 2;
    size_t length = strcspn(flag, "=");
    char where[64];
    snprintf(where, sizeof where, "--%.*s", (int)length, flag);
    const att_option_row_t *row = find_row(flag, length);
    bool negated = false;
    if (row == NULL && strncmp(flag, "no-", 3) == 0 && flag[length] == '\0') {
        row = find_row(flag + 3, length - 3);
        negated = row != NULL && row->type == ATT_OPTION_BOOL;
        if (!negated)
            row = NULL;
    }
    if (row == NULL || (row->programs & program) == 0)
        return refuse_flag(program, argv[0], where, error);
    *used = 1;
    if (flag[length] == '=')
        return set_flag(config, row, flag + length + 1, where, given, error);
    if (row->type == ATT_OPTION_BOOL)
        return set_row(config, row, negated ? "no" : "yes", where, error);
    if (left < 2 || strcmp(argv[1], "--") == 0)
        return att_fail(error, ATT_EUSAGE, "%s needs a value: %s", where, row->argument);
    *used = 2;
    return set_flag(config, row, argv[1], where, given, error);
}

int att_config_parse(att_config_t *config, uint32_t program, int argc, char **argv, int *next,
                     att_error_t *error)
{
    int i = 1;
    uint64_t given = 0; /* a bit a row */
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (error != NULL)
                error->text[0] = '\0';
            return -ATT_EUSAGE;
        }
        if (argv[i][1] != '-')
            return refuse_flag(program, argv[i], argv[i], error);
        int used = 0;
        int rc = take_flag(config, program, argc - i, argv + i, &used, &given, error);
        if (rc != ATT_OK)
            return rc;
        i += used;
    }
    *next = i;
    return ATT_OK;
}

void att_config_print_help(FILE *out, uint32_t program)
{
    const char *section = "";
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        if ((row->programs & program) == 0)
            continue;
        if (strcmp(section, row->section) != 0) {
            section = row->section;
            fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", section);
        }
        int width = fprintf(out, "  --%s%s%s", row->flag, row->argument != NULL ? " " : "",
                            row->argument != NULL ? row->argument : "");
        if (width > 26) {
            fputc('\n', out);
            width = 0;
        }
        fprintf(out, "%*s%s\n", 28 - width, "", row->help);
        fprintf(out, "%28s", "");
        if (row->accepts != NULL)
            fprintf(out, "%s; ", row->accepts);
        fprintf(out, "default %s; %s\n", row->fallback[0] != '\0' ? row->fallback : "empty",
                row->variable);
    }
}

/* The shortest decimal that reads back as the same number. */
static void real_text(double number, const char *unit, char *text, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", unit);
}

const char *att_config_text(const att_config_t *config, const att_option_row_t *row, char *text,
                            size_t size)
{
    const void *field = field_of(config, row);
    switch (row->type) {
    case ATT_OPTION_LIST:
    case ATT_OPTION_STRING:
    case ATT_OPTION_CHOICE:
        snprintf(text, size, "%s", *(char *const *)field);
        break;
    case ATT_OPTION_INT:
        snprintf(text, size, "%" PRId64, *(const int64_t *)field);
        break;
    case ATT_OPTION_BYTES:
        att_bytes_text((uint64_t) * (const int64_t *)field, text, size);
        break;
    case ATT_OPTION_REAL:
        real_text(*(const double *)field, "", text, size);
        break;
    case ATT_OPTION_PERCENT:
        snprintf(text, size, "%.12g%%", 100 * *(const double *)field);
        break;
    case ATT_OPTION_FACTOR:
        real_text(*(const double *)field, "x", text, size);
        break;
    case ATT_OPTION_BOOL:
        snprintf(text, size, "%s", *(const bool *)field ? "yes" : "no");
        break;
    }
    return text;
}
